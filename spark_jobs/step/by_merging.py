"""Repair by merging: what the changed rows of one reference give is added to the part, or taken away.

The query runs over the changed rows alone, joined with what the other references hold. Rows that came are rows of the
result that come; with one GROUP BY on top they are partials, which are added to those of their groups as published.
Unlike a repair by keys this is right only for the pair of a content and the versions it was computed from: both come
from the same pin. A few of the touched groups are computed again as a guard where that costs little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from partwise.relation import Delta
from partwise.storage import schema as schemas
from spark_jobs.step import read
from spark_jobs.step.changed_rows import Changed
from spark_jobs.step.compute import Computing
from spark_jobs.step.keys import MOST, AnyOf, TouchedKeys
from spark_jobs.step.many import Many

_SIGN = "__sign"
#: So many of the touched groups are computed again and compared.
SAMPLE = 3


class CannotMerge(Exception):
    """This change cannot be merged; the part is repaired in another way."""


@dataclass(frozen=True)
class Merging:
    """The changed rows of one reference, by its number in the text, and how they are merged."""

    occurrence: int
    changes: Sequence[Changed]
    delta: Delta

    def rows(self, computing: Computing, many: Many, parts: list[int]) -> DataFrame:
        """What the changed rows give, with a sign: 1 for rows that came, -1 for rows that went."""
        spark = computing.engine.spark
        came = self._given(computing, many, parts, read.union([c.more(spark) for c in self.changes])).withColumn(
            _SIGN, F.lit(1)
        )
        gone = [rows for c in self.changes if (rows := c.fewer(spark)) is not None]
        if not gone:
            return came
        went = read.union(gone)
        if (self.delta.groups is None or self.delta.extremes) and went.limit(1).count():
            raise CannotMerge("rows went, and what they showed cannot be taken away")
        return came.unionByName(self._given(computing, many, parts, went).withColumn(_SIGN, F.lit(-1)))

    def _given(self, computing: Computing, many: Many, parts: list[int], changed: DataFrame) -> DataFrame:
        computing.filtered = lambda n, rows: changed if n == self.occurrence else rows
        computing.changing = self.occurrence
        try:
            return many.rows(parts)
        finally:
            computing.filtered = computing.changing = None

    def touched(self, computing: Computing, given: DataFrame, types: dict[str, str]) -> AnyOf:
        """The groups of the changed rows; none where rows are only added."""
        groups = self.delta.groups or ()
        if not groups:
            return AnyOf(computing.engine.spark, (TouchedKeys((), (), ()),))
        found = given.select(*(F.col(f"`{g}`") for g in groups)).distinct().limit(MOST + 1).collect()
        if len(found) > MOST:
            raise CannotMerge(f"more than {MOST:,} groups are touched")
        kinds = tuple(types[g] for g in groups)
        return AnyOf(computing.engine.spark, (TouchedKeys(groups, kinds, tuple(tuple(row) for row in found)),))

    def merged(self, old: DataFrame, given: DataFrame) -> DataFrame:
        """The groups as they are now: `old` are their rows as published."""
        if self.delta.groups is None:
            return given.drop(_SIGN)
        columns = {(p.function, p.argument): f"`{p.column}`" for p in self.delta.partials}
        rows = old.withColumn(_SIGN, F.lit(1)).unionByName(given)
        made = [
            self._partial(function, argument, columns).alias(columns[function, argument].strip("`"))
            for function, argument in columns
        ]
        by = [schemas.PART, schemas.PART_TIMESTAMP, *(f"`{g}`" for g in self.delta.groups)]
        found = rows.groupBy(*(F.col(c) for c in by)).agg(*made)
        # A group without rows is gone.
        return found.where(F.col(columns["count_all", ""]) != 0)

    def _partial(self, function: str, argument: str, columns: dict[tuple[str, str], str]) -> Column:
        column = columns[function, argument]
        if function in ("min", "max"):
            return F.expr(f"{function}({column})")
        total = f"sum({_SIGN} * {column})"
        if function == "sum":  # of nothing but NULLs it is NULL
            return F.expr(f"CASE WHEN sum({_SIGN} * {columns['count', argument]}) <> 0 THEN {total} END")
        return F.expr(f"CAST({total} AS BIGINT)")


def sample(keys: AnyOf) -> AnyOf | None:
    """A few touched groups, always the same ones."""
    (groups,) = keys.sets
    if not groups.columns:
        return None
    chosen = sorted(groups.values, key=lambda value: hash_of(value))[:SAMPLE]
    return AnyOf(keys.spark, (TouchedKeys(groups.columns, groups.types, tuple(chosen)),))


def hash_of(value: tuple[object, ...]) -> bytes:
    from hashlib import blake2b

    return blake2b(repr(value).encode(), digest_size=8).digest()
