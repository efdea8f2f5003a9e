"""Whether two tables hold the same rows, part by part.

Rows have no order, and equal rows count as often as they are there. Floating point columns may differ
by rounding, since sums may be added in another order, some of them by more than others; approximate ones must lie
within given bounds; everything else must be the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, FloatType, MapType

from spark_jobs.verify.rounding import ERROR
from spark_jobs.verify.sketches import HIGH, LOW, SketchBounds

#: How far two values may be apart, as a share of the larger one.
TOLERANCE = {"double": 1e-9, "float": 1e-6}


def different(expected: DataFrame, actual: DataFrame, bounds: SketchBounds | None = None) -> dict[int, tuple[int, int]]:
    """Parts whose rows differ, with how many rows were expected and found. Both have the column `part`."""
    near = bounds.near if bounds is not None else ()
    if bounds is not None:
        expected, actual = expected.drop(*near, *bounds.ignored), _both_bounds(actual.drop(*bounds.ignored), near)
    types = {field.name: field.dataType for field in actual.schema.fields}
    errors = {f.name.removesuffix(ERROR) for f in expected.schema.fields if f.name.endswith(ERROR)}
    if {f.name: f.dataType.simpleString() for f in expected.schema.fields if not f.name.endswith(ERROR)} != {
        name: kind.simpleString() for name, kind in types.items()
    }:
        return _counts(expected, actual, None)
    ends = {name + end: end for name in near for end in (LOW, HIGH)}
    floats = [name for name, kind in types.items() if isinstance(kind, DoubleType | FloatType) or name in ends]
    exact = [name for name in types if name not in floats and name != "part"]
    off = {name: name + ERROR for name in errors}
    both = _side(expected, 0, exact, floats, types, off).unionByName(_side(actual, 1, exact, floats, types, {}))
    groups = both.groupBy("part", *(f"k{at}" for at in range(len(exact))))
    if not floats:
        sums = groups.agg(F.expr("sum(side)").alias("found"), F.expr("count(*)").alias("n"))
        bad = {row.part for row in sums.where("n != 2 * found").select("part").distinct().collect()}
    else:
        # How near: beyond the low or below the high bound, else a share of the value.
        rules = [ends.get(name) or TOLERANCE[types[name].simpleString()] for name in floats]
        lists = [F.expr(f"array_sort(collect_list(f) FILTER (WHERE side = {side}))").alias(n) for side, n in _SIDES]
        close = " AND ".join(_close(f"x.f{at}", f"y.f{at}", rule, f"x.e{at}") for at, rule in enumerate(rules))
        far = f"size(e) != size(a) OR exists(zip_with(e, a, (x, y) -> NOT ({close})), z -> z)"
        # Values that are nearly equal may sort differently on the two sides: those few are paired one by one.
        unequal = groups.agg(*lists).where(far).select("part", "e", "a").toLocalIterator()
        bad = set()
        for row in unequal:
            if row.part not in bad and not _pairs(row.e, row.a, rules):
                bad.add(row.part)
    return _counts(expected, actual, bad) if bad else {}


_SIDES = ((0, "e"), (1, "a"))


def _side(
    rows: DataFrame,
    side: int,
    exact: Sequence[str],
    floats: Sequence[str],
    types: dict[str, DataType],
    errors: dict[str, str],
) -> DataFrame:
    """`errors`: column -> the column that says how far it may be off."""
    columns = [F.lit(side).alias("side"), F.col("part")]
    for at, name in enumerate(exact):
        column = F.col(f"`{name}`")
        whole = isinstance(types[name], MapType)
        columns.append((F.array_sort(F.map_entries(column)) if whole else column).alias(f"k{at}"))
    if floats:
        values = [F.col(f"`{name}`").alias(f"f{at}") for at, name in enumerate(floats)]
        off = [F.col(f"`{errors[name]}`") if name in errors else F.lit(0.0) for name in floats]
        ends = [F.coalesce(each, F.lit(0.0)).alias(f"e{at}") for at, each in enumerate(off)]
        columns.append(F.struct(*values, *ends).alias("f"))
    return rows.select(*columns)


def _both_bounds(rows: DataFrame, near: Sequence[str]) -> DataFrame:
    """A stored value is its own bounds."""
    for name in near:
        for end in (LOW, HIGH):
            rows = rows.withColumn(name + end, F.col(f"`{name}`").cast("double"))
    return rows.drop(*near)


def _close(x: str, y: str, rule: float | str, error: str) -> str:
    """Equal (NaN, -0.0 and NULL included), or nearly; an infinity is near nothing."""
    if isinstance(rule, str):
        return f"({x} <=> {y} OR coalesce({x} {'<=' if rule == LOW else '>='} {y}, false))"
    apart = f"abs({x} - {y})"
    near = f"{apart} < double('infinity') AND {apart} <= greatest({rule} * abs({x}), {rule} * abs({y}), {error})"
    return f"({x} <=> {y} OR coalesce({near}, false))"


def _pairs(expected: list[Row], actual: list[Row], rules: Sequence[float | str]) -> bool:
    """Whether each expected row finds a near one of its own."""
    left = list(actual)
    for row in expected:
        found = next((at for at, other in enumerate(left) if _near(row, other, rules)), None)
        if found is None:
            return False
        left.pop(found)
    return not left


def _near(a: Row, b: Row, rules: Sequence[float | str]) -> bool:
    size = len(rules)
    return all(_same(x, y, rule, e) for x, y, rule, e in zip(a[:size], b[:size], rules, a[size:], strict=True))


def _same(x: float | None, y: float | None, rule: float | str, error: float) -> bool:
    if x is None or y is None:
        return x is y
    if isinstance(rule, str):
        return x <= y if rule == LOW else x >= y
    return (math.isnan(x) and math.isnan(y)) or math.isclose(x, y, rel_tol=rule, abs_tol=error)


def _counts(expected: DataFrame, actual: DataFrame, parts: set[int] | None) -> dict[int, tuple[int, int]]:
    """Rows of these parts (of all that differ in nothing but their types, for None) on both sides."""
    found: dict[int, list[int]] = {}
    for side, rows in enumerate((expected, actual)):
        for row in rows.groupBy("part").count().collect():
            if parts is None or row[0] in parts:
                found.setdefault(row[0], [0, 0])[side] = row[1]
    return {part: (counts[0], counts[1]) for part, counts in found.items()}
