"""The generated SQL on Spark itself: the same queries and histories as on DuckDB, and what only Spark can do."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from partwise.sql import splice
from partwise.translation import MANY_ROWS, InputTable, QueryView, Translation, translate
from spark_jobs.trouble import SPARK_ERRORS
from tests.translation import pattern_oracle, window_oracle
from tests.translation.duck import Row, Runner, catch_up, repair
from tests.translation.test_patterns_random import TABLE as PATTERN_TABLE
from tests.translation.test_patterns_random import bag as pattern_bag
from tests.translation.test_patterns_random import translated
from tests.translation.test_windows_random import TABLE as WINDOW_TABLE
from tests.translation.test_windows_random import compare as compare_windows

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def spark(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set("spark.sql.shuffle.partitions", "1")  # a handful of rows
    yield spark
    spark.conf.set("spark.sql.shuffle.partitions", "2")


class Sparkling(Runner):
    """Tables are temporary views over rows that this process keeps."""

    def __init__(self, spark: SparkSession, translation: Translation, table: InputTable, rows: list[Row]) -> None:
        super().__init__(translation)
        self.spark, self.table, self.source = spark, table, list(rows)
        self.kept: dict[str, tuple[Any, list[Any]]] = {}
        self.schema = "part bigint, " + ", ".join(f"{n} {k}" for n, k in (table.columns or {}).items())
        self.show_source()

    def show_source(self) -> None:
        names = [field.split()[0] for field in self.schema.split(", ")]
        data = [tuple(row[n] for n in names) for row in self.source]
        self.spark.createDataFrame(data, self.schema).createOrReplaceTempView(self.table.name)

    def run_text(self, sql: str, index: str, part: int) -> tuple[list[str], list[tuple[Any, ...]]]:
        def replace(found: Any) -> str:
            low, high = found.reference.requires(part)
            return f"(SELECT * EXCEPT (part) FROM {found.table} WHERE part BETWEEN {low} AND {high})"

        frame = self.spark.sql(splice(sql, replace, index))
        self.last_schema = frame.schema
        return frame.columns, [tuple(row) for row in frame.collect()]

    def store(self, name: str, names: list[str], part: int, rows: list[tuple[Any, ...]], sql: str, index: str) -> None:
        schema, old = self.kept.get(name, (self.last_schema, []))
        assert [f.dataType for f in schema] == [f.dataType for f in self.last_schema], f"types of {name} moved"
        everything = [row for row in old if row[-1] != part] + [(*row, part) for row in rows]
        self.kept[name] = (schema, everything)
        whole = StructType([*(StructField(f.name, f.dataType) for f in schema), StructField("part", LongType())])
        self.spark.createDataFrame(everything, whole).createOrReplaceTempView(name)


def spark_order(translation: Translation) -> Any:
    """As the struct says, NULL first."""
    assert translation.fold is not None
    names = [n.strip() for n in translation.fold.rows.removeprefix("struct(").removesuffix(")").split(",")]
    return lambda row: tuple((row[n] is not None, row[n] if row[n] is not None else 0) for n in names)


@pytest.mark.parametrize("seed", range(5))
def test_patterns(spark: SparkSession, seed: int) -> None:
    rng = random.Random(seed)
    done = 0
    while done < 4:
        pattern = pattern_oracle.random_pattern(rng)
        translation = translated(pattern, PATTERN_TABLE)
        if translation is None:
            continue
        history = pattern_oracle.random_history(rng, 3, rng.choice([1, 3]))
        runner = Sparkling(spark, translation, PATTERN_TABLE, [r for rows in history.values() for r in rows])
        catch_up(runner, {"s": set(history)})
        for part in history:
            expected = pattern.report(history, part, spark_order(translation))
            assert pattern_bag(runner.rows("v", part)) == pattern_bag(expected), f"part {part}: {pattern.sql()}"
        check_fast(runner, translation, pattern, history)
        done += 1


def check_fast(runner: Runner, translation: Translation, pattern: Any, history: dict[int, list[Row]]) -> None:
    helper, part = translation.views[0], max(history)
    kept = [r for r in history[part] if not pattern.row_filter or pattern.row_filter.holds(r, None)]
    groups = [r["g"] if pattern.grouped else None for r in kept]
    assert helper.fast_update is not None
    if len(set(groups)) < len(groups):
        with pytest.raises(SPARK_ERRORS, match=MANY_ROWS):
            runner.run_text(helper.fast_update, "j", part)
    else:
        key = pattern.grouped and None not in groups
        for text in (helper.fast_update, *([helper.unique_update or ""] if key else [])):
            names, rows = runner.run_text(text, "j", part)
            found = [dict(zip(names, row, strict=True)) for row in rows]
            assert pattern_bag(found) == pattern_bag(runner.rows(helper.name, part))


@pytest.mark.parametrize("strategy", ["recompute", "merge", "subtract"])
def test_every_aggregate(spark: SparkSession, strategy: str) -> None:
    """In groups of a few aggregates, with a late row."""
    wanted = [a for a in window_oracle.ALL if not (a.stuck and strategy != "recompute")]
    rng = random.Random(strategy)
    for start in range(0, len(wanted), 10):
        some = tuple(wanted[start : start + 10])
        if strategy == "subtract" and not any(a.exact for a in some):
            continue
        query = window_oracle.WindowQuery(
            some, "g", ("h >= 0", lambda row: True), ("", lambda rows: True), 2, 1, strategy, start == 10
        )
        check_window(spark, query, rng)


@pytest.mark.parametrize("seed", range(4))
def test_windows(spark: SparkSession, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(2):
        check_window(spark, window_oracle.random_query(rng, rng.sample(window_oracle.ALL, 2)), rng)


def check_window(spark: SparkSession, query: window_oracle.WindowQuery, rng: random.Random) -> None:
    history = window_oracle.random_history(rng, 12, 4 if query.slide == 1 else 6)
    view = QueryView("v", query.sql(), 60 * query.slide, strategy=query.strategy, partial=query.partial)  # type: ignore[arg-type]
    translation = translate(view, {"s": WINDOW_TABLE})
    runner = Sparkling(spark, translation, WINDOW_TABLE, [r for rows in history.values() for r in rows])
    catch_up(runner, {"s": set(history)})
    compare_windows(runner, query, history)
    late = window_oracle.random_row(rng, 13, 77)
    history[13] = [*history[13], late]
    runner.source.append(late)
    runner.show_source()
    repair(runner, {("s", 13)})
    compare_windows(runner, query, history)


def test_sketches(spark: SparkSession) -> None:
    """Exact below the size of the sketch, and the same whether merged or taken over the rows at once."""
    table = InputTable("s", "source", 60, {"g": "string", "ts": "bigint", "x": "int", "f": "double"}, "ts")
    rows = [{"part": p, "g": "pq"[k % 2], "ts": p, "x": (k * 7 + p) % 23, "f": None if k % 5 == 0 else k / 2}
            for p in range(3) for k in range(40)]  # fmt: skip
    rows.append({"part": 2, "g": "null", "ts": 2, "x": None, "f": None})
    text = (
        "SELECT g, APPROX_COUNT_DISTINCT(x) AS a, APPROX_COUNT_DISTINCT(f, 0.01) AS b, APPROX_PERCENTILE(x, 0.5) AS c, "
        "APPROX_PERCENTILE(f, 0.5) AS d FROM s [WINDOW 3 minutes] GROUP BY g"
    )
    for strategy in ("merge", "recompute"):
        translation = translate(QueryView("v", text, 60, strategy=strategy), {"s": table})  # type: ignore[arg-type]
        runner = Sparkling(spark, translation, table, rows)
        catch_up(runner, {"s": {0, 1, 2}})
        found = {row["g"]: row for row in runner.rows("v", 2)}
        assert found["null"] == {"g": "null", "a": 0, "b": 0, "c": None, "d": None}
        for group in "pq":
            values = [r for r in rows if r["g"] == group]
            halves = sorted(r["f"] for r in values if r["f"] is not None)
            wholes = sorted(r["x"] for r in values)
            assert found[group]["a"] == len(set(wholes))
            assert found[group]["b"] == len(set(halves))
            assert abs(found[group]["c"] - wholes[len(wholes) // 2]) <= 1
            assert abs(found[group]["d"] - halves[len(halves) // 2]) <= 2


def test_the_paper_on_spark(spark: SparkSession) -> None:
    table = InputTable(
        "m", "source", 60, {"t": "timestamp", "src": "string", "dest": "string", "loss": "decimal(5,1)"}, "t"
    )
    query = (
        "SELECT src, dest, COUNT(*) AS ct, SUM(loss) AS sum_loss FROM m PATTERN [a, b, c, d+] "
        "WHERE a.loss > 10 AND b.loss > 10 AND c.loss > 10 AND d.loss > 10 GROUP BY src, dest"
    )
    translation = translate(QueryView("high_loss", query, 60), {"m": table})
    losses = [6, 12, 15, 24, 20, 16, 7]
    rows = [{"part": p, "t": None, "src": "a", "dest": None, "loss": Decimal(x)} for p, x in enumerate(losses)]
    runner = Sparkling(spark, translation, table, rows)
    catch_up(runner, {"m": set(range(7))})
    shown = {p: [(r["ct"], r["sum_loss"]) for r in runner.rows("high_loss", p)] for p in range(7)}
    assert shown == {0: [], 1: [], 2: [], 3: [], 4: [(4, 71)], 5: [(5, 87)], 6: []}


def test_types_of_an_unknown_view_are_borrowed(spark: SparkSession) -> None:
    """A view's column types are not known to the translator; MIN, FIRST and comparisons do without."""
    table = InputTable("u", "view", 60, {"g": None, "x": None})
    query = "SELECT g, MIN(x) AS low, FIRST(x) AS first_x, LAST(x) AS last_x FROM u PATTERN [a, b+] WHERE b.x > a.x AND b.x > PREV(b.x) GROUP BY g"
    translation = translate(QueryView("v", query, 60), {"u": table})
    real = InputTable("u", "view", 60, {"g": "string", "x": "decimal(9,3)"})
    rows = [{"part": p, "g": "a", "x": Decimal(x)} for p, x in enumerate([5, 3, 4, 9, 1])]
    runner = Sparkling(spark, translation, real, rows)
    catch_up(runner, {"u": set(range(5))})
    shown = [[(r["low"], r["first_x"], r["last_x"]) for r in runner.rows("v", p)] for p in range(5)]
    assert shown == [[], [], [(3, 3, 4)], [(3, 3, 9)], []]
