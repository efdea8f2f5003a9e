"""What lies around a part, from the ledger: rows of the part before it, and of other tables for the same time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from partwise.ledger.records import checks as ledger_checks
from partwise.ledger.write.commit import Content
from partwise.tables import DIMENSION_PART, Graph
from spark_jobs.checks.run import Around
from spark_jobs.engine import Engine


def around(
    engine: Engine, table: str, fresh: Mapping[int, Content] | None = None, files: Mapping[int, str] | None = None
) -> Around:
    """`fresh` are parts of this table that are about to be published before the one that is looked at."""
    graph = engine.definitions.graph()
    return Around(
        partial(_previous, engine, table, fresh or {}),
        partial(_other, engine, graph, table),
        files or {},
        partial(_rows, engine, table),
    )


def _rows(engine: Engine, table: str, part: int) -> int | None:
    with engine.ledger.database.reading() as r:
        return ledger_checks.row_counts(r, table, part, part).get(part)


def _previous(engine: Engine, table: str, fresh: Mapping[int, Content], part: int) -> int | None:
    if part - 1 in fresh:
        return fresh[part - 1].rows
    with engine.ledger.database.reading() as r:
        return ledger_checks.row_counts(r, table, part - 1, part - 1).get(part - 1)


def _other(engine: Engine, graph: Graph, table: str, other: str, part: int) -> int | None:
    found = next(t for name, t in graph.tables.items() if name.lower() == other.lower())
    if found.kind == "dimension":
        lo = hi = DIMENSION_PART
    else:
        # Validated with the definitions: parts of the other table are as long, or fit in.
        times = graph[table].length // found.length
        lo, hi = part * times, part * times + times - 1
    with engine.ledger.database.reading() as r:
        rows = ledger_checks.row_counts(r, found.name, lo, hi)
    return sum(rows.values()) if len(rows) == hi - lo + 1 else None
