"""Views that share helpers hold what they would hold with helpers of their own, whoever comes, changes and goes."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.verify.verify import verify

from .workspace import Workspace, assert_same

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("windows")]

SOURCE = """
source: m
part: 1 minute
time: {column: t, tie: n}
columns: {t: timestamp, n: bigint, g: string, x: bigint}
files: landing/*.csv
"""
SUM = "SELECT g, SUM(x) AS s FROM m [WINDOW {} minutes] GROUP BY g"
RUN = "SELECT g, COUNT(*) AS n FROM m PATTERN [{}+] WHERE {} GROUP BY g"


def run_of(*names: str) -> str:
    return RUN.format(", ".join(names), " AND ".join(f"{name}.x > 0" for name in names))


#: Each view is there twice: once it shares, once it does not.
VIEWS = {
    "short": (SUM.format(2), "strategy: merge"),
    "long": (SUM.format(4), "strategy: merge"),
    "named": (
        "SELECT q.g, SUM(q.x) AS total FROM m [WINDOW 3 minutes] q GROUP BY q.g HAVING SUM(q.x) <> 1",
        "strategy: merge",
    ),
    "rolls": (SUM.format(3), "strategy: subtract"),
    "rolls_too": (SUM.format(3).replace("AS s", "AS other"), "strategy: subtract"),
    "partly": (SUM.format(3), "strategy: merge\npartial: true"),
    "total": (SUM.format(3).replace("g, ", "").replace(" GROUP BY g", ""), "strategy: merge"),
    "of_a": ("SELECT COUNT(x) AS n FROM m [WINDOW 2 minutes] WHERE g = 'a' OR g IS NULL", "strategy: merge"),
    "runs": (run_of("a", "b"), ""),
    "longer_runs": (run_of("a", "b", "c"), ""),
}


def defined(*names: str, **changed: str) -> str:
    texts = [SOURCE]
    for name in names:
        query, lines = VIEWS[name]
        for called, more in ((name, ""), (f"own_{name}", "share: false\n")):
            texts.append(f"---\nview: {called}\npart: 1 minute\n{more}{lines}\nquery: {changed.get(name, query)}\n")
    return "".join(texts)


def row(rng: random.Random, part: int, n: int) -> dict[str, Any]:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=part, seconds=n)
    return {"t": at, "n": n, "g": rng.choice(["a", "b", "c", None]), "x": rng.choice([1, 2, 3, -2, None])}


def same_twice(workspace: Workspace, *names: str) -> None:
    for name in names:
        assert_same(workspace.rows(name), workspace.rows(f"own_{name}"), name)


def test_contents_are_those_of_helpers_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(20)
    first = ("short", "rolls", "partly", "runs")
    workspace = Workspace(spark, tmp_path, defined(*first))

    def arrive(*parts: int) -> None:
        found = {p: [row(rng, p, n) for n in range(rng.choice((0, 3, 6)))] for p in parts}
        workspace.replace("m", found)

    arrive(*range(6))
    workspace.run()
    same_twice(workspace, *first)

    everything = tuple(VIEWS)
    workspace.define(defined(*everything))
    serves = {t.serves for n, t in workspace.ledger.graph().tables.items() if n.startswith("m__")}
    assert {
        ("short", "long", "named", "partly", "total", "of_a"),
        ("rolls", "rolls_too"),
        ("runs", "longer_runs"),
    } <= serves
    done = {report.table for report in workspace.run()}
    assert done.isdisjoint([*first, *(f"own_{name}" for name in first)]), "those that were there are left alone"
    same_twice(workspace, *everything)

    arrive(2, 6, 7)
    workspace.run()
    same_twice(workspace, *everything)

    changed = {"short": SUM.format(2).replace(" GROUP", " WHERE x > 1 GROUP")}
    left = tuple(name for name in everything if name not in ("named", "runs"))
    workspace.define(defined(*left, **changed))
    done = {report.table for report in workspace.run()}
    assert {name for name in done if "__" not in name} == {"short", "own_short"}
    arrive(1, 3, 8)
    workspace.run()
    same_twice(workspace, *left)
    found = verify(workspace.engine)
    assert found.different == ()
    assert not workspace.ledger.audit()
