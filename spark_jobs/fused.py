"""Queries of several tables over the same rows, as one: the rows are read once, and Spark plans one query.

What comes back as Arrow has columns for each table, with the hashes of its rows, and one that says where its rows are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from partwise.compile.many_views import Fusable, fusable, fused
from partwise.storage import Handle
from partwise.storage import schema as schemas
from spark_jobs.retry import SPARK_ERRORS
from spark_jobs.step import small
from spark_jobs.step.compute import HIDDEN, PART_COLUMNS, Computing
from spark_jobs.step.digest import CHAINS, row_hash

#: So many columns has one query at most: what Spark plans grows with them, whatever it computes.
MOST_COLUMNS = 400


@dataclass(frozen=True)
class PartQuery:
    """A part's query as it can be part of another one. `names` of the temporary views that it reads."""

    computing: Computing
    part: int
    pieces: Fusable
    names: tuple[str, ...]

    @property
    def own(self) -> Handle:
        assert self.computing.own is not None
        return self.computing.own

    @property
    def content(self) -> list[tuple[str, object]]:
        return [field for field in schemas.fields(self.own.schema) if field[0] not in PART_COLUMNS]

    @property
    def rows(self) -> tuple[object, ...]:
        """Queries with the same can be one."""
        return self.names, self.pieces.source, self.pieces.keys

    @property
    def columns(self) -> int:
        return len(self.pieces.items) + len(CHAINS) + 1


def query_of(computing: Computing, part: int) -> PartQuery | None:
    """None if its text, or what its table has, does not allow it."""
    view, own = computing.view, computing.own
    plain = view.initialize is None and view.fast_update is None and not view.states and not view.sketches
    if own is None or not plain or computing.rolling or computing.pin.table.self_references:
        return None
    read = [computing.handle(computing.spelled(found.table)) for found in view.update.found.tables]
    if any(handle is None for handle in read):
        return None
    columns = tuple(tuple(n for n in schemas.names(handle.schema) if n not in HIDDEN) for handle in read if handle)
    pieces = fusable(view.update.text, columns)
    if pieces is None or pieces.names != tuple(n for n in schemas.names(own.schema) if n not in PART_COLUMNS):
        return None
    return PartQuery(computing, part, pieces, computing.names_of(part))


def groups(queries: Mapping[str, PartQuery]) -> list[list[str]]:
    """Tables whose queries are one, two at least, by what they read and group by."""
    found: dict[tuple[object, ...], list[list[str]]] = {}
    for table, query in queries.items():
        alike = found.setdefault(query.rows, [[]])
        if sum(queries[each].columns for each in alike[-1]) + query.columns > MOST_COLUMNS:
            alike.append([])
        alike[-1].append(table)
    return [group for alike in found.values() for group in alike if len(group) > 1]


def compute(queries: Sequence[PartQuery]) -> list[small.Collected] | None:
    """The results of queries over the same rows. None if Spark refuses what they are together, or gives other types
    than the tables have. Raises what Spark raises while it runs."""
    one = fused([query.pieces for query in queries])
    wanted = [flag for flag in one.present if flag is not None]
    for at, (query, columns) in enumerate(zip(queries, one.columns, strict=True)):
        content = [(name, kind) for name, (_, kind) in zip(columns, query.content, strict=True)]
        wanted += columns
        wanted += [f"{row_hash(content, salt)} AS {_hash(at, n)}" for n, salt in enumerate(CHAINS)]
    text = one.text
    for at, name in reversed(list(enumerate(queries[0].names, 1))):
        text = text.replace(f"__in{at}", name)
    text = f"SELECT {', '.join(wanted)}\nFROM (\n{text}\n)"
    if None not in one.present:
        text += f"\nWHERE {' OR '.join(flag for flag in one.present if flag is not None)}"
    try:
        rows = queries[0].computing.engine.spark.sql(text)
        if not _has_types(rows, queries, one.columns):
            return None
    except (*SPARK_ERRORS, schemas.BadSchema):
        return None
    table = rows.toArrow()
    found = []
    for at, (query, flag, columns) in enumerate(zip(queries, one.present, one.columns, strict=True)):
        mine = table if flag is None else table.filter(table[flag])
        names = [*(name for name, _ in query.content), *small.HASHES]
        own = mine.select([*columns, *(_hash(at, n) for n in range(len(CHAINS)))]).rename_columns(names)
        found.append(small.collected(own, query.own.schema, query.part, query.computing.pin.table.length))
    return found


def _hash(at: int, n: int) -> str:
    return f"__h{at}_{n}"


def _has_types(rows: DataFrame, queries: Sequence[PartQuery], columns: Sequence[Sequence[str]]) -> bool:
    given = dict(schemas.fields(schemas.normal(json.dumps({"fields": [
        field for field in json.loads(rows.schema.json())["fields"] if field["name"].startswith("__c")
    ]}))))  # fmt: skip
    return all(
        [given[name] for name in own] == [kind for _, kind in query.content]
        for query, own in zip(queries, columns, strict=True)
    )
