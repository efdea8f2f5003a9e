"""A sample begins where its view begins: earlier parts of the view need theirs, and a view that adds up its own earlier
parts would have other sums from another first part on."""

from __future__ import annotations

from partwise.ledger.catalog import settled
from partwise.ledger.database import Writing
from partwise.ledger.write.define import begin_at, move_start
from partwise.tables import Graph


def follow_start(w: Writing, graph: Graph, view: str) -> None:
    """After the start of a view was settled or has moved."""
    start = settled(w, view).start
    if start is None:
        return
    for name in graph.order:
        helper = graph[name]
        if helper.helper_of != view or not helper.of_sample:
            continue
        own = settled(w, name).start
        if helper.self_references and own != start:
            begin_at(w, graph, name, start)
        elif own is not None and own > start:
            move_start(w, graph, name, start, same_query=not helper.optional)
