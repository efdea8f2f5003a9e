"""The strategy `grid` for a join of windows: each joined row is kept once, with the last part that shows it.

    G[j] = the rows that came about in part j (as for `output: pairs`), each with its last part: the one before its first
           row leaves a window
    view = rows of the newest G whose last part has not passed

A row leaves with the first of its rows, which is known when it comes about; and no row stays longer than the shortest
window. So that the view knows which part it is in, whatever is in it, each G[j] has one more row without a last part.
"""

from __future__ import annotations

from math import prod

from partwise.compile.model import GeneratedView, QueryView
from partwise.compile.select import Names
from partwise.compile.several.check import column_names
from partwise.compile.several.pairs import band, leg, pairs_problems, pane, possible, with_items
from partwise.compile.several.read import Several
from partwise.compile.several.recompute import recompute
from partwise.compile.several.shown import HELPER, LAST_PART
from partwise.compile.single_pass import FIRST, LAST
from partwise.parts import Bound
from partwise.sql.text import quoted


def why_not_grid(view: QueryView, query: Several) -> str | None:
    """Why a query cannot be kept so."""
    found = pairs_problems(view, query, least=1)
    if found:
        return f"it is for joins of windows; {found[0].message}"
    if any(stream.window.length % view.part for stream in query.streams):
        return "a window is not a whole number of the view's parts"
    return "the shortest window is one part" if shortest(view, query) == 1 else None


def shortest(view: QueryView, query: Several) -> int:
    """Parts of the view in its shortest window: in so many the rows that came about in one part may be shown."""
    return min(stream.panes(view.part) for stream in query.streams)


def stays(view: QueryView, query: Several) -> float:
    """In how many parts a joined row is shown on average, if rows come evenly: of all panes that meet in windows, those
    with the newest of a stream are new."""
    panes = [stream.panes(view.part) for stream in query.streams]
    return prod(panes) / (prod(panes) - prod(n - 1 for n in panes))


def until(view: QueryView, query: Several) -> str:
    """The last part that shows a joined row."""
    ends = [f"{pane(stream, view.part)} + {stream.panes(view.part) - 1}" for stream in query.streams]
    return ends[0] if len(ends) == 1 else f"LEAST({', '.join(ends)})"


def grid(view: QueryView, query: Several) -> list[GeneratedView]:
    part, streams = view.part, query.streams
    columns = [quoted(name) for name in column_names(query)]
    last = quoted(last_part(query))
    end = until(view, query)
    legs = [
        with_items(leg(view, query, at), [f"{end} AS {last}"])
        for at in range(len(streams))
        if possible(view, streams, at)
    ]
    none = ", ".join(f"NULL AS {name}" for name in [*columns, last])
    first = streams[0].table.name + streams[0].reference(part, streams[0].ratio(part)).text("j")
    here = f"SELECT {none}\nFROM (SELECT COUNT(*) AS n FROM {first})"
    everywhere = f"SELECT {none}, explode(sequence({FIRST}, {LAST})) AS __j"
    helper, span = view.name + HELPER, shortest(view, query)
    shown = ", ".join(f"g.{name}" for name in columns)
    update = (
        f"SELECT {shown}\nFROM {helper}[j-{span - 1}..j] g\nJOIN (SELECT MAX(part) AS now FROM {helper}[j]) n"
        f" ON g.{last} >= n.now"
    )
    (whole,) = recompute(view, query, index="i")
    return [
        GeneratedView(
            helper,
            part,
            "\nUNION ALL\n".join([*legs, here]),
            comment="each joined row once, with the last part that shows it (grid)",
            optional=tuple(dict.fromkeys(stream.table.name for stream in streams)),
            single_pass=f"{band(view, query, [f'{end} AS {last}'])}\nUNION ALL\n{everywhere}",
            reaches=Bound(1, 1 - span),
        ),
        GeneratedView(
            view.name,
            part,
            update,
            initialize=whole.update,
            helper=False,
            comment="the rows that are still shown (grid)",
            optional=(helper,),
        ),
    ]


def last_part(query: Several) -> str:
    """The column that says until when a row is shown."""
    return Names(column_names(query)).new(LAST_PART)
