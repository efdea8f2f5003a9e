"""By which columns old parts of a table are put into files together, across parts.

A late row of a long window touches its key in every part that the window shows it in, and reads it in every part that
the window reads. Where each part has files of its own, that is a file for each part; where old parts share files that are
cut by key, it is a few. Tables without long windows above or below stay cut by parts: most of what is read of them is
whole parts. So do sources, whose rows have no order by key.
"""

from __future__ import annotations

from collections.abc import Iterable

from partwise.tables import Graph, Input

#: Parts that a window has at least.
LONG = 10


def cluster_columns(graph: Graph, name: str, layout: tuple[str, ...]) -> tuple[str, ...]:
    """`layout`: the columns by which the rows of a part are sorted, of which the log knows what is in which file."""
    if name not in graph.tables or graph[name].rolling:
        return ()
    read = (item for reader in graph.consumers.get(name, ()) for item in graph[reader].inputs if item.table == name)
    shown = (item for item in graph[name].inputs if item.table != name)
    return layout if _has_long(read) or _has_long(shown) else ()


def _has_long(items: Iterable[Input]) -> bool:
    return any(item.reference is not None and item.reference.requires(0).size >= LONG for item in items)
