"""Stale parts repaired by keys: what is computed again, what is left alone, and that the result is that of recomputing."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from partwise import storage
from partwise.choose import repair
from spark_jobs.step import keys, run_step, stage
from spark_jobs.step.compute import QueryFailed
from spark_jobs.step.run_step import Report
from spark_jobs.verify.verify import verify

from .workspace import Workspace

pytestmark = pytest.mark.spark
BASE = 9_000_000

SOURCES = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, k: string, g: int, x: bigint, y: double}
files: m/*.csv
---
dimension: d
columns: {k: string, region: string}
files: d.csv
"""
VIEWS = {
    "grouped": "SELECT k, COUNT(*) AS n, SUM(x) AS s, AVG(y) AS a FROM m[j-1..j] GROUP BY k",
    "two_keys": "SELECT k, g, MAX(x) AS top FROM m[j] GROUP BY k, g HAVING COUNT(*) > 0",
    "joined": "SELECT a.k, a.x, d.region FROM m[j] a LEFT JOIN d ON d.k = a.k",
    "regions": "SELECT d.region, COUNT(*) AS n FROM m[j] a JOIN d ON d.k = a.k GROUP BY d.region",
    "ranked": "SELECT k, x, RANK() OVER (PARTITION BY k ORDER BY x) AS r FROM m[j-2..j]",
    "distinct_keys": "SELECT DISTINCT k FROM m[j-1..j]",
    "gone": "SELECT k, g FROM m[j-1] EXCEPT SELECT k, g FROM m[j]",
    "paired": "SELECT COALESCE(a.k, b.k) AS k, a.n AS now, b.n AS before FROM (SELECT k, COUNT(*) AS n FROM m[j] GROUP BY k) a "
    "FULL JOIN (SELECT k, COUNT(*) AS n FROM m[j-1] GROUP BY k) b ON a.k <=> b.k",
    "times": "SELECT t, g, COUNT(*) AS n FROM m[j] GROUP BY t, g",
    "over_view": "SELECT k, SUM(n) AS n FROM grouped[j-1..j] GROUP BY k",
    "first_rows": "SELECT k, x FROM m[j] ORDER BY x, k, g, y LIMIT 2",
}


def definitions(*views: str, more: str = "") -> str:
    texts = [f"view: {name}\npart: 1 minute\n{more}update: |\n  {VIEWS[name]}\n" for name in views]
    return "---\n".join([SOURCES, *texts])


def row(p: int, rng: random.Random, **given: Any) -> dict[str, Any]:
    found = {
        "t": datetime.fromtimestamp(60 * p, UTC),
        "k": rng.choice(["a", "b", "c", "d", "it's", None]),
        "g": rng.choice([1, 2, None]),
        "x": rng.choice([1, 2, 3, None]),
        "y": rng.choice([0.5, 1.5]),
    }
    return {**found, **given}


def filled(spark: SparkSession, at: Path, *views: str, more: str = "") -> tuple[Workspace, random.Random]:
    rng = random.Random(7)
    space = Workspace(spark, at, definitions(*views, more=more), repair_by="keys")
    space.dimension("d", [{"k": "a", "region": "north"}, {"k": "b", "region": "south"}])
    space.replace("m", {p: [row(p, rng) for _ in range(12)] for p in range(BASE, BASE + 4)})
    space.run()
    return space, rng


def by_table(reports: list[Report]) -> dict[str, Report]:
    return {report.table: report for report in reports}


def test_every_shape_of_query(spark: SparkSession, tmp_path: Path) -> None:
    """Late rows, corrections, an emptied part, rows with new keys, and another dimension: `verify` computes from scratch."""
    space, rng = filled(spark, tmp_path / "w", *VIEWS)
    used: dict[str, set[str]] = {}
    rows = space.rows("m")
    changes: list[dict[int, list[Any]]] = [
        {
            BASE + 1: [*rows[BASE + 1], row(BASE + 1, rng, k="a")],
            BASE + 3: [*rows[BASE + 3], row(BASE + 3, rng, k=None, g=None)],
        },
        {BASE + 2: [*rows[BASE + 2][1:], row(BASE + 2, rng, k="new")], BASE: rows[BASE][3:], BASE + 1: []},
    ]
    for change in changes:
        space.replace("m", change)
        for report in space.run():
            assert report.repair is not None
            used.setdefault(report.table, set()).add(report.repair.by)
    space.dimension("d", [{"k": "a", "region": "north"}, {"k": "b", "region": "east"}])
    found = by_table(space.run())
    ways = {name: report.repair.by for name, report in found.items() if report.repair}
    assert ways == {"joined": "keys", "regions": "keys"}
    result = verify(space.engine)
    assert (result.different, result.stale) == ((), 0)
    # What carries nothing is computed again; all others were never.
    recomputed = {name for name, ways in used.items() if ways == {"recompute"}}
    assert recomputed == {"first_rows", "regions"}
    assert all(used[name] == {"keys"} for name in VIEWS.keys() - recomputed)


def test_another_dimension_makes_only_parts_with_its_changed_keys_due(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old image of a row counts as the new one does; NOT IN compares with every row, so there all parts are due."""
    anywhere = "SELECT k FROM m[j] WHERE k NOT IN (SELECT k FROM d)"
    apart = "SELECT a.k, x.n FROM m[j-1] a JOIN (SELECT k, COUNT(*) AS n FROM d GROUP BY k) x ON x.k <=> a.k"
    monkeypatch.setattr(sys.modules[__name__], "VIEWS", {**VIEWS, "anywhere": anywhere, "apart": apart})
    space, rng = filled(spark, tmp_path / "w", "joined", "regions", "anywhere", "apart")
    space.replace(
        "m", {p: [row(p, rng, k=k)] for p, k in zip(range(BASE, BASE + 4), ["a", "b", "c", None], strict=True)}
    )
    space.run()

    def computed(*rows: tuple[str | None, str]) -> dict[str, list[int]]:
        space.dimension("d", [{"k": k, "region": region} for k, region in rows])
        found = {report.table: [j - BASE for j in report.parts] for report in space.run(repair_by=None)}
        assert space.ledger.audit() == {}
        assert verify(space.engine).different == ()
        return found

    everywhere = [0, 1, 2, 3]
    # b moved to another region.
    assert computed(("a", "north"), ("b", "east")) == {
        "joined": [1],
        "regions": [1],
        "anywhere": everywhere,
        "apart": [2],
    }
    # c came, a went, and there is a second row for b.
    assert computed(("b", "east"), ("b", "west"), ("c", "west")) == {
        "joined": [0, 1, 2],
        "regions": [0, 1, 2],
        "anywhere": everywhere,
        "apart": [1, 2, 3],
    }
    # NULL meets NULL by <=> alone. By `=` its part is computed as well, and found unchanged.
    assert computed(("b", "east"), ("b", "west"), ("c", "west"), (None, "nowhere"))["joined"] == [3]
    assert computed(("b", "east"), ("b", "west"), ("c", "west"), (None, "nowhere"), ("z", "far")) == {
        "anywhere": everywhere
    }
    monkeypatch.setattr(keys, "MOST_BYTES", -1)  # the same through Spark
    assert computed(("b", "south"), ("b", "west"), ("c", "west"), (None, "nowhere"), ("z", "far"))["regions"] == [1]


def test_new_parts_do_not_keep_stale_ones_from_being_repaired(spark: SparkSession, tmp_path: Path) -> None:
    """Late rows mostly come with new ones: what these add is computed whole, the parts before them are not."""
    space, rng = filled(spark, tmp_path / "w", "grouped")
    late = [*space.rows("m")[BASE + 1], row(BASE + 1, rng, k="a")]
    space.replace("m", {BASE + 1: late, BASE + 4: [row(BASE + 4, rng)]})
    (report,) = space.run()
    assert report.repair is not None
    assert (report.repair.by, report.repair.keys, [*report.parts]) == ("keys", 1, [BASE + 1, BASE + 2, BASE + 4])
    assert verify(space.engine).different == ()


def test_only_files_with_touched_keys_are_written_again(spark: SparkSession, tmp_path: Path) -> None:
    space, rng = filled(spark, tmp_path / "w", "two_keys")
    rows = space.rows("m")[BASE + 1]

    def files() -> set[str]:
        current = space.ledger.current("two_keys")
        handle = storage.open_at(space.engine.path("two_keys", current.generation), current.version)
        return {file.path for file in handle.files}

    before = files()
    space.replace("m", {BASE + 1: [*rows, row(BASE + 1, rng, k="brand new", g=7)]})
    (report,) = space.run()
    assert report.repair is not None
    assert (report.repair.by, report.repair.keys, report.repair.rows_copied) == ("keys", 1, 0)
    assert before < files(), "a new key adds a file and takes none away"
    space.replace("m", {BASE + 1: [*space.rows("m")[BASE + 1], row(BASE + 1, rng, k="brand new", g=7, x=99)]})
    (report,) = space.run()
    assert report.repair is not None
    assert report.repair.rows_copied == 0, "the key has a file of its own"
    assert before < files()
    assert verify(space.engine).different == ()


def test_large_parts_are_cut_by_key_and_only_touched_files_are_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that hold no touched key are not even opened, and of the part no more is copied than the one that does."""
    monkeypatch.setattr(stage, "ROWS_PER_CUT", 20)
    monkeypatch.setitem(VIEWS, "many", "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM m[j] GROUP BY k")
    rng = random.Random(1)
    space = Workspace(spark, tmp_path / "w", definitions("many"), repair_by="keys", small_rows=0)
    rows = [row(BASE, rng, k=f"{n % 100:03d}") for n in range(300)]
    space.replace("m", {BASE: rows})
    space.run()

    def handle() -> storage.Handle:
        current = space.ledger.current("many")
        return storage.open_at(space.engine.path("many", current.generation), current.version)

    before = handle()
    assert before.keys == ("k",)
    assert len(before.files) >= 5
    holding = {file.path for file in before.files if file.may_have("k", {"042"})}
    opened: set[str] = set()
    read = keys._read

    def reading(given: storage.Handle, files: Sequence[storage.File], *rest: Any) -> Any:
        opened.update(file.path for file in files if given.path == before.path)
        return read(given, files, *rest)

    monkeypatch.setattr(keys, "_read", reading)
    space.replace("m", {BASE: [*rows, row(BASE, rng, k="042")]})
    (report,) = space.run()
    assert report.repair is not None
    assert (report.repair.by, report.repair.keys) == ("keys", 1)
    assert opened <= holding
    assert len(holding) < len(before.files)
    assert report.repair.rows_copied < 20
    gone = {file.path for file in before.files} - {file.path for file in handle().files}
    assert len(gone) == 1
    assert verify(space.engine).different == ()


def test_a_change_without_effect_makes_no_revision(spark: SparkSession, tmp_path: Path) -> None:
    space, _ = filled(spark, tmp_path / "w", "two_keys")
    rows = space.rows("m")[BASE + 1]
    space.replace("m", {BASE + 1: [*rows, {**rows[0], "y": 77.0}]})
    (report,) = space.run()
    assert report.repair is not None
    assert (report.repair.by, report.changed.count) == ("keys", 0)
    assert space.run() == []


def test_checks_see_the_whole_part(spark: SparkSession, tmp_path: Path) -> None:
    checks = "checks: [{expect_column_values_to_be_unique: {column: top}, severity: warn}, {expect_column_min_to_be_between: {column: top, min_value: 0}}]\n"
    space, rng = filled(spark, tmp_path / "w", "two_keys", more=checks)
    rows = space.rows("m")[BASE + 1]
    space.replace("m", {BASE + 1: [*rows, row(BASE + 1, rng, k="low", g=1, x=-5)]})
    failed = [report for report in _reports(space) if report.failed]
    assert len(failed) == 1
    assert "top" in next(iter(failed[0].failed.values()))
    space.replace("m", {BASE + 1: rows})
    _reports(space)
    assert verify(space.engine).different == ()


MERGED = {
    "sums": "SELECT k, COUNT(*) AS n, SUM(x) AS s, COUNT(x) AS c FROM m[j-1..j] GROUP BY k",
    "highest": "SELECT k, g, COUNT(*) AS n, MAX(x) AS top FROM m[j] GROUP BY k, g",
    "by_region": "SELECT d.region, COUNT(*) AS n FROM m[j] a JOIN d ON d.k = a.k GROUP BY d.region",
    "plain": "SELECT k, x FROM m[j] WHERE x > 1",
}


def test_merging(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that come and go, groups that come and go, NULL sums; MAX and plain rows only where nothing went."""
    monkeypatch.setitem(globals(), "VIEWS", MERGED)
    space, rng = filled(spark, tmp_path / "w", *MERGED)
    rows = space.rows("m")
    late = [*rows[BASE + 1], row(BASE + 1, rng, k="a", x=9), row(BASE + 1, rng, k="only nulls", x=None)]
    expected = [
        ({BASE + 1: late}, {"sums": "merge", "highest": "merge", "by_region": "merge", "plain": "merge"}),
        (
            {BASE + 1: rows[BASE + 1][2:]},
            {"sums": "merge", "highest": "recompute", "by_region": "merge", "plain": "recompute"},
        ),
        ({BASE + 1: []}, {"sums": "merge", "highest": "recompute", "by_region": "merge", "plain": "recompute"}),
    ]
    for change, ways in expected:
        space.replace("m", change)
        found = {report.table: report.repair.by for report in space.run(repair_by="merge") if report.repair}
        assert found == ways
    assert verify(space.engine).different == ()


RUNNING = """
---
view: running
part: 1 minute
initialize: SELECT k, COUNT(*) AS n, MAX(x) AS top FROM m[i] GROUP BY k
update: |
  SELECT COALESCE(p.k, c.k) AS k, COALESCE(p.n, 0) + COALESCE(c.n, 0) AS n, GREATEST(p.top, c.top) AS top
  FROM running[j-1] p FULL JOIN (SELECT k, COUNT(*) AS n, MAX(x) AS top FROM m[j] GROUP BY k) c ON c.k <=> p.k
---
view: newest
part: 1 minute
initialize: SELECT k, MAX(x) AS x FROM m[i] GROUP BY k
update: |
  SELECT COALESCE(c.k, p.k) AS k, CASE WHEN c.n > 0 THEN c.x ELSE p.x END AS x
  FROM newest[j-1] p FULL JOIN (SELECT k, COUNT(*) AS n, MAX(x) AS x FROM m[j] GROUP BY k) c ON c.k = p.k
"""


def test_views_that_read_themselves_follow_changed_keys(spark: SparkSession, tmp_path: Path) -> None:
    """From part to part by the keys of late rows, until what they give is what was there; new parts wait for the next step."""
    rng = random.Random(7)
    space = Workspace(spark, tmp_path / "w", SOURCES + RUNNING, repair_by="keys")
    last = BASE + 5
    space.replace("m", {p: [row(p, rng, k=k, x=p - BASE) for k in "abc" for _ in "12"] for p in range(BASE, last + 1)})
    space.run()

    def repaired(p: int, *rows: Any, more: int | None = None) -> dict[str, list[tuple[list[int], str, int]]]:
        new = {p: [*space.rows("m")[p], *rows]}
        space.replace("m", new | ({} if more is None else {more: [row(more, rng, k="a")]}))
        found: dict[str, list[tuple[list[int], str, int]]] = {}
        for report in space.run():
            assert report.repair is not None or more is not None
            by, keys = (report.repair.by, report.repair.keys) if report.repair else ("new", 0)
            found.setdefault(report.table, []).append(([j - BASE for j in report.parts], by, keys))
        assert verify(space.engine).different == ()
        assert space.ledger.audit() == {}
        return found

    # A count goes on for ever; the newest value is another one in the part of the late row alone.
    assert repaired(BASE + 2, row(BASE + 2, rng, k="a", x=99)) == {
        "running": [([2, 3, 4, 5], "keys", 1)],
        "newest": [([2, 3], "keys", 1)],
    }
    # A key that no part before knows, and NULL, which `=` keeps apart from itself.
    found = repaired(BASE + 4, row(BASE + 4, rng, k="z", x=1), row(BASE + 4, rng, k=None, x=1))
    assert found["running"] == [([4, 5], "keys", 2)]
    # In the first part INITIALIZE decides, so everything is computed again.
    assert repaired(BASE, row(BASE, rng, k="a", x=99))["running"][0][1] == "recompute"
    # Beside a new part: stale ones first.
    found = repaired(BASE + 3, row(BASE + 3, rng, k="b", x=7), more=last + 1)
    assert found["running"][0] == ([3, 4, 5], "keys", 1)
    assert found["running"][-1][0] == [6]
    # A part that was the first one, and is not any more, holds what INITIALIZE gave: it is computed whole.
    space.replace("m", {BASE - 1: [row(BASE - 1, rng, k="b", x=1)]})
    for view in ("running", "newest"):
        space.ledger.move_start(view, BASE - 1, space.engine.now())
    space.replace("m", {BASE: [*space.rows("m")[BASE], row(BASE, rng, k="c", x=5)]})
    space.run()
    assert verify(space.engine).different == ()
    assert space.ledger.audit() == {}


def test_a_wrong_merge_is_noticed(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard computes a few groups again; a difference, and the whole part is."""
    from spark_jobs.step.by_merging import Merging

    monkeypatch.setitem(globals(), "VIEWS", MERGED)
    space, rng = filled(spark, tmp_path / "w", "sums")
    merged = Merging.merged
    monkeypatch.setattr(Merging, "merged", lambda self, old, given: merged(self, old, given).withColumn("n", F.lit(77)))
    space.replace("m", {BASE + 1: [*space.rows("m")[BASE + 1], row(BASE + 1, rng)]})
    assert {report.repair.by for report in space.run(repair_by="merge") if report.repair} == {"recompute"}
    assert verify(space.engine).different == ()


def _reports(space: Workspace) -> list[Report]:
    from spark_jobs.run import run_all

    return run_all(space.engine)


def test_small_parts_are_computed_again_by_default(spark: SparkSession, tmp_path: Path) -> None:
    space, rng = filled(spark, tmp_path / "w", "grouped")
    space.replace("m", {BASE + 1: [*space.rows("m")[BASE + 1], row(BASE + 1, rng)]})
    (report,) = space.run(repair_by=None)
    assert report.repair is not None
    assert report.repair.by == "recompute"


def test_a_repair_that_spark_refuses_is_left_alone_for_a_while(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part is computed again, and `auto` does not try the same again with the next late row."""
    tried = []

    def refused(*given: Any) -> Any:
        tried.append(given)
        raise QueryFailed("refused")

    space, rng = filled(spark, tmp_path / "w", "grouped")
    monkeypatch.setattr(run_step, "make_patch", refused)
    monkeypatch.setattr(repair, "FIXED", {"recompute": 10**8, "keys": 0.01, "merge": 0.01})
    monkeypatch.setattr(repair, "MOST_CHANGED", 10)
    for _ in range(2):
        space.replace("m", {BASE + 1: [*space.rows("m")[BASE + 1], row(BASE + 1, rng)]})
        (report,) = space.run(repair_by=None)
        assert report.repair is not None
        assert report.repair.by == "recompute"
    assert len(tried) == 1
    assert verify(space.engine).different == ()
