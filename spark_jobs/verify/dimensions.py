"""Joins with dimensions of which not all rows count: conditions that verify puts into the author's text by itself.

A query with windows joins each part of a stream with the version of a forward dimension that counts for that part. Here the
dimension has the rows of every version that is read, each with the parts that it is for, and ON says which of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

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


def conditioned(checking: Checking, text: str) -> tuple[str, dict[int, int]]:
    """The text in which ON says which rows of a dimension count; by the number of a forward dimension among the tables of
    the text, the number of the stream that it is joined with."""
    forward = frozenset(name.lower() for name in checking.graph.forward)
    joins = list(joined(text, forward))
    if not joins:
        return text, {}
    tables = find(text).tables
    aliases = {name_of(t.alias or t.table): at for at, t in enumerate(tables)}
    places = {t.start: at for at, t in enumerate(tables)}
    linked = {alias: at for alias, at in aliases.items() if tables[at].table.lower() not in forward}
    streams = [at for at, t in enumerate(tables) if checking.graph[checking.spelled(t.table)].kind != "dimension"]
    changes: list[tuple[int, int, str]] = []
    of: dict[int, int] = {}
    for join in joins:
        stream = next((linked[name] for name in sorted(join.beside) if name in linked), streams[0])
        linked[join.alias] = of[places[join.start]] = stream
        start, end = join.condition
        which = f"{quoted(join.alias)}.{OF} = {quoted(name_of(tables[stream].alias or tables[stream].table))}.part"
        changes.append((start, end, f" ({text[start:end].strip()}) AND {which} "))
    for start, end, new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    return text, of


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
