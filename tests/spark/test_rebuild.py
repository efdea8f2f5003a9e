"""Tables that were destroyed come back: noticed, named, made again, and nothing downstream runs for nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from partwise.damaged import damaged
from partwise.rebuild import preview
from spark_jobs.run import run_all
from spark_jobs.verify.verify import verify
from tests.spark.landing import DEFINITION, NOW, Crash, World

pytestmark = pytest.mark.spark
SHOP = (
    DEFINITION.strip()
    + """
late: {accept: 5 minutes}
---
view: total
part: 1 minute
initialize: SELECT src, SUM(loss) AS s FROM m[i] GROUP BY src
update: |
  SELECT COALESCE(p.src, n.src) AS src, COALESCE(p.s, 0) + COALESCE(n.s, 0) AS s
  FROM total[j-1] p FULL OUTER JOIN (SELECT src, SUM(loss) AS s FROM m[j] GROUP BY src) n ON n.src <=> p.src
---
view: after
part: 1 minute
update: SELECT COUNT(*) AS n, SUM(s) AS s FROM total[j]
"""
)


def test_a_destroyed_table_comes_back(world: World) -> None:
    world.define(SHOP)
    world.csv("a.csv", (0, "x", 1), (1, "x", 2), (2, "y", 4))
    world.ingest()
    world.csv("b.csv", (10, "x", 8), (11, "x", 1))  # by then the first file is too old for a source of 5 minutes
    world.ingest()
    run_all(world.engine)
    before = {table: sorted(world.rows(table, "part, s"), key=repr) for table in ("total", "after")}
    assert damaged(world.ledger, world.workspace.warehouse) == []

    total = Path(world.handle("total").path)
    shutil.rmtree(total / "_delta_log")
    source = Path(world.handle("m").path)
    next(source.glob("s-*/*.parquet")).unlink()
    said = {item.table: item.text() for item in damaged(world.ledger, world.workspace.warehouse)}
    assert set(said) == {"m", "total"}
    assert "Delta log" in said["total"]
    assert "`partwise rebuild total`" in said["total"]
    assert "1 of its" in said["m"]

    table = world.ledger.graph()["m"]
    assert preview(world.ledger, world.workspace, world.engine.definitions, table).gone == []
    again(world, "m")
    world.crash_at("committed")
    with pytest.raises(Crash):
        world.ingest("m")
    world.go_on()
    done = world.ingest("m")
    assert done.quarantined == 0
    assert world.ledger.rebuilding() == {}
    assert world.closed() == list(range(11))
    world.check()
    assert len(world.rows()) == 5
    assert not world.ledger.plan(NOW).steps, "the same rows change nothing"

    again(world, "total")
    reports = run_all(world.engine)
    assert [r.table for r in reports] == ["total"]
    assert not reports[0].changed
    assert damaged(world.ledger, world.workspace.warehouse) == []
    assert {table: sorted(world.rows(table, "part, s"), key=repr) for table in ("total", "after")} == before
    assert not verify(world.engine).different


def test_what_cannot_be_had_again_is_named(world: World) -> None:
    world.define(SHOP)
    gone = world.csv("a.csv", (0, "x", 1), (1, "x", 1))
    world.csv("b.csv", (2, "x", 1))
    world.ingest()
    gone.unlink()
    found = preview(world.ledger, world.workspace, world.engine.definitions, world.ledger.graph()["m"])
    assert (found.parts, found.files) == (2, 1)
    [said] = found.gone
    assert "landing/m/a.csv (rows of 2026-10-03T00:00..2026-10-03T00:0" in said
    again(world, "m")
    world.ingest()
    assert world.closed() == [0, 1], "what was closed is closed again, without the rows that nobody has"
    assert len(world.rows()) == 1
    world.check()


def again(world: World, table: str) -> None:
    with world.engine.leased(table, adopting=False) as held:
        world.ledger.rebuild_again(held, NOW)
