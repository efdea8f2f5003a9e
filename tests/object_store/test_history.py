"""Random histories with all tables in a store: repairs by keys and by merging, rolling tables, many views in one job,
samples, crashes. The same histories as on the disk, from the same model; in turn Spark sees the disk of the step or not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from partwise.compile.sample.hashing import hash_of, threshold
from spark_jobs.ingest import job
from spark_jobs.step import copies
from tests.object_store.store import Lake, reachable
from tests.spark.models import Get, Model, Row
from tests.spark.test_history import History, OfFiles
from tests.spark.workspace import assert_same

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SAMPLED = """
view: sampled
part: 1 minute
sample: {ratio: 50 %, key: u}
update: SELECT u, SUM(x) AS x FROM m[j] GROUP BY u
"""


def sampled() -> Model:
    def rows(j: int, get: Get, first: bool) -> list[Row]:
        return [{"u": row["u"], "x": row["x"]} for row in get("m", j, j)]

    return Model("sampled", SAMPLED, lambda j: [("m", j, j)], rows)


class InStore(History):
    """Every history also has a view with a sample."""

    def models(self) -> list[Model]:
        return [*super().models(), sampled()]

    def compare(self) -> None:
        super().compare()
        chosen = {
            p: [row for row in rows if hash_of([row["u"]]) <= threshold(0.5)]
            for p, rows in self.world.tables["sampled"].items()
        }
        found = self.space.rows("sampled__sample")
        assert_same(
            {p: [{n: row[n] for n in ("u", "x")} for row in rows] for p, rows in found.items()}, chosen, "sample"
        )


class FilesInStore(InStore, OfFiles):
    """The rows of sources come as files."""


@pytest.mark.parametrize("seed", range(12))
def test_history(spark: SparkSession, tmp_path: Path, lake: Lake, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    reachable(spark, lake)
    if seed % 2:
        for module in (copies, job):
            monkeypatch.setattr(module, "runs_here", lambda spark: False)
    at = tmp_path / "w"
    at.mkdir()
    (at / "partwise.yaml").write_text(f"warehouse: {lake.url}/warehouse\nstore: {{endpoint: '{lake.server.url}'}}\n")
    kind: Any = FilesInStore if seed % 5 == 2 else InStore
    found = kind(seed, spark, at)
    found.verifying = True
    try:
        found.happen()
    except BaseException as why:
        why.add_note("\n".join([f"history {seed}", found.text(), *found.log]))
        raise
    assert any(name.startswith("warehouse/") for name in lake.names())
