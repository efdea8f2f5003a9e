"""Checks of views on every way to a part: nothing that failed is published, and nothing is computed from it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from partwise.checks.results import KeptResults
from partwise.ledger.read.history import PartHistory, history
from partwise.ledger.read.reports import tables
from partwise.ledger.read.snapshot import as_defined
from partwise.ledger.records import checks as ledger_checks
from partwise.parts import Parts
from partwise.storage.query import PinnedTable, query
from spark_jobs.run import run_all
from spark_jobs.step.run_step import Report, run_step
from spark_jobs.verify.verify import verify
from tests.spark.workspace import Workspace

pytestmark = pytest.mark.spark

SOURCE = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, g: string, x: bigint}
files: landing/*.csv
"""
VIEWS = """
---
view: v
part: 1 minute
update: SELECT g, x FROM m[j]
checks:
  - expect_column_values_to_be_between: {column: x, min_value: 0, max_value: 100}
  - expect_column_values_to_not_be_null: {column: g}
    severity: warn
---
view: w
part: 1 minute
update: SELECT g, SUM(x) AS s FROM v[j] GROUP BY g
"""
TOTAL = """
---
view: total
part: 1 minute
initialize: SELECT SUM(x) AS s FROM m[i]
update: SELECT COALESCE(MAX(p.s), 0) + COALESCE(MAX(n.s), 0) AS s FROM total[j-1] p CROSS JOIN (SELECT SUM(x) AS s FROM m[j]) n
checks:
  - expect_column_max_to_be_between: {column: s, max_value: 1000}
"""


def rows(*values: int | None) -> list[dict[str, Any]]:
    from datetime import UTC, datetime

    return [{"t": datetime(1970, 1, 1, tzinfo=UTC), "g": None if x is None else f"g{x}", "x": x} for x in values]


class Checks(Workspace):
    def go(self, **given: Any) -> dict[str, Report]:
        found: dict[str, Report] = {}
        for report in run_all(self.with_engine(**given) if given else self.engine):
            found[report.table] = report
        return found

    def xs(self, name: str = "v") -> dict[int, list[Any]]:
        """What delta-rs reads, at the newest version of the table."""
        found: dict[int, list[Any]] = {}
        column = {"v": "x"}.get(name, "s")
        for row in DeltaTable(self.engine.path(name, 0)).to_pyarrow_table().to_pylist():
            found.setdefault(row["part"], []).append(row[column])
        return {p: sorted(values, key=str) for p, values in sorted(found.items())}

    def queried(self, name: str = "v") -> dict[int, int]:
        """What `partwise query` reads."""
        current = self.ledger.current(name)
        pin = PinnedTable(self.engine.path(name, current.generation), current.version)
        return dict(query(f"SELECT part, COUNT(*) FROM {name} GROUP BY part ORDER BY part", {name: pin}).rows)

    def kept(self, p: int, name: str = "v") -> KeptResults | None:
        with self.ledger.database.reading() as r:
            return ledger_checks.kept(r, name, p)

    def why(self, name: str, p: int) -> PartHistory:
        with as_defined(self.ledger, self.definitions.graph(), 1.0) as snapshot:
            return history(snapshot, name, p)

    def failed(self) -> dict[str, int]:
        with as_defined(self.ledger, self.definitions.graph(), 1.0) as snapshot:
            return {row.table.name: row.failed for row in tables(snapshot) if row.failed}

    def accept(self, name: str, *parts: int, who: str = "ann") -> Parts:
        with self.ledger.database.writing(5.0) as w:
            return ledger_checks.accept(w, name, Parts.single(*parts), who)

    def clean(self, staged: bool = True) -> None:
        """`staged`: nothing is left of what was staged, either. After a crash the sweep takes it, when it is old."""
        found = verify(self.engine)
        assert (list(found.different), found.stale) == ([], 0)
        assert self.ledger.audit() == {}
        for table in self.definitions.usable if staged else ():
            assert not list(Path(self.engine.path(table, 0), "_staged").glob("*")), table


@pytest.fixture
def space(spark: SparkSession, tmp_path: Path) -> Checks:
    return Checks(spark, tmp_path / "w", SOURCE + VIEWS)


def test_first_build_with_one_bad_part_among_many(space: Checks) -> None:
    """Good parts of the same step are published; the bad one is nowhere, and who needs it waits and says why."""
    space.replace("m", {1: rows(1), 2: rows(2, 500, -7), 3: rows(3), 4: rows()})
    reports = space.go()
    assert reports["v"].failed.keys() == {2}
    assert reports["v"].changed == Parts.single(1, 3, 4)
    assert space.xs() == {1: [1], 3: [3]}
    assert space.queried() == {1: 1, 3: 1}
    assert space.parts("v") == Parts.single(1, 3, 4) == space.parts("w")
    assert space.failed() == {"v": 1}
    kept = space.kept(2)
    assert kept is not None
    assert (kept.outcome, kept.rows) == ("failed", 3)
    assert [(r.check, r.ok, r.unexpected, r.elements) for r in kept.results] == [
        ("expect_column_values_to_be_between", False, 2, 3),
        ("expect_column_values_to_not_be_null", True, 0, 3),
    ]
    assert kept.results[0].rows == ('{"g": "g-7", "x": -7}', '{"g": "g500", "x": 500}')
    assert "2 of 3 values of x fail the check: between 0 and 100" in space.why("v", 2).failure.message  # type: ignore[union-attr]
    waits = space.why("w", 2)
    assert (waits.state, [(need.table, need.missing) for need in waits.lacks]) == ("waiting", [("v", Parts.single(2))])
    assert space.go() == {}  # it is not tried again by itself
    space.replace("m", {2: rows(2, 50)})
    assert space.go()["v"].changed == Parts.single(2)
    assert space.xs() == {1: [1], 2: [2, 50], 3: [3]}
    assert space.parts("w") == Parts.single(1, 2, 3, 4)
    assert space.failed() == {}
    space.clean()


def test_late_rows_that_fail_leave_the_previous_revision(space: Checks) -> None:
    space.replace("m", {p: rows(p) for p in range(1, 5)})
    space.go()
    space.replace("m", {2: rows(2, 101), 3: rows(3, 33)})
    reports = space.go()
    assert reports["v"].failed.keys() == {2}
    assert reports["v"].changed == Parts.single(3)
    assert space.xs() == {1: [1], 2: [2], 3: [3, 33], 4: [4]}
    assert space.queried() == {1: 1, 2: 1, 3: 2, 4: 1}
    assert space.xs("w") == {1: [1], 2: [2], 3: [3, 33], 4: [4]}
    failed = space.why("v", 2)
    assert (failed.state, failed.exists) == ("failed", True)
    # Whoever reads it goes on with what everybody sees, and says so.
    space.ledger.request("w", Parts.single(2), time.time())
    assert "at an earlier revision" in space.go()["w"].reason
    assert space.xs("w")[2] == [2]
    fresh = space.why("w", 2)
    assert (fresh.state, [(w.table, w.state) for w in fresh.held]) == ("fresh", [("v", "failed")])
    space.replace("m", {2: rows(2, 99)})
    space.go()
    assert space.xs()[2] == [2, 99]
    assert sum(space.xs("w")[2]) == 101
    space.clean()


def test_a_view_of_itself_stops_at_the_part_that_failed(spark: SparkSession, tmp_path: Path) -> None:
    space = Checks(spark, tmp_path / "w", SOURCE + TOTAL)
    space.replace("m", {1: rows(1), 2: rows(2000), 3: rows(3), 4: rows(4)})
    reports = space.go()
    assert reports["total"].failed.keys() == {2}
    assert space.xs("total") == {1: [1]}
    space.replace("m", {2: rows(20)})
    space.go()
    assert space.xs("total") == {1: [1], 2: [21], 3: [24], 4: [28]}
    # Late: the chain stays as it was from the bad part on.
    space.replace("m", {2: rows(2000), 1: rows(2)})
    assert space.go()["total"].failed.keys() == {2}
    assert space.xs("total") == {1: [2], 2: [21], 3: [24], 4: [28]}
    space.replace("m", {2: rows(30)})
    space.go()
    assert space.xs("total") == {1: [2], 2: [32], 3: [35], 4: [39]}
    space.clean()


def test_a_requested_part_is_checked_by_todays_checks(space: Checks) -> None:
    """A backfill goes the same way. A changed check makes nothing stale, but what failed is tried again."""
    space.replace("m", {1: rows(1), 2: rows(60)})
    space.go()
    space.define(SOURCE + VIEWS.replace("max_value: 100", "max_value: 50"))
    assert space.go() == {}
    space.ledger.request("v", Parts.of((1, 2)), time.time())
    reports = space.go()
    assert (reports["v"].parts, list(reports["v"].failed)) == (Parts.single(1), [2])
    assert space.xs() == {1: [1], 2: [60]}
    assert space.go() == {}
    space.define(SOURCE + VIEWS.replace("max_value: 100", "max_value: 70"))
    assert space.go()["v"].parts == Parts.single(2)
    assert space.failed() == {}
    space.clean()


def test_accepted_by_somebody_it_is_published_as_it_was_seen(space: Checks) -> None:
    space.replace("m", {1: rows(1), 2: rows(500)})
    space.go()
    assert space.accept("v", 1) == Parts()  # nothing is wrong with it
    assert space.accept("v", 2) == Parts.single(2)
    assert space.go()["v"].changed == Parts.single(2)
    assert space.xs() == {1: [1], 2: [500]}
    kept = space.kept(2)
    assert kept is not None
    assert (kept.outcome, kept.accepted_by) == ("accepted", "ann")
    assert (kept.accepted_at or 0.0) >= 5.0  # by the ledger's clock, which never goes back
    assert space.failed() == {}
    # Other content is other content.
    space.replace("m", {2: rows(501)})
    assert list(space.go()["v"].failed) == [2]
    assert space.xs()[2] == [500]
    space.replace("m", {2: rows(5)})
    space.go()
    space.clean()


def test_a_warning_is_published_and_shown(space: Checks) -> None:
    space.replace("m", {1: rows(1, None)})
    report = space.go()["v"]
    assert "1 of 2 values of g" in report.warned[1]
    assert (report.failed, report.changed) == ({}, Parts.single(1))
    kept = space.kept(1)
    assert kept is not None
    assert kept.outcome == "warned"
    assert kept.results[1].rows == ("{}",)  # both columns are NULL


def test_a_check_that_cannot_be_run_has_failed(spark: SparkSession, tmp_path: Path) -> None:
    text = (
        SOURCE
        + """
---
view: v
part: 1 minute
update: SELECT g, x FROM m[j]
checks:
  - expect_column_values_to_match_regex: {column: g, regex: "g["}
  - expect_column_values_to_match_regex: {column: x, regex: "g"}
  - expect_column_values_to_be_between: {column: g, min_value: 1}
  - expect_column_values_to_not_be_null: {column: x, row_condition: "x > 'many'"}
  - expect_column_values_to_be_json_parseable: {column: x}
  - expect_column_values_to_not_be_null: {column: x}
"""
    )
    space = Checks(spark, tmp_path / "w", text)
    space.replace("m", {1: rows(1)})
    report = space.go()["v"]
    assert "and 4 more failed" in report.failed[1]
    kept = space.kept(1)
    assert kept is not None
    assert [(r.ok, r.broken) for r in kept.results[:4]] == [(False, True)] * 4
    assert kept.results[5].ok
    said = [r.message for r in kept.results]
    assert "g[" in said[0]
    assert said[1].endswith("a regular expression needs text, but x is bigint")
    assert said[2].endswith("g is string, which cannot be compared with 1")
    assert "many" in said[3]


AROUND = (
    SOURCE
    + """
---
view: v
part: 1 minute
update: SELECT g, x FROM m[j] WHERE x > 0
checks:
  - row_count_ratio_to_previous_part: {min: 0.5, max: 2}
  - row_count_equals: {table: m}
---
view: both
part: 2 minutes
update: SELECT g, x FROM v[2*j..2*j+1]
checks:
  - row_count_equals: {table: m}
"""
)


def test_checks_that_look_beyond_the_part(spark: SparkSession, tmp_path: Path) -> None:
    space = Checks(spark, tmp_path / "w", AROUND)
    # 3 jumps; 4 would be fine beside 3, but that one is not published; 5 has lost a row against the source.
    space.replace("m", {2: rows(1, 2), 3: rows(*range(1, 9)), 4: rows(1, 2), 5: rows(1, -1)})
    reports = space.go()
    assert list(reports["v"].failed) == [3, 5]
    assert "8 rows, the part before it has 2: 4 times as many" in reports["v"].failed[3]
    assert "1 rows, m has 2 for the same time" in reports["v"].failed[5]
    space.replace("m", {3: rows(1, 2, 3), 5: rows(1, 2)})
    assert not space.go()["v"].failed
    assert space.parts("both") == Parts.single(1, 2)
    space.clean()


class Crash(BaseException):
    pass


def test_a_crash_between_check_and_commit_leaves_nothing(space: Checks) -> None:
    """The bad part is never seen, whatever the step had got to; the next one goes on from there."""
    space.replace("m", {1: rows(1), 2: rows(500), 3: rows(3)})
    for point, stored in (("checked", {}), ("ready", {}), ("committed", {1: [1], 3: [3]})):

        def passed(here: str, at: str = point) -> None:
            if here == at:
                raise Crash

        with pytest.raises(Crash):
            run_step(space.with_engine(passed=passed), "v")
        assert space.xs() == stored
        assert space.parts("v") == Parts()
    space.go()
    assert (space.xs(), space.queried()) == ({1: [1], 3: [3]}, {1: 1, 3: 1})
    assert (space.parts("w"), space.failed()) == (Parts.single(1, 3), {"v": 1})
    space.replace("m", {2: rows(2)})
    space.go()
    assert space.xs() == {1: [1], 2: [2], 3: [3]}
    space.clean(staged=False)
