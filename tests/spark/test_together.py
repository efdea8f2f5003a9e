"""Small steps of several tables in one job: the same contents as one by one, whatever happens in between."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sqlalchemy import select

from partwise.ledger.facts import LedgerFacts
from partwise.ledger.schema import part
from partwise.parts import Parts
from partwise.settings import Batch
from spark_jobs.fused import PartQuery, compute
from spark_jobs.run import run_all
from spark_jobs.step.small import Collected
from spark_jobs.together import run_together

from .workspace import Workspace

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("engine")]
SOURCE = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, g: string, x: bigint, y: double}
files: landing/*.csv
---
dimension: d
columns: {g: string, name: string}
files: landing/d.csv
"""
QUERIES = {
    "sums": "SELECT g, SUM(x) AS s, COUNT(*) AS n FROM m[j] GROUP BY g",
    "named": "SELECT d.name, AVG(m.y) AS a FROM m[j] m JOIN d ON d.g = m.g GROUP BY d.name",
    "few": "SELECT g, MAX(x) AS x FROM m[j] GROUP BY g HAVING MAX(x) > 3",
    "rows": "SELECT t, g, x, y, x > 2 AS high FROM m[j] WHERE x IS NOT NULL",
    "nested": "SELECT g, array_sort(collect_list(x)) AS xs, named_struct('low', MIN(y), 'n', COUNT(*)) AS z FROM m[j] GROUP BY g",
    "exact": "SELECT CAST(SUM(x) AS decimal(20, 2)) AS s, CAST(NULL AS binary) AS b, date'2026-01-01' AS day FROM m[j]",
    "wide": "SELECT g, COUNT(*) AS n FROM m[j-1..j+1] GROUP BY g",
    "mapped": "SELECT map('n', COUNT(*)) AS counts FROM m[j]",
    # These are one query with others.
    "tops": "SELECT m.g, MAX(m.y) AS top, AVG(m.x) AS a FROM m[j] m WHERE m.x > 1 GROUP BY m.g HAVING MAX(m.y) > -1",
    "counted": "SELECT q.g, COUNT(*) FILTER (WHERE q.y > 0) AS n, STDDEV(q.x) AS d FROM m[j] q WHERE q.y < 2 GROUP BY q.g",
    "total": "SELECT SUM(y) AS s, COUNT(*) AS n FROM m[j]",
    "total_high": "SELECT SUM(x) AS s, MIN(t) AS t FROM m[j] WHERE y > 1",
    "picked": "SELECT t, UPPER(g) AS g, x FROM m[j] WHERE y < 1",
    "names": "SELECT d.name, COUNT(m.x) AS n FROM m[j] m JOIN d ON d.g = m.g WHERE m.x > 2 GROUP BY d.name",
}
TEXT = "---".join([SOURCE, *(f"\nview: {name}\npart: 1 minute\nupdate: {sql}\n" for name, sql in QUERIES.items())])
TEXT += "---\nview: after\npart: 1 minute\nupdate: SELECT SUM(s) AS s FROM sums[j]\n"
NAMES = [*QUERIES, "after"]
ALONE, TOGETHER = Batch(views=1), Batch(views=50)
Made = dict[str, list[tuple[int, str, int]]]


class Crash(Exception):
    pass


def rows(rng: random.Random, p: int) -> list[dict[str, Any]]:
    return [
        {
            "t": datetime.fromtimestamp(60 * p + rng.randrange(60), UTC),
            "g": rng.choice(["a", "b", None]),
            "x": rng.choice([None, *range(6)]),
            "y": rng.choice([None, 0.5, -0.0, 2.25]),
        }
        for _ in range(rng.choice([0, 1, 3, 6]))
    ]


def made(space: Workspace) -> Made:
    """Parts of the views with their digests and how often they changed."""
    with space.ledger.database.reading() as r:
        found = r.on.execute(select(part.c.table, part.c.part, part.c.digest, part.c.revision)).all()
    return {name: sorted((p, d, n) for table, p, d, n in found if table == name) for name in NAMES}


def counting(points: list[str]) -> Callable[[str], None]:
    return lambda point: points.append(point) if point == "together" else None


def made_in(folder: Path, spark: SparkSession, batch: Batch) -> Workspace:
    space = Workspace(spark, folder, TEXT, batch=batch)
    space.dimension("d", [{"g": g, "name": g * 2} for g in "ab"])
    return space


@pytest.fixture
def pair(spark: SparkSession, tmp_path: Path) -> Iterator[tuple[Workspace, Workspace]]:
    found = [made_in(tmp_path / name, spark, limits) for name, limits in (("a", ALONE), ("b", TOGETHER))]
    yield found[0], found[1]
    for space in found:
        space.ledger.database.close()


@pytest.fixture(scope="module")
def space(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """For tests that each work on a part of their own; all views begin before these."""
    found = made_in(tmp_path_factory.mktemp("together"), spark, TOGETHER)
    found.replace("m", {8: rows(random.Random(0), 8)})
    found.run()
    yield found
    found.ledger.database.close()


@pytest.fixture
def made_one(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The tables whose queries were computed as one with others."""
    found = set[str]()

    def noticed(queries: Sequence[PartQuery]) -> list[Collected] | None:
        answer = compute(queries)
        found.update(query.computing.pin.table.name for query in queries if answer is not None)
        return answer

    monkeypatch.setattr("spark_jobs.together.compute", noticed)
    return found


def test_contents_are_those_of_steps_one_by_one(pair: tuple[Workspace, Workspace], made_one: set[str]) -> None:
    """Random rows, late rows and emptied parts; at some moments the job crashes between two commits."""
    rng = random.Random(7)
    one_by_one, together = pair
    jobs: list[str] = []
    for arriving in ([0, 1, 2], [3], [1], [4, 0], [2]):
        new = {p: rows(rng, p) for p in arriving}
        for space in pair:
            space.replace("m", new)
        left = rng.randint(1, 18)

        def crash(point: str) -> None:
            nonlocal left
            left -= point in ("together", "staged", "ready", "committed", "recorded")
            if not left:
                raise Crash

        try:
            together.run(passed=crash)
        except Crash:
            assert together.ledger.audit() == {}
        together.run(passed=counting(jobs))
        one_by_one.run()
        assert made(together) == made(one_by_one)
        assert [together.rows(name) for name in NAMES] == [one_by_one.rows(name) for name in NAMES]
        assert together.ledger.audit() == {}
        assert together.run() == []
    assert jobs
    assert made_one >= {"sums", "tops", "counted", "total", "total_high", "rows", "picked", "named", "names"}


def as_of(space: Workspace, p: int) -> dict[str, int]:
    with space.ledger.database.reading() as r:
        found = r.on.execute(select(part.c.table, part.c.as_of).where(part.c.part == p, part.c.table.in_(QUERIES)))
        return {row.table: row.as_of for row in found}


def test_one_pin_for_all(space: Workspace) -> None:
    """Rows that come while the job runs are in no table, and all tables are due for them."""
    space.replace("m", {9: rows(random.Random(1), 9)})
    names = [name for name in QUERIES if name != "wide"]

    def late(point: str) -> None:
        if point == "pinned":
            space.replace("m", {9: rows(random.Random(2), 9)})

    found = list(run_together(space.with_engine(passed=late), names))
    assert sorted(report.table for report in found) == sorted(names)
    assert len({as_of(space, 9)[name] for name in names}) == 1
    due = {step.table for step in space.ledger.plan(space.engine.now()).steps}
    assert due >= set(names)
    space.run()
    assert space.ledger.audit() == {}


def test_tables_that_others_write_are_left_out(space: Workspace) -> None:
    space.replace("m", {11: rows(random.Random(3), 11)})
    with space.engine.leased("few"):
        found = {report.table for report in run_together(space.engine, ["sums", "few", "rows"])}
    assert found == {"sums", "rows"}
    assert {report.table for report in space.run()} >= {"few"}


def bad(n: int) -> str:
    views = [f"\nview: v{k}\npart: 1 minute\nupdate: SELECT SUM(x) + {k} AS s FROM m[j]\n" for k in range(9)]
    return "---".join(
        [
            SOURCE.split("---")[0],
            *views[:n],
            "\nview: bad\npart: 1 minute\nupdate: SELECT 1 / SUM(x) AS s FROM m[j]\n",
            *views[n:],
        ]
    )


def test_one_that_fails_keeps_nobody_from_being_computed(spark: SparkSession, tmp_path: Path) -> None:
    space, jobs = Workspace(spark, tmp_path / "w", bad(4), batch=TOGETHER), list[str]()
    space.replace("m", {0: [{"t": None, "g": "a", "x": 0, "y": None}]})
    tables = [f"v{k}" for k in range(9)]
    # What fails of others is not told here: a run of their own does.
    guests = {report.table for report in run_together(space.engine, [*tables[:4], "bad"], guests={"bad"})}
    assert guests == set(tables[:4])
    with space.ledger.database.reading() as r:
        assert LedgerFacts(r).failures() == {}
    reports = run_all(space.with_engine(passed=counting(jobs)))
    failed = {report.table: report.failed for report in reports if report.failed}
    assert {report.table for report in reports} == {*tables[4:], "bad"}
    assert list(failed) == ["bad"]
    assert "DIVIDE_BY_ZERO" in failed["bad"][0]
    # It is known to fail: from now on it keeps out of the way.
    space.replace("m", {1: [{"t": None, "g": "a", "x": 0, "y": None}]})
    jobs.clear()
    reports = run_all(space.with_engine(passed=counting(jobs)))
    assert len(jobs) == 1
    assert len(reports) == 10
    space.replace("m", {p: [{"t": None, "g": "a", "x": 1, "y": None}] for p in (0, 1)})
    space.run()
    assert space.rows("bad") == {0: [{"s": 1.0}], 1: [{"s": 1.0}]}
    assert space.ledger.audit() == {}
    assert space.parts("v8") == Parts.of((0, 1))
    space.ledger.database.close()
