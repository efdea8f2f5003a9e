"""Steps on a real Spark and a real store: after any history every part is what recomputation gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from partwise import storage
from partwise.object_store import bucket_of, remember
from partwise.reading import read
from partwise.workspace import open_workspace
from spark_jobs.airflow import tasks
from spark_jobs.ingest import job
from spark_jobs.step import copies
from tests.object_store.store import Lake, reachable
from tests.spark.place import Place

pytestmark = pytest.mark.spark

DEFINITIONS = """
source: s
part: 1 minute
time: at
columns: {at: timestamp, x: int}
files: landing/*.csv
---
view: v
part: 1 minute
update: SELECT SUM(x) AS total, COUNT(*) AS n FROM s[j]
---
view: running
part: 1 minute
initialize: SELECT total FROM v[i]
update: SELECT COALESCE(p.total, 0) + COALESCE(v.total, 0) AS total FROM running[j-1] p FULL OUTER JOIN v[j] v ON true
"""


class InStore(Place):
    """A workspace whose tables, and landing files, are in the store."""

    def __init__(self, folder: Path, spark: SparkSession, lake: Lake, definitions: str = DEFINITIONS) -> None:
        super().__init__(folder, spark, definitions)
        self.lake = lake
        (folder / "partwise.yaml").write_text(
            f"warehouse: {lake.url}/warehouse\nlanding: {lake.url}/landing\nstore: {{endpoint: '{lake.server.url}'}}\n"
        )
        reachable(spark, lake)

    def land_in_store(self, name: str, *rows: tuple[int, int]) -> None:
        text = "at,x\n" + "".join(f"2026-10-03T10:{minute:02d}:00,{x}\n" for minute, x in rows)
        self.lake.bucket().put(f"landing/{name}.csv", text.encode())

    def all(self) -> None:
        tasks.load_source(self.step("s"), self.spark)
        for table in ("v", "running"):
            self.run(table)

    def totals(self) -> list[tuple[int, int]]:
        text = "SELECT minute(part_timestamp), total FROM running ORDER BY 1"
        return [(row[0], row[1]) for row in read(text, str(self.folder)).rows]

    def leftovers(self) -> list[str]:
        words = ("_staged/", "_ingest", "_verify", "_temporary", "_probe")
        return [name for name in self.lake.names() if any(word in name for word in words)]


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path, lake: Lake) -> InStore:
    return InStore(tmp_path / "work", spark, lake)


def test_a_history_with_late_rows_and_corrections(place: InStore) -> None:
    place.land_in_store("a", (0, 1), (1, 2), (2, 3), (3, 4))
    place.all()
    assert place.totals() == [(0, 1), (1, 3), (2, 6)]
    place.land_in_store("b[1]", (1, 10), (4, 5))  # late, and a name that is a pattern
    place.all()
    assert place.totals() == [(0, 1), (1, 13), (2, 16), (3, 20)]
    place.land_in_store("a", (0, 1), (1, 2), (2, 30), (3, 4))  # corrected, in the same second
    place.all()
    assert place.totals() == [(0, 1), (1, 13), (2, 43), (3, 47)]
    found = place.verified()
    assert (found.checked > 0, found.different) == (True, ())
    assert place.leftovers() == []


def test_a_small_step_takes_few_requests(place: InStore) -> None:
    place.land_in_store("a", (0, 1), (1, 2), (2, 3))
    place.all()
    place.land_in_store("b", (3, 4))
    tasks.load_source(place.step("s"), place.spark)
    place.lake.server.forget()
    place.run("v")
    asked = place.lake.server.requests()
    assert sum(line.startswith("PUT") and "/v/_delta_log/" in line for line in asked) == 1  # it did commit
    assert len(asked) <= 7, "\n".join([str(len(asked)), *asked])


def test_a_cluster_writes_and_reads_the_store_itself(place: InStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where executors are on other machines: nothing is on a disk that is shared, landing files of this one neither."""
    for module in (copies, job):
        monkeypatch.setattr(module, "runs_here", lambda spark: False)
    yaml = place.folder / "partwise.yaml"
    yaml.write_text("\n".join(line for line in yaml.read_text().splitlines() if not line.startswith("landing")))
    # With quotation marks Spark reads it, however small it is.
    (place.folder / "landing/a.csv").write_text(
        "at,x\n" + "".join(f'2026-10-03T10:{minute:02d}:00,"{minute + 1}"\n' for minute in range(3))
    )
    place.lake.server.forget()
    place.all()
    assert any(line.startswith("PUT") and "/_ingest/s/" in line for line in place.lake.server.requests())
    assert place.totals() == [(0, 1), (1, 3)]
    assert place.leftovers() == []


def test_a_watched_table_in_the_store(spark: SparkSession, tmp_path: Path, lake: Lake) -> None:
    definitions = f"""
source: s
part: 1 minute
time: at
columns: {{at: timestamp, x: int}}
delta: {lake.url}/theirs
---
view: v
part: 1 minute
update: SELECT SUM(x) AS total FROM s[j]
"""
    place = InStore(tmp_path / "work", spark, lake, definitions)
    remember(open_workspace(str(place.folder)).settings.store, lake.url)

    def rows(*some: tuple[int, int]) -> None:
        text = " UNION ALL ".join(f"SELECT TIMESTAMP '2026-10-03T10:{m:02d}:00Z' AS at, {x} AS x" for m, x in some)
        path = f"s3a://{bucket_of(lake.url)}/theirs"
        spark.sql(text).write.format("delta").mode("append").save(path)

    def totals() -> list[tuple[int, int]]:
        tasks.load_source(place.step("s"), spark)
        place.run("v")
        found = read("SELECT minute(part_timestamp), total FROM v ORDER BY 1", str(place.folder))
        return [(row[0], row[1]) for row in found.rows]

    rows((0, 1), (1, 2), (2, 3))
    assert totals() == [(0, 1), (1, 2)]
    rows((1, 10), (3, 1))
    assert totals() == [(0, 1), (1, 12), (2, 3)]
    # What a change took out is vacuumed before anybody looked: found out by comparing.
    path = f"s3a://{bucket_of(lake.url)}/theirs"
    spark.sql(f"UPDATE delta.`{path}` SET x = 5 WHERE x = 10")
    live = {file.path for file in storage.open_at(f"{lake.url}/theirs").files}
    dead = [n for n in lake.bucket("theirs").below("") if n.name.endswith(".parquet") and n.name not in live]
    lake.bucket("theirs").remove(*(each.name for each in dead))
    assert dead
    assert totals() == [(0, 1), (1, 7), (2, 3)]
