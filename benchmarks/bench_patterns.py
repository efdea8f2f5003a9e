"""A pattern view part by part: ours against recomputing, and against the same written manually (ViewDF, figures 6-8).

The query is the paper's: at least four readings in a row above 10, with their number and sum. Everything reads and writes
Parquet in one warm session. "Recomputed" looks at all rows of the last parts with window functions; "manually" keeps its
own helper of one row per group.

    python benchmarks/bench_patterns.py [--rows 1000000] [--scopes 5,20,50,100] [--figures FOLDER]

Goals at 1,000,000 rows, the paper's size: recomputed over 20 parts / ours >= 10, ours the same whatever the scope and the
share of rows that qualify, ours / manually <= 1.10 with one row per group and part.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from figures import FIGURES, draw
from parquet_tables import Tables
from pyspark.sql import SparkSession

from partwise.compile import InputTable, QueryView, Translation, translate
from spark_jobs.session.session import session

COLUMNS = {"src": "bigint", "t": "timestamp", "loss": "double"}
QUERY = (
    "SELECT src, COUNT(*) AS ct, SUM(loss) AS sum_loss FROM m PATTERN [a, b, c, d+] "
    "WHERE a.loss > 10 AND b.loss > 10 AND c.loss > 10 AND d.loss > 10 GROUP BY src"
)
BY_HAND = """
SELECT n.src, COALESCE(h.ct, 0) + 1 AS ct, COALESCE(h.sum_loss, 0) + n.loss AS sum_loss
FROM m[j] n LEFT JOIN hand[j-1] h ON h.src = n.src WHERE n.loss > 10"""
MANY_BY_HAND = """
SELECT n.src, n.ct + IF(n.bad = 0, COALESCE(h.ct, 0), 0) AS ct,
  n.sum_loss + IF(n.bad = 0, COALESCE(h.sum_loss, 0), 0) AS sum_loss
FROM (
  SELECT src, SUM(bad) AS bad, COUNT_IF(after = 0) AS ct, SUM(loss) FILTER (WHERE after = 0) AS sum_loss
  FROM (SELECT src, loss, bad, SUM(bad) OVER (PARTITION BY src ORDER BY t DESC) AS after
        FROM (SELECT src, t, loss, IF(loss > 10, 0, 1) AS bad FROM m[j]))
  GROUP BY src HAVING COUNT_IF(after = 0) > 0
) n LEFT JOIN hand[j-1] h ON h.src = n.src"""
#: Parts that are computed both ways, one after the other, where the two are compared closely.
PAIRS = 10
#: The first ones are not counted.
WARM = 3
SHOWN_BY_HAND = "SELECT src, ct, sum_loss FROM hand[j] WHERE ct >= 4"
RECOMPUTED = """
SELECT src, COUNT(*) AS ct, SUM(loss) AS sum_loss
FROM (SELECT src, loss, SUM(IF(loss > 10, 0, 1)) OVER (PARTITION BY src ORDER BY t DESC) AS bad FROM m[j-{back}..j])
WHERE bad = 0 GROUP BY src HAVING COUNT(*) >= 4"""


def fill(tables: Tables, parts: int, rows: int, each: int, share: float) -> None:
    """`each` rows per group and part; `share` of all rows is above 10."""
    tables.fill(
        "m",
        tables.numbered(parts, rows).selectExpr(
            "part",
            f"k DIV {each} AS src",
            f"timestamp_seconds(part * 60 + k % {each}) AS t",
            f"IF((xxhash64(id) & 1023) < {int(share * 1024)}, 11D, 1D) + (xxhash64(id, 7) & 7) AS loss",
        ),
    )


@dataclass
class Turn:
    """One part after the other, ours and manually in turns; both must show the same."""

    tables: Tables
    translation: Translation
    each: int

    def part(self, j: int, first: bool) -> tuple[float, float]:
        helper, view = self.translation.views
        if first:
            self.tables.first(helper, j)
            by_hand = BY_HAND if self.each == 1 else MANY_BY_HAND
            self.tables.run(
                by_hand.replace("hand[j-1] h", "(SELECT 1L AS src, 1L AS ct, 1D AS sum_loss WHERE FALSE) h"), j, "hand"
            )
            return 0.0, 0.0
        fast = self.each == 1

        def ours() -> float:
            return self.tables.update(helper, j) + self.tables.update(view, j)

        def theirs() -> float:
            made = self.tables.run(BY_HAND if fast else MANY_BY_HAND, j, "hand")
            return made + self.tables.run(SHOWN_BY_HAND, j, "shown")

        if j % 2:
            a = ours()
            return a, theirs()
        b = theirs()
        return ours(), b

    def check(self, j: int) -> None:
        sums = [
            self.tables.rows(name, j).selectExpr("COUNT(*)", "SUM(ct)", "SUM(sum_loss)").collect()[0]
            for name in ("v", "shown")
        ]
        assert sums[0] == sums[1], sums


def run(
    spark: SparkSession, rows: int, parts: int, each: int, share: float, scopes: list[int], start: int = 0
) -> tuple[list[float], list[float], dict[int, float]]:
    """Seconds of ours and manually for every part since `start`, and of recomputing by scope."""
    with tempfile.TemporaryDirectory() as folder:
        tables = Tables(spark, Path(folder))
        fill(tables, parts, rows, each, share)
        turn = Turn(
            tables, translate(QueryView("v", QUERY, 60), {"m": InputTable("m", "source", 60, COLUMNS, "t")}), each
        )
        ours, hand, again = [], [], {}
        for j in range(start, parts):
            a, b = turn.part(j, first=j == start)
            ours.append(a)
            hand.append(b)
            if j + 1 in scopes:
                sql = RECOMPUTED.format(back=j)
                if not again:
                    tables.run(sql, j, "again")  # warm
                again[j + 1] = tables.run(sql, j, "again")
        turn.check(parts - 1)
        ours, hand = [*[0.0] * start, *ours], [*[0.0] * start, *hand]
        return ours, hand, again


def middle(seconds: list[float], last: int = 5) -> float:
    return statistics.median(seconds[-last:])


def in_pairs(ours: list[float], hand: list[float]) -> float:
    """Ours / manually: what was computed one after the other is compared, which evens out what else the machine does."""
    return statistics.median(a / b for a, b in zip(ours[WARM:], hand[WARM:], strict=True))


Lines = dict[str, list[tuple[float, float]]]


def by_scope(spark: SparkSession, rows: int, scopes: list[int]) -> Lines:
    print(f"\n{rows:,} rows per part, one per group, 10 % of them qualify; median seconds")
    print(f"{'scope':>6} {'recomputed':>11} {'ours':>7} {'manually':>8} {'recomputed/ours':>16} {'ours/manually':>13}")
    ours, hand, again = run(spark, rows, max(scopes), 1, 0.1, scopes)
    lines: Lines = {"recomputed": [], "ours": [], "manually": []}
    for scope in scopes:
        a, b, c = middle(ours[:scope], min(5, scope - 2)), middle(hand[:scope], min(5, scope - 2)), again[scope]
        print(f"{scope:6} {c:10.2f}s {a:6.2f}s {b:7.2f}s {c / a:16.1f} {a / b:13.2f}", flush=True)
        for name, value in (("recomputed", c), ("ours", a), ("manually", b)):
            lines[name].append((scope, value))
    print(f"ours / manually, median of {len(ours) - WARM} pairs: {in_pairs(ours, hand):.2f}")
    return lines


def by_share(spark: SparkSession, rows: int) -> Lines:
    print(f"\n{rows:,} rows per part, one per group; recomputed over 4 parts")
    print(f"{'share':>6} {'recomputed':>11} {'ours':>7} {'manually':>8} {'recomputed/ours':>16} {'ours/manually':>13}")
    lines: Lines = {"recomputed": [], "ours": [], "manually": []}
    for percent in (10, 40, 70, 100):
        ours, hand, again = run(spark, rows, PAIRS + WARM, 1, percent / 100, [4])
        a, b, c = middle(ours, PAIRS), middle(hand, PAIRS), again[4]
        ratio = in_pairs(ours, hand)
        print(f"{percent:5}% {c:10.2f}s {a:6.2f}s {b:7.2f}s {c / a:16.1f} {ratio:13.2f}", flush=True)
        for name, value in (("recomputed", c), ("ours", a), ("manually", b)):
            lines[name].append((percent, value))
    return lines


def by_rows(spark: SparkSession, sizes: list[int]) -> Lines:
    print("\none row per group, 10 % of them qualify; recomputed over 20 parts")
    print(f"{'rows':>9} {'recomputed':>11} {'ours':>7} {'manually':>8} {'recomputed/ours':>16} {'ours/manually':>13}")
    lines: Lines = {"recomputed": [], "ours": [], "manually": []}
    for rows in sizes:
        ours, hand, again = run(spark, rows, 20, 1, 0.1, [20], start=12)
        a, b, c = middle(ours), middle(hand), again[20]
        print(f"{rows:9,} {c:10.2f}s {a:6.2f}s {b:7.2f}s {c / a:16.1f} {a / b:13.2f}", flush=True)
        for name, value in (("recomputed", c), ("ours", a), ("manually", b)):
            lines[name].append((rows, value))
    return lines


def many_rows(spark: SparkSession, rows: int) -> None:
    print(f"\n{rows:,} rows per part, ten per group; median of {PAIRS} pairs")
    print(f"{'share':>6} {'ours':>7} {'manually':>8} {'ours/manually':>13}")
    for percent in (20, 80, 100):
        ours, hand, _ = run(spark, rows, PAIRS + WARM, 10, percent / 100, [])
        a, b = middle(ours, PAIRS), middle(hand, PAIRS)
        print(f"{percent:5}% {a:6.2f}s {b:7.2f}s {in_pairs(ours, hand):13.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--scopes", default="5,20,50,100")
    parser.add_argument("--only", choices=("scope", "share", "rows", "many"), help="one table instead of all")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="folder for the figures")
    asked = parser.parse_args()
    spark = session(conf={"spark.driver.memory": "4g"})
    run(spark, asked.rows // 10, 6, 1, 0.5, [4])  # warm
    rows = f"{asked.rows:,} rows per part"
    if asked.only in (None, "rows"):
        lines = by_rows(spark, [asked.rows // 10, asked.rows * 3 // 10, asked.rows])
        draw(asked.figures / "pattern_rows.svg", "Pattern view", "rows per part", "seconds per part", lines)
    if asked.only in (None, "scope"):
        lines = by_scope(spark, asked.rows, [int(n) for n in asked.scopes.split(",")])
        draw(asked.figures / "pattern_scope.svg", f"Pattern view, {rows}", "parts looked at", "seconds per part", lines)
    if asked.only in (None, "share"):
        lines = by_share(spark, asked.rows)
        draw(
            asked.figures / "pattern_share.svg",
            f"Pattern view, {rows}",
            "% of rows that qualify",
            "seconds per part",
            lines,
        )
    if asked.only in (None, "many"):
        many_rows(spark, asked.rows)


if __name__ == "__main__":
    main()
