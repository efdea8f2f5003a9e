"""Checks of Delta tables that others write: a part that fails stays as it was, the others follow."""

from __future__ import annotations

import json

import pytest

from partwise.checks.results import KeptResults
from partwise.ledger.records import checks as ledger_checks
from partwise.parts import Parts
from spark_jobs.run import run_all
from spark_jobs.verify.verify import verify
from tests.spark.landing import DAY, NOW, World
from tests.spark.test_ingest_foreign import Owner

pytestmark = pytest.mark.spark

DEFINITIONS = """
source: m
part: 1 minute
time: event_time
delta: OTHER
checks:
  - expect_column_values_to_be_between: {column: loss, min_value: 0, max_value: 100}
---
view: v
part: 1 minute
update: SELECT src, SUM(loss) AS s FROM m[j] GROUP BY src
"""


def kept(world: World, table: str, part: int) -> KeptResults | None:
    with world.ledger.database.reading() as r:
        return ledger_checks.kept(r, table, part)


def failing(world: World, table: str = "m") -> list[int]:
    with world.ledger.database.reading() as r:
        return sorted(p - DAY for p in ledger_checks.failed_parts(r, table))


@pytest.fixture
def owner(world: World) -> Owner:
    made = Owner(world)
    world.define(DEFINITIONS.replace("OTHER", str(made.path)))
    made.sql("CREATE TABLE OTHER (event_time timestamp, src string, loss double) USING delta")
    return made


def test_parts_that_fail_lag_behind_and_catch_up(world: World, owner: Owner) -> None:
    owner.sql("INSERT INTO OTHER " + owner.rows((0, "a", 1), (1, "a", 500), (2, "a", 3), (3, "a", 4)))
    assert list(world.ingest().failed) == [DAY + 1]
    assert (world.closed(), failing(world)) == ([0, 2], [1])
    found = kept(world, "m", DAY + 1)
    assert found is not None
    assert json.loads(found.results[0].rows[0])["loss"] == 500.0
    assert world.ingest().failed == {}  # nobody is told twice
    owner.sql("UPDATE OTHER SET loss = 50 WHERE loss = 500")
    world.ingest()
    assert (world.closed(), failing(world)) == ([0, 1, 2], [])

    # Late rows: part 0 stays as it was, part 2 follows.
    owner.sql("INSERT INTO OTHER " + owner.rows((0, "b", -1), (2, "b", 5)))
    done = world.ingest()
    assert (list(done.failed), list(done.changed)) == ([DAY], [DAY + 2])
    assert (world.revisions()[0], world.revisions()[2]) == (1, 2)
    assert (0, "b", -1.0) not in world.minutes()
    run_all(world.engine)
    assert world.closed("v") == [0, 1, 2]
    with world.ledger.database.writing(NOW) as w:
        assert ledger_checks.accept(w, "m", Parts.single(DAY), "bob") == Parts.single(DAY)
    assert list(world.ingest().changed) == [DAY]
    assert world.minutes() == owner.minutes()

    # What fails, and is taken back by its owner, has never been.
    owner.sql("INSERT INTO OTHER " + owner.rows((1, "c", 700)))
    assert list(world.ingest().failed) == [DAY + 1]
    owner.sql("DELETE FROM OTHER WHERE loss = 700")
    world.ingest()
    assert (failing(world), world.revisions()[1]) == ([], 1)
    assert kept(world, "m", DAY + 1) is None

    # Other checks: it is tried again without any change of the table.
    owner.sql("INSERT INTO OTHER " + owner.rows((1, "c", 700)))
    assert list(world.ingest().failed) == [DAY + 1]
    world.define(DEFINITIONS.replace("OTHER", str(owner.path)).replace("max_value: 100", "max_value: 1000"))
    assert list(world.ingest().changed) == [DAY + 1]
    assert world.minutes() == owner.minutes()
    world.check()
    run_all(world.engine)
    result = verify(world.engine)
    assert (list(result.different), result.stale, world.ledger.audit()) == ([], 0, {})


def test_a_dimension_keeps_its_content(world: World) -> None:
    owner = Owner(world)
    check = "checks:\n  - expect_column_values_to_be_unique: {column: node}\n"
    world.define(f"dimension: nodes\ndelta: {owner.path}\n{check}")
    owner.sql("CREATE TABLE OTHER USING delta AS SELECT 'a' AS node")
    assert world.ingest().changed
    owner.sql("INSERT INTO OTHER SELECT 'a'")
    assert list(world.ingest().failed) == [0]
    assert (world.rows("nodes", "node"), failing(world, "nodes")) == ([("a",)], [-DAY])
    assert world.ingest().failed == {}  # nobody is told twice
    owner.sql("RESTORE TABLE OTHER TO VERSION AS OF 0")
    assert not world.ingest().changed
    assert (failing(world, "nodes"), kept(world, "nodes", 0)) == ([], None)
