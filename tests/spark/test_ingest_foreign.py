"""Delta tables that others write: whatever they do to them, our copy follows, and only what changed is touched."""

from __future__ import annotations

import shutil

import pytest

from partwise.definitions.definitions import Time
from partwise.parts import Parts
from spark_jobs.ingest.files.rows import Shape
from spark_jobs.ingest.foreign import copy
from spark_jobs.ingest.foreign.watch import in_time
from tests.spark.landing import DAY, World, text

pytestmark = pytest.mark.spark

DEFINITION = """
source: m
part: 1 minute
time: event_time
delta: other
close: manual
"""


class Owner:
    """Writes the foreign table with Spark alone."""

    def __init__(self, world: World) -> None:
        self.world, self.path = world, world.folder.parent / "other"

    def sql(self, statement: str) -> None:
        self.world.spark.sql(statement.replace("OTHER", f"delta.`{self.path}`"))

    def rows(self, *rows: tuple[int, str, float]) -> str:
        values = ", ".join(f"(timestamp '{text(minute)}', '{src}', {loss}D)" for minute, src, loss in rows)
        return f"SELECT * FROM VALUES {values} AS v(event_time, src, loss)"

    def minutes(self) -> list[tuple[int, str, float]]:
        found = self.world.spark.sql(
            f"SELECT unix_seconds(event_time) div 60, src, loss FROM delta.`{self.path}` WHERE event_time IS NOT NULL"
        )
        return sorted(((row[0] - DAY, row[1], row[2]) for row in found.collect()), key=repr)


@pytest.fixture
def owner(world: World) -> Owner:
    made = Owner(world)
    world.define(DEFINITION.replace("delta: other", f"delta: {made.path}"))
    made.sql(
        "CREATE TABLE OTHER (event_time timestamp, src string, loss double) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"
    )
    made.sql("INSERT INTO OTHER " + made.rows((0, "a", 1), (1, "a", 2), (1, "b", 3)))
    made.sql("INSERT INTO OTHER " + made.rows((2, "a", 4), (5, "a", 5)))
    return made


def follows(world: World, owner: Owner) -> list[int]:
    """Take over what is new; returns the minutes whose content was touched."""
    seen = world.handle().version if world.ledger.current("m").version is not None else 0
    done = world.ingest()
    assert done.refused == []
    assert not done.notes
    assert world.minutes() == owner.minutes()
    world.check()
    return sorted(p - DAY for p in done.changed) if done.changed else [0] * (world.handle().version - seen)


def test_every_kind_of_change_is_followed(world: World, owner: Owner) -> None:
    from partwise.ledger.write.closing import close

    follows(world, owner)
    for minute in (0, 1, 2, 5):
        close(world.ledger, "m", DAY + minute, "test", 0.0)
    assert follows(world, owner) == []
    owner.sql("UPDATE OTHER SET loss = 9 WHERE src = 'b'")
    assert follows(world, owner) == [1]
    owner.sql("OPTIMIZE OTHER")
    assert follows(world, owner) == []
    owner.sql("DELETE FROM OTHER WHERE event_time = timestamp '" + text(2) + "'")  # in a file with other parts
    assert follows(world, owner) == [2]
    assert (2, "a", 4.0) not in world.minutes()
    owner.sql(
        f"MERGE INTO OTHER t USING ({owner.rows((0, 'a', 7), (5, 'new', 8))}) s ON t.event_time = s.event_time AND t.src = s.src WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert follows(world, owner) == [0, 5]
    owner.sql("INSERT OVERWRITE OTHER " + owner.rows((1, "a", 2), (1, "b", 9), (0, "z", 1)))
    assert follows(world, owner) == [0, 5]
    owner.sql("RESTORE TABLE OTHER TO VERSION AS OF 2")
    assert follows(world, owner) == [0, 1, 2, 5]
    # There and back again between two looks: nothing.
    owner.sql("DELETE FROM OTHER WHERE src = 'a'")
    owner.sql("RESTORE TABLE OTHER TO VERSION AS OF 2")
    assert follows(world, owner) == []


def test_deletion_vectors_partitions_and_rows_without_a_time(world: World) -> None:
    owner = Owner(world)
    world.define(DEFINITION.replace("delta: other", f"delta: {owner.path}"))
    owner.sql(
        "CREATE TABLE OTHER (event_time timestamp, src string, loss double) USING delta PARTITIONED BY (src) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    owner.sql("INSERT INTO OTHER " + owner.rows((0, "a", 1), (1, "a", 2), (1, "b", 3)))
    follows(world, owner)
    owner.sql("DELETE FROM OTHER WHERE loss = 2")  # a vector: the file stays
    follows(world, owner)
    owner.sql("DELETE FROM OTHER WHERE loss = 1")  # another vector for the same file
    follows(world, owner)
    owner.sql("INSERT INTO OTHER SELECT CAST(NULL AS timestamp), 'c', 1D UNION ALL " + owner.rows((3, "c", 1)))
    follows(world, owner)
    assert [why for why, _ in world.aside()] == ["no event time: event_time is empty"]
    owner.sql("INSERT INTO OTHER " + owner.rows((4, "b", 1)))
    follows(world, owner)
    assert len(world.aside()) == 1
    owner.sql("UPDATE OTHER SET event_time = timestamp '" + text(3) + "' WHERE event_time IS NULL")
    follows(world, owner)
    assert world.aside() == []


def test_one_row_far_ahead_closes_nothing_and_waits(world: World) -> None:
    owner = Owner(world)
    world.define(DEFINITION.replace("delta: other", f"delta: {owner.path}").replace("manual", "{delay: 1 minute}"))
    owner.sql("CREATE TABLE OTHER (event_time timestamp, src string, loss double) USING delta")
    ahead = "SELECT timestamp '9999-12-31', 'ahead', 1D"
    owner.sql("INSERT INTO OTHER " + owner.rows((0, "a", 1), (1, "a", 2), (2, "a", 3)) + f" UNION ALL {ahead}")
    done = world.ingest()
    assert (done.rows, done.quarantined) == (3, 1)
    assert world.closed() == [0]
    assert [why for why, _ in world.aside()] == ["further in the future than late.future (1 day)"]
    world.check()
    owner.sql("DELETE FROM OTHER WHERE src = 'ahead'")
    assert world.ingest().refused == []
    assert world.aside() == []
    assert world.closed() == [0]


def test_rows_without_a_part_are_looked_for_in_changed_files_alone(
    world: World, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    follows(world, owner)

    def everything(*given: object) -> None:
        raise AssertionError("looked at all rows")

    monkeypatch.setattr(copy, "all_aside", everything)
    for src in ("c", "d", "d"):
        owner.sql(f"INSERT INTO OTHER SELECT CAST(NULL AS timestamp), '{src}', 1D")
        assert world.ingest().quarantined == 1
    owner.sql("DELETE FROM OTHER WHERE src = 'c'")
    follows(world, owner)
    assert len(world.aside()) == 2
    owner.sql("OPTIMIZE OTHER")
    owner.sql("UPDATE OTHER SET loss = 2 WHERE src = 'd'")
    follows(world, owner)
    assert ['"loss":2.0' in row for _, row in world.aside()] == [True, True]


@pytest.mark.parametrize("kind", ["date", "timestamp_ntz"])
def test_changes_of_dates_and_local_times_read_no_more_than_they_must(world: World, kind: str) -> None:
    owner = Owner(world)
    world.define(DEFINITION.replace("delta: other", f"delta: {owner.path}").replace("1 minute", "12 hours"))
    owner.sql(f"CREATE TABLE OTHER (event_time {kind}, src string) USING delta")
    owner.sql(
        "INSERT INTO OTHER SELECT CAST(d AS "
        + kind
        + "), 'a' FROM VALUES ('2026-10-01'), ('2026-10-02'), ('2026-10-03') AS v(d)"
    )
    assert world.ingest().rows == 3
    owner.sql("INSERT INTO OTHER SELECT CAST('2026-10-02' AS " + kind + "), 'b'")
    assert world.ingest().rows == 1
    assert [src for _, src in world.rows(columns="part, src")] == ["a", "a", "b", "a"]
    world.check()
    found = foreign_rows_in(owner, world)
    assert found == ["a", "b"]


def foreign_rows_in(owner: Owner, world: World) -> list[str]:
    """What the condition on the event time leaves of the table for the second day."""
    rows = world.spark.sql(f"SELECT event_time, src FROM delta.`{owner.path}`")
    length = 12 * 3600
    second = 1_790_899_200 // length  # 2026-10-02T00:00
    shape = Shape({"event_time": "timestamp", "src": "string"}, Time("event_time"), length)
    return sorted(row[1] for row in rows.where(in_time(rows, shape, Parts.single(second))).collect())


def test_history_that_is_gone_is_replaced_by_comparing(world: World, owner: Owner) -> None:
    world.ingest()
    owner.sql("UPDATE OTHER SET loss = 9 WHERE src = 'b'")
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    world.spark.conf.set(check, "false")
    files = len(list(owner.path.glob("*.parquet")))
    owner.sql("VACUUM OTHER RETAIN 0 HOURS")
    world.spark.conf.unset(check)
    assert len(list(owner.path.glob("*.parquet"))) < files
    done = world.ingest()
    assert "was vacuumed" in done.notes[0]
    assert "compared by digests" in done.notes[0]
    assert world.minutes() == owner.minutes()
    world.check()
    version = world.handle().version
    shutil.rmtree(owner.path)  # another table in its place, with the same content but for one row
    owner.sql("CREATE TABLE OTHER (event_time timestamp, src string, loss double) USING delta")
    owner.sql("INSERT INTO OTHER " + owner.rows((0, "a", 1), (1, "a", 2), (1, "b", 9), (2, "a", 4)))
    assert "another table" in world.ingest().notes[0]
    assert world.minutes() == owner.minutes()
    assert world.handle().version == version + 1
    world.check()


def test_a_dimension_may_be_a_delta_table(world: World) -> None:
    owner = Owner(world)
    world.define(f"dimension: nodes\ndelta: {owner.path}\n")
    assert "no Delta table" in world.ingest().refused[0][1]
    owner.sql("CREATE TABLE OTHER USING delta AS SELECT 'a' AS node, 1 AS n")
    assert list(world.ingest().changed) == [0]
    assert world.rows("nodes", "node, n") == [("a", 1)]
    owner.sql("INSERT OVERWRITE OTHER SELECT 'a', 1")
    assert not world.ingest().changed
    owner.sql("INSERT INTO OTHER SELECT 'b', 2")
    assert world.ingest().changed
    assert len(world.rows("nodes", "node, n")) == 2
