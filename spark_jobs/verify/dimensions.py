"""Joins with dimensions of which not all rows count: conditions that verify puts into the author's text by itself.

A query with windows joins each part of a stream with the version of a forward dimension that counts for that part. Here the
dimension has the rows of every version that is read, each with the parts that it is for, and ON says which of them. A
dimension with valid_from has its rows with the time at which the next one of their key begins, and ON compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from partwise.definitions import Dimension, Source
from partwise.parts import Range
from partwise.sql.references import find
from spark_jobs.verify.born import version_rows
from spark_jobs.verify.clauses import Word, name_of, quoted, words

if TYPE_CHECKING:
    from spark_jobs.verify.verify import Checking

_NEXT = frozenset(
    [
        "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI", "WHERE", "GROUP BY", "HAVING",
        "ORDER BY", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "MINUS",
    ]
)  # fmt: skip
#: The column with the parts of a stream that a row of a dimension is for.
OF = "__counts_for"
#: From when on a row is valid, and when the next one of its key begins to be.
SINCE, NEXT = "__since", "__next"


@dataclass(frozen=True)
class JoinedDimension:
    """A dimension behind JOIN: its place, how it is called, the condition, and what else that names."""

    name: str
    start: int
    alias: str
    condition: tuple[int, int]
    beside: frozenset[str]


def joined(text: str, wanted: frozenset[str]) -> Iterator[JoinedDimension]:
    """Joins with the tables `wanted` (names in lower case)."""
    found = words(text)
    for at, word in enumerate(found):
        if name_of(word.text) not in wanted or word.dotted or not found[at - 1].upper.endswith("JOIN"):
            continue
        on = next(n for n in range(at, len(found)) if found[n].upper == "ON" and found[n].depth == word.depth)
        named = [w for w in found[at + 1 : on] if w.upper != "AS"]
        alias = name_of((named or [word])[0].text)
        end = next((n for n in range(on + 1, len(found)) if _ends(found, n, word.depth)), len(found))
        inside = found[on + 1 : end]
        qualifiers = {name_of(a.text) for a, b in pairwise(inside) if b.text == "." and a.name}
        stop = found[end].start if end < len(found) else len(text)
        yield JoinedDimension(
            name_of(word.text), word.start, alias, (found[on].end, stop), frozenset(qualifiers - {alias})
        )


def _ends(found: tuple[Word, ...], at: int, depth: int) -> bool:
    word = found[at]
    called = at + 1 < len(found) and found[at + 1].text == "(" and word.upper in ("LEFT", "RIGHT")
    return word.depth < depth or (word.depth == depth and (word.text == "," or (word.upper in _NEXT and not called)))


def conditioned(checking: Checking, text: str, by_part: bool = True) -> tuple[str, dict[int, int]]:
    """The text in which ON says which rows of a dimension count; by the number of a forward dimension among the tables of
    the text, the number of the stream that it is joined with. `by_part` False: forward dimensions have one version."""
    forward = frozenset(name.lower() for name in checking.graph.forward) if by_part else frozenset[str]()
    wanted = forward | {name.lower() for name in checking.graph.timed}
    joins = list(joined(text, wanted))
    if not joins:
        return text, {}
    tables = find(text).tables
    places = {t.start: at for at, t in enumerate(tables)}
    kinds = [checking.graph[checking.spelled(t.table)].kind for t in tables]
    linked = {name_of(t.alias or t.table): at for at, t in enumerate(tables) if kinds[at] != "dimension"}
    streams = list(linked.values())
    changes: list[tuple[int, int, str]] = []
    of: dict[int, int] = {}
    for join in joins:
        stream = next((linked[name] for name in sorted(join.beside) if name in linked), streams[0])
        linked[join.alias] = stream
        qualifier = quoted(name_of(tables[stream].alias or tables[stream].table))
        start, end = join.condition
        if join.name in forward:
            of[places[join.start]] = stream
            which = f"{quoted(join.alias)}.{OF} = {qualifier}.part"
        else:
            time, row = _time(checking, tables[stream].table, qualifier), quoted(join.alias)
            which = f"({row}.{SINCE} IS NULL OR {time} >= {row}.{SINCE}) AND ({row}.{NEXT} IS NULL OR {time} < {row}.{NEXT})"
        changes.append((start, end, f" ({text[start:end].strip()}) AND {which} "))
    for start, end, new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    return text, of


def _time(checking: Checking, table: str, qualifier: str) -> str:
    """The time of a row: of a source its event time, of a view when its part begins."""
    source = checking.definitions[checking.spelled(table)]
    if not isinstance(source, Source):
        return f"{qualifier}.part_timestamp"
    column = f"{qualifier}.{quoted(source.time.column)}"
    functions = {None: "to_timestamp", "seconds": "timestamp_seconds", "milliseconds": "timestamp_millis"}
    return f"{functions[source.time.unit]}({column})"


def valid_rows(checking: Checking, dimension: str) -> DataFrame:
    """The rows of a dimension with valid_from, from when on they are valid, and when the next one of the key begins."""
    given = checking.definitions[dimension]
    assert isinstance(given, Dimension)
    *key, since = given.key
    rows = checking.stored_rows(dimension).withColumn(SINCE, F.expr(f"to_timestamp({quoted(since)})"))
    times = rows.select(*map(quoted, key), SINCE).distinct()
    by = Window.partitionBy(*map(quoted, key)).orderBy(SINCE)
    times = times.withColumn(NEXT, F.lead(SINCE).over(by))
    named = [F.col(quoted(name)).alias(f"__key_{n}") for n, name in enumerate([*key, SINCE])]
    times = times.select(*named, NEXT)
    same = [F.col(quoted(name)).eqNullSafe(F.col(f"__key_{n}")) for n, name in enumerate([*key, SINCE])]
    together = same[0]
    for other in same[1:]:
        together = together & other
    return rows.join(times, together, "left").drop(*(f"__key_{n}" for n in range(len(same))))


def rows_by_part(checking: Checking, dimension: str, stream: str, span: Range) -> DataFrame:
    """The rows of a forward dimension for each of these parts of a stream."""
    by_version: dict[int, list[tuple[int]]] = {}
    for p in range(span.lo, span.hi + 1):
        if p in checking.known[stream].parts:
            by_version.setdefault(checking.births.version(dimension, stream, p), []).append((p,))
    spark = checking.spark
    found = spark.createDataFrame([], f"{OF} bigint").crossJoin(checking.stored_rows(dimension).limit(0))
    for seq, parts in by_version.items():
        rows = version_rows(checking, dimension, seq)
        found = found.unionByName(spark.createDataFrame(parts, f"{OF} bigint").crossJoin(rows))
    return found
