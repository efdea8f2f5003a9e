"""`query --settled`: the newest moment at which nothing that the query may read was stale."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection
from typing import TYPE_CHECKING

from partwise.cli.stop import Stop, wrong_use
from partwise.plan.next import parts_text

if TYPE_CHECKING:
    from partwise.ledger.ledger import Ledger
    from partwise.ledger.read.newest_settled import Found, InTheWay
    from partwise.tables import Graph

_SHOWN = 5
_PAUSE = 0.5  # seconds


def settled_sequence(ledger: Ledger, sql: str, asked: Collection[str], dialect: str, mode: str) -> tuple[int, str]:
    """The sequence, and what keeps a newer one from being it. `mode`: newest, or wait for one if there is none."""
    if mode not in ("newest", "wait"):
        raise wrong_use(f"--settled: '{mode}' is not known; write --settled or --settled=wait.")
    told = False
    while True:
        found, graph = _look(ledger, sql, asked, dialect)
        if found.seq is not None:
            return found.seq, _newer(graph, found)
        if mode == "newest":
            raise Stop(_refused(graph, found))
        if not told:
            print(f"Waiting: {_refused(graph, found)}", file=sys.stderr)
            told = True
        time.sleep(_PAUSE)


def _look(ledger: Ledger, sql: str, asked: Collection[str], dialect: str) -> tuple[Found, Graph]:
    from partwise.ledger.read.newest_settled import newest_settled
    from partwise.sql.parts_read import parts_read

    with ledger.database.reading() as r:
        graph = ledger.graph_at(r)
        lengths = {n: 0 if graph[n].kind == "dimension" else graph[n].length for n in asked if n in graph.tables}
        return newest_settled(r, graph, parts_read(sql, lengths, dialect)), graph


def _newer(graph: Graph, found: Found) -> str:
    return f"newer snapshots are not settled: {_list(graph, found.in_the_way)}" if found.in_the_way else ""


def _refused(graph: Graph, found: Found) -> str:
    if found.missing:
        return f"--settled: {', '.join(found.missing)} had no complete content yet; {_list(graph, found.in_the_way)}."
    return (
        "--settled: at no sequence on record was everything that this query may read up to date; in the way: "
        f"{_list(graph, found.in_the_way) or 'nothing now, but definitions or history changed since'}. "
        "A condition on part_timestamp lets it read fewer parts; --settled=wait waits."
    )


def _list(graph: Graph, items: Collection[InTheWay]) -> str:
    shown = []
    for item in list(items)[:_SHOWN]:
        table = graph[item.table]
        shown.append(f"{table.name}[{parts_text(item.parts, table.length)}] ({item.due.cause.text(graph, False)})")
    more = len(items) - _SHOWN
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
