"""Arrival, late rows, a crash and verification with the ledger in PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.run import run_all
from spark_jobs.verify.verify import verify
from tests.ledger.conftest import Postgres, postgres  # noqa: F401  # the fixture
from tests.spark.landing import DAY, DEFINITION, Crash, World

pytestmark = pytest.mark.spark

VIEWS = (
    DEFINITION
    + """
---
view: total
part: 1 minute
initialize: SELECT SUM(loss) AS loss FROM m[i]
update: SELECT COALESCE(p.loss, 0) + COALESCE(n.loss, 0) AS loss FROM total[j-1] p CROSS JOIN (SELECT SUM(loss) AS loss FROM m[j]) n
"""
)


def test_ingest_and_run_on_postgresql(spark: SparkSession, tmp_path: Path, postgres: Postgres) -> None:  # noqa: F811
    world = World(spark, tmp_path / "w", settings=f"ledger: {postgres.empty()}")
    world.define(VIEWS)
    assert not world.ledger.database.sqlite
    world.csv("a.csv", (0, "x", 1), (1, "x", 2), (3, "x", 4))
    world.put("m/bad.csv", "event_time,src,loss\nsoon,x,1\n")
    done = world.ingest()
    assert (done.rows, done.quarantined, world.closed()) == (3, 1, [0, 1, 2])
    assert [list(report.changed) for report in run_all(world.engine)] == [[DAY, DAY + 1, DAY + 2]]
    world.csv("late.csv", (1, "y", 10))
    world.crash_at("committed")
    with pytest.raises(Crash):
        world.ingest()
    world.go_on()
    assert world.ingest().files == 0  # the orphan is adopted
    assert world.revisions() == {0: 1, 1: 2, 2: 1}
    assert world.arrivals()[-1] == (1, 1, True)
    run_all(world.engine)
    assert [loss for _, loss in world.rows("total", "part, loss")] == [1.0, 13.0, 13.0]
    found = verify(world.engine)
    assert (found.checked, found.different) == (3, ())
    assert world.ledger.audit() == {}
    world.check()
    world.ledger.database.close()
