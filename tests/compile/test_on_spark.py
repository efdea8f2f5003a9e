"""The generated SQL on Spark itself: the same queries and histories as on DuckDB, and what only Spark can do."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from partwise.compile import MANY_ROWS, InputTable, QueryView, Translation, translate
from partwise.sql import splice
from spark_jobs.retry import SPARK_ERRORS
from tests.compile import pattern_oracle, window_oracle
from tests.compile.duck import Row, Runner, catch_up, repair
from tests.compile.sorting import sorted_by
from tests.compile.test_patterns_random import TABLE as PATTERN_TABLE
from tests.compile.test_patterns_random import bag as pattern_bag
from tests.compile.test_patterns_random import translated
from tests.compile.test_windows_random import INPUTS
from tests.compile.test_windows_random import TABLE as WINDOW_TABLE
from tests.compile.test_windows_random import compare as compare_windows
from tests.thinned import thinned

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
            if found.reference is None:
                return str(found.table)
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
    texts = [text.split(" AS ")[0] for text in sorted_by(translation)]
    return lambda row: tuple(
        (v is not None, v if v is not None else 0) for v in (pattern_oracle.value(text, row) for text in texts)
    )


@pytest.mark.parametrize("seed", thinned(range(5), 3))
def test_patterns(spark: SparkSession, seed: int) -> None:
    """With a late row in every second one."""
    rng = random.Random(seed)
    done = 0
    while done < 5:
        pattern = pattern_oracle.random_island(rng) if done == 0 else pattern_oracle.random_pattern(rng)
        translation = translated(pattern, PATTERN_TABLE)
        if translation is None:
            continue
        history = pattern_oracle.random_history(rng, 3 if pattern.ratio == 1 else 4, rng.choice([1, 3]) if done else 4)
        runner = Sparkling(spark, translation, PATTERN_TABLE, [r for rows in history.values() for r in rows])
        catch_up(runner, {"s": set(history)})
        compare_patterns(runner, pattern, history, translation)
        check_fast(runner, translation, pattern, history)
        if done % 2:
            part = rng.choice(sorted(history)[:2])
            late = pattern_oracle.random_row(rng, part, "p", 1000 + rng.randint(-2000, 2000))
            history = {**history, part: [*history[part], late]}
            runner.source.append(late)
            runner.show_source()
            repair(runner, {("s", part)})
            compare_patterns(runner, pattern, history, translation)
        done += 1


def compare_patterns(
    runner: Runner, pattern: pattern_oracle.Pattern, history: dict[int, list[Row]], translation: Translation
) -> None:
    for part in pattern.parts(history):
        expected = pattern.report(history, part, spark_order(translation))
        assert pattern_bag(runner.rows("v", part)) == pattern_bag(expected), f"part {part}: {pattern.sql()}"


def check_fast(
    runner: Runner, translation: Translation, pattern: pattern_oracle.Pattern, history: dict[int, list[Row]]
) -> None:
    helper, part = translation.views[0], pattern.parts(history)[-1]
    assert helper.fast_update is not None
    if pattern.most(history, part) > 1:
        with pytest.raises(SPARK_ERRORS, match=MANY_ROWS):
            runner.run_text(helper.fast_update, "j", part)
    else:
        for text in (helper.fast_update, *([helper.unique_update or ""] if pattern.is_unique(history, part) else [])):
            names, rows = runner.run_text(text, "j", part)
            found = [dict(zip(names, row, strict=True)) for row in rows]
            assert pattern_bag(found) == pattern_bag(runner.rows(helper.name, part))


@pytest.mark.parametrize("strategy", thinned(["subtract", "merge", "recompute"], 1))
def test_every_aggregate(spark: SparkSession, strategy: str) -> None:
    """In groups of a few aggregates, with a late row."""
    wanted = [*window_oracle.ALL, *window_oracle.EITHER]
    rng = random.Random(strategy)
    for start in range(0, len(wanted), 10):
        some = tuple(wanted[start : start + 10])
        if strategy == "subtract" and not any(a.exact for a in some):
            continue
        query = window_oracle.WindowQuery(
            some, "g", ("h >= 0", lambda row: True), ("", lambda rows: True), 2, 1, strategy, start == 10
        )
        check_window(spark, query, rng)


@pytest.mark.parametrize("seed", thinned(range(4), 2))
def test_windows(spark: SparkSession, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(2):
        check_window(spark, window_oracle.random_query(rng, rng.sample(window_oracle.ALL, 2)), rng)


def types(schema: StructType) -> list[str]:
    """Of the aggregates r0, r1, ..."""
    return [field.dataType.simpleString() for field in schema if re.fullmatch(r"r\d+", field.name)]


def own_schema(spark: SparkSession, query: window_oracle.WindowQuery) -> StructType:
    """What Spark itself makes of the query over the rows; ARG_MAX and ARG_MIN have another name there."""
    text = re.sub(r"\bARG_(MAX|MIN)\b", r"\1_BY", re.sub(r"\[WINDOW[^]]*\]", "", query.sql()))
    return spark.sql(text).schema


def check_window(spark: SparkSession, query: window_oracle.WindowQuery, rng: random.Random) -> None:
    history = window_oracle.random_history(rng, 12, 4 if query.slide == 1 else 6)
    view = QueryView("v", query.sql(), 60 * query.slide, strategy=query.strategy, partial=query.partial)  # type: ignore[arg-type]
    translation = translate(view, INPUTS)
    spark.createDataFrame(list(window_oracle.NODES.items()), "node string, region string").createOrReplaceTempView(
        "nodes"
    )
    runner = Sparkling(spark, translation, WINDOW_TABLE, [r for rows in history.values() for r in rows])
    catch_up(runner, {"s": set(history)})
    if runner.built["v"]:
        assert types(runner.last_schema)[: len(query.aggregates)] == types(own_schema(spark, query))
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
        "APPROX_PERCENTILE(f, 0.5) AS d, APPROX_PERCENTILE(x, 0.5, 10000) AS e FROM s [WINDOW 3 minutes] GROUP BY g"
    )
    for strategy in ("merge", "recompute"):
        translation = translate(QueryView("v", text, 60, strategy=strategy), {"s": table})  # type: ignore[arg-type]
        runner = Sparkling(spark, translation, table, rows)
        catch_up(runner, {"s": {0, 1, 2}})
        found = {row["g"]: row for row in runner.rows("v", 2)}
        assert found["null"] == {"g": "null", "a": 0, "b": 0, "c": None, "d": None, "e": None}
        for group in "pq":
            values = [r for r in rows if r["g"] == group]
            halves = sorted(r["f"] for r in values if r["f"] is not None)
            wholes = sorted(r["x"] for r in values)
            assert found[group]["a"] == len(set(wholes))
            assert found[group]["b"] == len(set(halves))
            assert abs(found[group]["c"] - wholes[len(wholes) // 2]) <= 1
            assert abs(found[group]["e"] - wholes[len(wholes) // 2]) <= 1
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


def test_sums_without_a_fold_are_added_up_in_the_order_of_the_rows(spark: SparkSession) -> None:
    """To the last bit, so a part is the same whether it is computed alone or with many others in one pass."""
    table = InputTable("m", "source", 60, {"g": "string", "ts": "bigint", "x": "double"}, "ts")
    query = "SELECT g, SUM(x) AS s FROM m PATTERN [a, b+] WHERE a.x > 0 AND b.x > 0 GROUP BY g"
    translation = translate(QueryView("v", query, 60), {"m": table})
    assert "aggregate(" not in translation.views[0].update
    rng = random.Random(1)
    rows = [{"part": n // 20, "g": "a", "ts": n, "x": 10 ** rng.uniform(-9, 9)} for n in range(60)]
    runner = Sparkling(spark, translation, table, rng.sample(rows, len(rows)))
    catch_up(runner, {"m": {0, 1, 2}})
    total, expected = 0.0, []
    for n, row in enumerate(rows, start=1):
        total += row["x"]
        expected += [total] if n % 20 == 0 else []
    assert [runner.rows("v", part)[0]["s"] for part in range(3)] == expected


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
