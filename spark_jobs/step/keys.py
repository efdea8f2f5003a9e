"""Sets of keys, and rows that have one of them. NULL is a key like any other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

#: So many keys are written into the query, where Spark skips files by them; more are joined.
LITERALS = 100
#: With more touched keys than this a part is computed again.
MOST = 20_000


@dataclass(frozen=True)
class TouchedKeys:
    """Values of `columns` of the result, each once."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]

    def projected(self, columns: Sequence[str]) -> TouchedKeys:
        """What is left of them in some of the columns."""
        at = [self.columns.index(c) for c in columns]
        values = dict.fromkeys(tuple(value[p] for p in at) for value in self.values)
        return TouchedKeys(tuple(columns), tuple(self.types[p] for p in at), tuple(values))

    @property
    def are_few(self) -> bool:
        return len(self.values) <= LITERALS

    def condition(self, expressions: Sequence[str]) -> Column:
        """Whether these expressions have one of the values; never NULL. For few keys."""
        if len(expressions) == 1:
            expression, values = F.expr(expressions[0]), [value[0] for value in self.values]
            known = expression.isin([v for v in values if v is not None])
            found = (known | expression.isNull()) if None in values else known
            return F.coalesce(found, F.lit(False))
        equal = (
            reduce(Column.__and__, (F.expr(e).eqNullSafe(F.lit(v)) for e, v in zip(expressions, value, strict=True)))
            for value in self.values
        )
        return reduce(Column.__or__, equal, F.lit(False))

    def join(self, spark: SparkSession, rows: DataFrame, expressions: Sequence[str], how: str) -> DataFrame:
        """Rows with one of the keys (`left_semi`) or without (`left_anti`)."""
        names = [f"__key{at}" for at in range(len(self.columns))]
        schema = ", ".join(f"{name} {kind}" for name, kind in zip(names, self.types, strict=True))
        listed = F.broadcast(spark.createDataFrame(list(self.values), schema))
        on = reduce(Column.__and__, (F.expr(e).eqNullSafe(F.expr(n)) for e, n in zip(expressions, names, strict=True)))
        return rows.join(listed, on, how)


@dataclass(frozen=True)
class AnyOf:
    """Several sets joined by OR: a row is touched if it is in one of them."""

    spark: SparkSession
    sets: tuple[TouchedKeys, ...]

    def __bool__(self) -> bool:
        return any(keys.values for keys in self.sets)

    @property
    def count(self) -> int:
        return sum(len(keys.values) for keys in self.sets)

    @property
    def can_be_joined(self) -> bool:
        """Several sets only where all are few."""
        return len(self.sets) == 1 or all(keys.are_few for keys in self.sets)

    def inside(self, rows: DataFrame, by: Sequence[Sequence[tuple[str, str]]] | None = None) -> DataFrame:
        """Rows that are touched. `by`: for each set (column of it, SQL over these rows); the columns themselves by default."""
        return self._some(rows, by, "left_semi")

    def outside(self, rows: DataFrame) -> DataFrame:
        return self._some(rows, None, "left_anti")

    def _some(self, rows: DataFrame, by: Sequence[Sequence[tuple[str, str]]] | None, how: str) -> DataFrame:
        pairs = by if by is not None else [[(c, f"`{c}`") for c in keys.columns] for keys in self.sets]
        cut = [keys.projected([c for c, _ in each]) for keys, each in zip(self.sets, pairs, strict=True)]
        texts = [[sql for _, sql in each] for each in pairs]
        if all(keys.are_few for keys in cut):
            found = reduce(Column.__or__, (k.condition(t) for k, t in zip(cut, texts, strict=True)))
            return rows.where(found if how == "left_semi" else ~found)
        assert len(cut) == 1
        return cut[0].join(self.spark, rows, texts[0], how)
