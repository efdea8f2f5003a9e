"""Delta tables that others write: whatever they do to them, our copy follows, and only what changed is touched."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

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
    from partwise.ledger.sources import close

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


def test_history_that_is_gone_is_replaced_by_comparing(world: World, owner: Owner) -> None:
    world.ingest()
    owner.sql("UPDATE OTHER SET loss = 9 WHERE src = 'b'")
    live = {
        row[0] for row in world.spark.sql(f"SELECT DISTINCT _metadata.file_path FROM delta.`{owner.path}`").collect()
    }
    for path in Path(owner.path).glob("*.parquet"):
        if not any(name.endswith(path.name) for name in live):
            path.unlink()  # as VACUUM does
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
