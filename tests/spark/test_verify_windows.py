"""`verify` computes the aggregates of a window as they are documented, whatever Spark calls them or takes first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.verify.verify import verify

from .workspace import Workspace

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("verify")]

NAMES = (
    "ARG_MAX(x, k) AS a, ARG_MIN(x, k) AS b, MAX_BY(x, k) AS c, MIN_BY(x, k) AS d, COUNT_IF(k > 0) AS e, COUNTIF(k > 0) AS f, "
    "EVERY(k > 0) AS g1, ANY(k > 0) AS g2, SOME(k > 0) AS g3, MEAN(k) AS h, STD(k) AS i, STDDEV(k) AS l, VARIANCE(k) AS m, "
    "FIRST_VALUE(x) AS n, LAST_VALUE(x) IGNORE NULLS AS o, FIRST(x, true) AS p, CORR(k, x) AS q, MEDIAN(k) AS r, "
    "PERCENTILE_CONT(0.4) WITHIN GROUP (ORDER BY k) AS r1, PERCENTILE_CONT(array(0.1, 0.9)) WITHIN GROUP (ORDER BY x ASC) AS r2"
)
VIEWS = f"""
source: tied
part: 1 minute
time: {{column: t, tie: seq}}
columns: {{t: timestamp, seq: int, g: string, k: int, x: int, b: bigint}}
files: landing/*.csv
---
source: untied
part: 1 minute
time: t
columns: {{t: timestamp, seq: int, g: string, k: int, x: int}}
files: other/*.csv
---
dimension: nodes
columns: {{node: string, seq: int, region: string}}
files: nodes/*.csv
---
view: by_name
part: 1 minute
strategy: merge
query: |
  SELECT g, {NAMES}, MIN_BY(x, -- the best one
    k) FILTER (WHERE x > 1 OR k > 1) AS s
  FROM tied [WINDOW 2 minutes] GROUP BY g HAVING ARG_MAX(k, k) IS NOT NULL AND a IS NOT NULL
---
view: by_value
part: 1 minute
strategy: merge
query: SELECT g, {NAMES} FROM untied [WINDOW 2 minutes] GROUP BY g
---
view: joined
part: 1 minute
strategy: recompute
query: |
  SELECT n.region, FIRST(m.x) AS a, LAST(m.x) AS b, ARG_MIN(x, k) AS c, COUNT(*) AS n
  FROM tied [WINDOW 2 minutes] m LEFT JOIN nodes n ON n.node = m.g GROUP BY n.region
---
view: steps
part: 1 minute
query: |
  SELECT g, PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY x) FILTER (WHERE k > 0) AS d, PERCENTILE(x, 0.3) AS c
  FROM tied [WINDOW 2 minutes] GROUP BY g
---
view: totals
part: 1 minute
strategy: merge
query: |
  SELECT g, SUM(b) AS s, SUM(m.b DIV 1) FILTER (WHERE seq < 9) AS f, SUM(k) AS k
  FROM tied [WINDOW 2 minutes] m GROUP BY g HAVING SUM(b) < 0
---
view: near
part: 1 minute
query: |
  SELECT g, ARG_MAX(x, k) AS a, APPROX_COUNT_DISTINCT(x) AS d, COUNTIF(k > 0) AS c, APPROX_PERCENTILE(x, 0.5, 5000) AS p
  FROM tied [WINDOW 2 minutes] GROUP BY g
---
view: sums
part: 1 minute
update: SELECT g, k, SUM(x) AS x FROM untied[j] GROUP BY g, k
---
view: of_view
part: 1 minute
query: SELECT g, FIRST(x) AS a, LAST(x) AS b, MAX_BY(x, k) AS c FROM sums [WINDOW 2 minutes] GROUP BY g
"""
EACH = ("by_name", "by_value", "joined", "steps", "totals", "near", "of_view")


def row(minute: int, seq: int, k: int | None, x: int | None) -> dict[str, Any]:
    """All rows of a minute have the same time."""
    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)
    return {"t": time, "seq": seq, "g": "p", "k": k, "x": x}


@pytest.fixture(scope="module")
def workspace(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    found = Workspace(spark, tmp_path_factory.mktemp("verify_windows"), VIEWS)
    # Neither in the order of seq nor in that of x; the smallest and the largest key stand there twice.
    rows = [(5, 1, 20), (1, 1, 40), (4, 3, 10), (2, 3, 30), (3, 2, None), (6, None, 50)]
    wide = [
        2**63 - 1,
        2**63 - 1,
        2**63 - 1,
        -(2**63),
        -(2**63),
        -(2**63),
    ]  # the total fits, what comes before it does not
    parts = {p: [row(p, *values) for values in rows] for p in range(3)}
    found.replace("untied", parts)
    found.replace("tied", {p: [{**r, "b": b} for r, b in zip(parts[p], wide, strict=True)] for p in parts})
    found.dimension("nodes", [{"node": "p", "seq": 1, "region": "north"}])
    found.run()
    return found


def test_ties_are_decided_as_documented(workspace: Workspace) -> None:
    [tied] = workspace.rows("by_name")[1]
    assert {k: tied[k] for k in "abcdnop"} == {"a": 10, "b": 40, "c": 10, "d": 40, "n": 40, "o": 50, "p": 40}
    [untied] = workspace.rows("by_value")[1]  # among rows of equal time their values decide
    assert {k: untied[k] for k in "abcdnop"} == {"a": 30, "b": 20, "c": 30, "d": 20, "n": None, "o": 50, "p": 10}


def test_percentiles(workspace: Workspace) -> None:
    """Of k: 1, 1, 2, 3, 3 twice; of x where k is known: 10, 20, 30, 40 twice."""
    [row] = workspace.rows("by_name")[1]
    assert (row["r1"], row["r2"]) == (pytest.approx(1.6), [10.0, 50.0])
    [row] = workspace.rows("steps")[1]
    assert row["d"] == 20.0


@pytest.mark.parametrize("view", EACH)
def test_verify_agrees(workspace: Workspace, view: str) -> None:
    result = verify(workspace.engine, [view])
    assert (result.checked, result.different) == (2, ())
