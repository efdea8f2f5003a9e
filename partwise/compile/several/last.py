"""The strategy `last` for SELECT DISTINCT over one window: for each row the part in which it was last seen.

    L[j] = what L[j-1] and the new rows have, each row with the newest part it was in,
           without those that were last seen in the part that just left the window: its rows say which part that is

It reads two parts instead of the whole window. A late row changes the parts up to the next time that its values occur.
"""

from __future__ import annotations

from sqlglot import exp

from partwise.compile.model import GeneratedView, QueryView
from partwise.compile.select import Names
from partwise.compile.several.check import column_names
from partwise.compile.several.pairs import pane, with_items
from partwise.compile.several.read import Several
from partwise.compile.single_pass import FIRST, LAST
from partwise.parts import Bound, Reference
from partwise.sql.text import Piece, quoted


def why_not_last(view: QueryView, query: Several) -> str | None:
    """Why a query cannot be kept so."""
    if not isinstance(query.tree, exp.Select) or not query.tree.args.get("distinct"):
        return "it is for SELECT DISTINCT"
    if len(query.streams) > 1 or query.tree.find(exp.Subquery) or query.tree.args.get("group"):
        return "it is for one window, without GROUP BY"
    stream = query.streams[0]
    if stream.rows is not None:
        return "it is for [WINDOW ...]"
    if stream.window.length % view.part:
        return "the window is not a whole number of the view's parts"
    return "the window is one part" if stream.panes(view.part) == 1 else None


def last(view: QueryView, query: Several) -> list[GeneratedView]:
    stream, part = query.streams[0], view.part
    columns = [quoted(name) for name in column_names(query)]
    names = Names(column_names(query))
    seen, left = quoted(names.new("last_part")), quoted(names.new("left_part"))
    helper, panes, ratio = f"{view.name}__last", stream.panes(part), stream.ratio(part)
    shown = ", ".join(columns)

    def rows(reference: Reference, index: str, *items: str) -> str:
        """The rows of these parts with the part of the view in which each came, or other items."""
        more = items or (f"{pane(stream, part)} AS {seen}",)
        return _rows(query, stream.table.name + reference.text(index), *more)

    def newest(source: str, having: str = "") -> str:
        return f"SELECT {shown}, MAX({seen}) AS {seen}\nFROM (\n{_indent(source)}\n)\nGROUP BY {shown}{having}"

    own = stream.reference(part, ratio)
    gone = Reference(Bound(ratio, -ratio * panes), Bound(ratio, -ratio * panes + ratio - 1))
    stays, here = f"CAST(NULL AS BIGINT) AS {left}", f"{pane(stream, part)} AS {seen}"
    update = newest(
        "\nUNION ALL\n".join([
            f"SELECT {shown}, {seen}, {stays} FROM {helper}[j-1]",
            rows(own, "j", here, stays),
            rows(gone, "j", here, f"{pane(stream, part)} AS {left}"),
        ]),
        f"\nHAVING MAX({seen}) > COALESCE(MAX({left}), MAX({seen}) - 1)",
    )  # fmt: skip
    return [
        GeneratedView(
            helper,
            part,
            update,
            initialize=newest(rows(stream.reference(part), "i")),
            comment="the part in which each row was last seen",
            reaches=Bound(1),
            single_pass=_many(columns, seen, helper, rows(own, "j", f"__j AS {seen}"), panes),
        ),
        GeneratedView(
            view.name, part, f"SELECT {shown}\nFROM {helper}[j]", helper=False, comment="what was seen (last)"
        ),
    ]


def _many(columns: list[str], seen: str, helper: str, new: str, panes: int) -> str:
    """What was seen in a part stays until it is seen again, or leaves the window."""
    shown = ", ".join(columns)
    by = f"OVER (PARTITION BY {shown} ORDER BY {seen})"
    until = f"LEAST(COALESCE(LEAD({seen}) {by} - 1, {LAST}), {seen} + {panes - 1}, {LAST})"
    return "\n".join([
        "-- many parts in one pass: each row from the part in which it is seen until it is seen again or leaves",
        f"SELECT {shown}, {seen}, explode(sequence(GREATEST({seen}, {FIRST}), __until)) AS __j",
        f"FROM (\n  SELECT {shown}, {seen}, {until} AS __until",
        "  FROM (",
        f"    SELECT DISTINCT {shown}, {seen} FROM (",
        f"      SELECT {shown}, {seen} FROM {helper}[j-1]",
        "      UNION ALL",
        _indent(new, "      "),
        "    )",
        "  )\n)",
        f"WHERE __until >= GREATEST({seen}, {FIRST})",
    ])  # fmt: skip


def _rows(query: Several, source: str, *items: str) -> str:
    text = with_items(query.write([source]), list(items))
    tokens = Piece(text).tokens
    distinct = next(t for t in tokens if t.keyword == "DISTINCT")
    return text[: distinct.start].rstrip() + " " + text[distinct.end :].lstrip()


def _indent(text: str, by: str = "  ") -> str:
    return "\n".join(by + line for line in text.split("\n"))
