"""Many parts of a view in one job: the same content as part after part, and only bad parts fail."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from partwise.compile.many_parts import NotLiftable
from partwise.ledger.schema import part
from partwise.parts import Parts
from spark_jobs.run import run_all
from spark_jobs.step import compute, many
from spark_jobs.verify.verify import verify
from tests.spark.workspace import Workspace
from tests.thinned import thinned

pytestmark = pytest.mark.spark

SOURCES = """
source: m
part: 1 minute
time: {column: t, tie: u}
columns: {t: timestamp, u: bigint, g: string, x: bigint, y: 'decimal(10,2)'}
files: landing/*.csv
---
dimension: d
columns: {g: string, name: string}
files: landing/d.csv
"""
PLAIN = """
---
view: per_group
part: 1 minute
update: SELECT g, COUNT(*) AS n, SUM(x) AS s FROM m[j] GROUP BY g
---
view: of_three
part: 3 minutes
update: SELECT g, MAX(x) AS top, MIN(part_timestamp) AS first_part FROM m[3*j..3*j+2] GROUP BY g
---
view: whole
part: 1 minute
update: SELECT COUNT(*) AS n, MAX(x) AS top FROM m[j-1..j]
---
view: named
part: 1 minute
update: |
  SELECT d.name, a.x, b.x AS before FROM d LEFT JOIN m[j] a ON a.g = d.g
  LEFT JOIN m[j-1] b ON b.g = d.g AND b.x > (SELECT AVG(x) FROM m[j-2..j])
---
view: begun
part: 1 minute
initialize: SELECT 'first' AS g, MAX(x) AS x FROM m[i]
update: SELECT g, MAX(x) AS x FROM m[j-1..j] GROUP BY g
---
view: not_lifted
part: 1 minute
update: SELECT g, MAX(x) AS x FROM m[j] GROUP BY g WITH ROLLUP
"""
FOLLOWING = """
---
view: rising
part: 1 minute
query: SELECT g, COUNT(*) AS n, SUM(y) AS s, LAST(x) AS x FROM m PATTERN [a, b+] WHERE b.x > PREV(b.x) AND b.x > a.x GROUP BY g
---
view: waiting
part: 1 minute
gaps: carry
query: SELECT g, COUNT(*) AS n, SUM(b.x) AS s FROM m PATTERN [a, b+] WHERE a.x > 0 AND b.x > -2 GROUP BY g
---
view: every
part: 1 minute
query: SELECT COUNT(*) AS n, MAX(x) AS s FROM m PATTERN [a+] WHERE a.x > -1
---
view: rolled
part: 1 minute
strategy: subtract
query: SELECT g, COUNT(*) AS n, SUM(x) AS s, SUM(y) AS sy FROM m [WINDOW 4 minutes] GROUP BY g
---
view: rolled_whole
part: 2 minutes
strategy: subtract
query: SELECT COUNT(x) AS n, SUM(y) AS sy FROM m [WINDOW 6 minutes]
"""


def rows(rng: random.Random, p: int, most: int = 3) -> list[dict[str, Any]]:
    def one(u: int) -> dict[str, Any]:
        second = datetime.fromtimestamp(60 * p + rng.randrange(0, 60, 20), UTC)
        x = None if rng.random() < 0.1 else rng.randint(-3, 9)
        return {"t": second, "u": u, "g": rng.choice(["a", "b", "c", None]), "x": x, "y": rng.randint(0, 99)}

    return [one(u) for u in range(rng.choice(range(most + 1)))]


def filled(spark: SparkSession, at: Path, text: str, seed: int, parts: int, **engine: Any) -> Workspace:
    rng = random.Random(seed)
    space = Workspace(spark, at, text, **engine)
    space.dimension("d", [{"g": "a", "name": "p"}, {"g": "b", "name": "q"}, {"g": "z", "name": "r"}])
    space.replace("m", {p: rows(rng, p) for p in range(-2, parts)})
    return space


def digests(space: Workspace) -> dict[tuple[str, int], str]:
    """What the ledger knows of every part of every view."""
    with space.ledger.database.reading() as r:
        found = r.on.execute(part.select())
        return {(row.table, row.part): row.digest for row in found if row.table not in ("m", "d")}


def counting(points: list[str]) -> Callable[[str], None]:
    return points.append


def one_by_one(patch: pytest.MonkeyPatch) -> None:
    """As if nothing could be lifted or passed over in one go."""

    def no(text: str, index: str = "j") -> Any:
        raise NotLiftable("for comparison")

    patch.setattr(many, "lift", no)
    patch.setattr(many, "TOGETHER", 1)
    patch.setattr(many, "_ROW", 10**9)


def test_lifted_steps_hold_what_single_parts_would(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points: list[str] = []
    together = filled(spark, tmp_path / "a", SOURCES + PLAIN, 1, 9, passed=counting(points))
    reports = together.run()
    # One query for each view, but the ones with INITIALIZE and without lifting, which are unions of part queries.
    assert points.count("staged") == len(reports) == 6
    assert verify(together.engine).different == ()
    one_by_one(monkeypatch)
    alone = filled(spark, tmp_path / "b", SOURCES + PLAIN, 1, 9)
    alone.run()
    assert digests(together) == digests(alone)


@pytest.mark.parametrize("seed", thinned(range(2), 1))
def test_a_single_pass_equals_the_loop(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    points: list[str] = []
    text = SOURCES + FOLLOWING
    together = filled(spark, tmp_path / "a", text, seed, 7, passed=counting(points), most_parts=5)
    together.run()
    passed = points.count("staged")
    monkeypatch.setattr(many, "_ROW", 10**9)
    points.clear()
    alone = filled(spark, tmp_path / "b", text, seed, 7, passed=counting(points), most_parts=5)
    alone.run()
    assert digests(together) == digests(alone)
    assert passed < 0.7 * points.count("staged")


SMALL = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, g: string, x: bigint}
files: landing/*.csv
---
view: v
part: 1 minute
update: SELECT g, 10 DIV x AS q FROM m[j]
"""


def simple(p: int, *values: int) -> list[dict[str, Any]]:
    return [{"t": datetime.fromtimestamp(60 * p, UTC), "g": f"g{n}", "x": x} for n, x in enumerate(values)]


def test_only_the_bad_part_fails(spark: SparkSession, tmp_path: Path) -> None:
    points: list[str] = []
    space = Workspace(spark, tmp_path / "w", SMALL, passed=counting(points))
    space.replace("m", {p: simple(p, 1 if p != 17 else 0) for p in range(40)})
    (report,) = run_all(space.engine)
    assert list(report.failed) == [17]
    assert "DIVIDE_BY_ZERO" in report.failed[17]
    assert "all.yaml:10" in report.failed[17]
    assert report.parts == Parts.of((0, 39)) - Parts.single(17)
    assert points.count("staged") <= 10  # halves of halves, not forty single parts


def test_lots_are_limited_by_parts_and_rows(spark: SparkSession, tmp_path: Path) -> None:
    points: list[str] = []
    space = Workspace(spark, tmp_path / "w", SMALL, passed=counting(points), most_rows=50)
    space.replace("m", {p: simple(p, *([1] * 10)) for p in range(30)})
    space.run()
    assert points.count("staged") == 6
    points.clear()
    space.replace("m", {p: simple(p, *([2] * 10)) for p in range(30)})
    space.run(most_rows=10**9, most_parts=10, passed=counting(points))
    assert points.count("staged") == points.count("recorded") == 3


PATTERN = """
---
view: high
part: 1 minute
query: SELECT {key} AS g, COUNT(*) AS n, SUM(x) AS s FROM m PATTERN [a, b+] WHERE a.x > 2 AND b.x > 2 GROUP BY {key}
"""


@pytest.mark.parametrize(
    ("key", "ways"),
    [
        # The column says whether a group has two rows: each part goes its own way at once.
        ("g", ["unique", "unique", "general", "unique"]),
        # Of an expression only trying tells; after two rows of a group it is left alone for a while.
        ("CONCAT(g, '')", ["fast", "fast", "fast", "general", "general"]),
    ],
)
def test_parts_with_one_row_per_group_take_the_fast_way(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, ways: list[str]
) -> None:
    used: list[str] = []
    fast = compute.Computing._fast

    def noted(self: compute.Computing, j: int) -> str | None:
        found = fast(self, j)
        if j != self.pin.start and self.view.fast_update is not None:
            texts = {self.view.unique_update: "unique", self.view.fast_update: "fast"}
            used.append("general" if found is None else texts[found])
        return found

    monkeypatch.setattr(compute.Computing, "_fast", noted)
    space = Workspace(spark, tmp_path / "w", SMALL + PATTERN.format(key=key))
    for p in range(3):
        space.replace("m", {p: simple(p, 3, 1, 5)})
        space.run()
    space.replace("m", {3: [*simple(3, 3, 1, 5), *simple(3, 4)]})  # two rows of g0
    space.run()
    space.replace("m", {4: simple(4, 3)})
    space.run()
    assert used == ways
    assert [(r["g"], r["n"], r["s"]) for r in space.rows("high")[4]] == [("g0", 6, 19)]
    assert verify(space.engine).different == ()
