"""`partial: true`: windows are shown before they are complete, from the first part on that all streams have.

Parts before the first one of a stream read nothing. Which windows are complete is counted, one helper for each stream and
length of panes; the column `partial` says whether one of them is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from partwise.compile.model import GeneratedView, QueryView
from partwise.compile.several.check import column_names
from partwise.compile.several.read import Several, Stream
from partwise.compile.single_pass import counted_up
from partwise.parts import Bound, Reference
from partwise.sql.references import find
from partwise.sql.text import quoted

#: How the helpers are called behind the name of their view, and the column that tells.
AGE, COLUMN = "__age", "partial"


def with_partial(
    view: QueryView, query: Several, made: Sequence[GeneratedView], columns: Sequence[str] | None = None
) -> list[GeneratedView]:
    """The same views, the last of which shows windows that are not complete, too. `columns` are those of the result,
    where the query itself does not name them."""
    *helpers, final = made
    ages: dict[tuple[str, int], int] = {}
    for stream in query.streams:
        key = (stream.table.name, _pane(view, stream))
        ages[key] = max(ages.get(key, 0), stream.window.length // key[1])
    names = {key: f"{view.name}{AGE}" + (f"_{at}" if at > 1 else "") for at, key in enumerate(ages, 1)}
    alias = {key: f"age_{at}" for at, key in enumerate(ages, 1)}
    counted = [_age(view, query, names[key], *key, most) for key, most in ages.items()]
    lacking = [f"{alias[key]}.panes < {most}" for key, most in ages.items()]
    shown = ", ".join(f"w.{quoted(name)}" for name in columns or column_names(query))
    lines = [
        f"SELECT {shown}, {' OR '.join(lacking)} AS {COLUMN}",
        "FROM (",
        *("  " + line for line in final.update.split("\n")),
        ") w",
        *(f"CROSS JOIN {name}{_newest(view, key[1])} {alias[key]}" for key, name in names.items()),
    ]
    read = {f.table for f in find(final.update).tables if f.reference is not None}
    whole = GeneratedView(
        view.name, view.part, "\n".join(lines), helper=False, comment=final.comment, optional=tuple(sorted(read))
    )
    return [*helpers, *counted, whole]


def _pane(view: QueryView, stream: Stream) -> int:
    return gcd(stream.window.length, view.part)


def _newest(view: QueryView, pane: int) -> str:
    newest = Bound(view.part // pane, view.part // pane - 1)
    return Reference(newest, newest).text("j")


def _age(view: QueryView, query: Several, name: str, table: str, pane: int, most: int) -> GeneratedView:
    ratio = pane // (next(s for s in query.streams if s.table.name == table).table.part or pane)
    whole = Reference(Bound(ratio), Bound(ratio, ratio - 1))
    return GeneratedView(
        name,
        pane,
        f"SELECT LEAST(a.panes + 1, {most}) AS panes\nFROM {name}[j-1] a\n"
        f"CROSS JOIN (SELECT COUNT(*) AS n FROM {table}{whole.text('j')}) p",
        initialize=f"SELECT CAST(1 AS BIGINT) AS panes\nFROM (SELECT COUNT(*) AS n FROM {table}{whole.text('i')}) p",
        comment=f"how many panes of {table} there are, up to a whole window",
        single_pass=counted_up(name, most),
        reaches=Bound(view.part // pane, view.part // pane - most),
    )
