"""The strategy `cells` for aggregates over a join of windows: partial results by group and by when their rows leave.

    C[j] = groups of the rows that came about in part j, those with the same last part together
    view = what the cells of the newest C that are still shown add up to

As for `grid`, a row leaves with the first of its rows; here only groups are kept. Sums are of whole numbers, which are
exact in whatever order they are added.
"""

from __future__ import annotations

from sqlglot import exp

from partwise.compile.model import GeneratedView, QueryView
from partwise.compile.parse import parse
from partwise.compile.select import Key, Names, Selection, select
from partwise.compile.several.factor import WHOLE, NotPossible, one_table
from partwise.compile.several.grid import shortest, until
from partwise.compile.several.pairs import leg, near, pane, possible, split_at
from partwise.compile.several.read import Several, tidy
from partwise.compile.several.recompute import recompute
from partwise.compile.several.shown import LAST_PART
from partwise.compile.single_pass import FIRST, LAST
from partwise.parts import Bound
from partwise.sql.calls import Call
from partwise.sql.expressions import spelled
from partwise.sql.parse import TranslationError
from partwise.sql.text import plain, quoted
from partwise.sql.types.known import type_of

CELLS = "__cells"


def why_not_cells(view: QueryView, query: Several) -> str | None:
    try:
        cells(view, query)
    except NotPossible as why:
        return str(why)
    return None


def weight(view: QueryView, query: Several) -> str:
    """The column of the helper that says of how many joined rows a cell is. Raises NotPossible."""
    names = Names(["part", "part_timestamp"])
    for key in _selection(view, query).keys:
        names.new(key.name)
    return names.new("n")


def cells(view: QueryView, query: Several) -> list[GeneratedView]:
    """Raises NotPossible."""
    selection = _selection(view, query)
    names = Names(["part", "part_timestamp"])
    keys = {key.piece.offset: quoted(names.new(key.name)) for key in selection.keys}
    made = _Cells(query, names)
    made.column("COUNT(*)", "n")
    aggregates = {call.start: made.aggregate(call) for call in selection.all_calls()}
    last = quoted(names.new(LAST_PART))

    def key_text(key: Key) -> str:
        return f"g.{keys[key.piece.offset]}"

    def aggregate(call: Call) -> str:
        return aggregates[call.start]

    texts = [spelled(key.piece, made.qualifiers) for key in selection.keys]
    items = [f"{text} AS {name}" for text, name in zip(texts, keys.values(), strict=True)]
    items += [f"{body} AS {name}" for body, name in made.columns.items()]
    streams, end = query.streams, until(view, query)
    grouped = ", ".join([*texts, end])
    legs = [
        _leg(leg(view, query, at), [*items, f"{end} AS {last}"], grouped)
        for at in range(len(streams))
        if possible(view, streams, at)
    ]
    every, latest = near(view, query)
    # Each leg above has groups of its own: a row belongs to that of the first stream whose row is new.
    new = " ".join(f"WHEN {pane(stream, view.part)} = {latest} THEN {at}" for at, stream in enumerate(streams))
    by = f"{grouped}, {latest}, CASE {new} END"
    at_once = _leg(every, [*items, f"{end} AS {last}", f"{latest} AS __j"], by)
    helper, span = view.name + CELLS, shortest(view, query)
    none = ", ".join(f"NULL AS {name}" for name in [*keys.values(), *made.columns.values(), last])
    first = streams[0].table.name + streams[0].reference(view.part, streams[0].ratio(view.part)).text("j")
    shown = [f"{o.formula.write(aggregate, key_text)} AS {quoted(o.name)}" for o in selection.outputs]
    lines = [
        f"SELECT {', '.join(shown)}",
        f"FROM {helper}[j-{span - 1}..j] g",
        f"JOIN (SELECT MAX(part) AS now FROM {helper}[j]) n ON g.{last} >= n.now",
    ]
    lines += [f"GROUP BY {', '.join(f'g.{name}' for name in keys.values())}"] if keys else []
    having = selection.having
    lines += [f"HAVING {having.write(aggregate, key_text)}"] if having is not None else []
    (whole,) = recompute(view, query, index="i")
    return [
        GeneratedView(
            helper,
            view.part,
            "\nUNION ALL\n".join([*legs, f"SELECT {none}\nFROM (SELECT COUNT(*) AS n FROM {first})"]),
            comment="one row per group and last part, of the rows that came about in the part (cells)",
            optional=tuple(dict.fromkeys(stream.table.name for stream in streams)),
            single_pass=f"{at_once}\nUNION ALL\nSELECT {none}, explode(sequence({FIRST}, {LAST})) AS __j",
            reaches=Bound(1, 1 - span),
        ),
        GeneratedView(
            view.name,
            view.part,
            "\n".join(lines),
            initialize=whole.update,
            helper=False,
            comment="what the cells that are still shown add up to (cells)",
            optional=(helper,),
        ),
    ]


def _selection(view: QueryView, query: Several) -> Selection:
    tree = query.tree
    if not isinstance(tree, exp.Select) or len(query.streams) < 2 or tree.find(exp.Subquery, exp.Exists):
        raise NotPossible("it is for GROUP BY over a join of windows")
    if any(join.side or join.kind not in ("", "INNER") for join in tree.args.get("joins") or ()):
        raise NotPossible("it is for inner joins")
    if any(stream.rows is not None for stream in query.streams) or tree.args.get("distinct"):
        raise NotPossible("it is for [WINDOW ...] with GROUP BY")
    if any(stream.window.length % view.part for stream in query.streams):
        raise NotPossible("a window is not a whole number of the view's parts")
    if shortest(view, query) == 1:
        raise NotPossible("the shortest window is one part")
    try:
        found = select(parse(one_table(query)), _qualifiers(query), None)
    except TranslationError as error:
        raise NotPossible(error.problems[0].message) from None
    if not found.all_calls():
        raise NotPossible("it is for aggregates")
    return found


def _qualifiers(query: Several) -> list[str]:
    return [*(plain(stream.name) for stream in query.streams), *(alias for alias, _ in query.dimensions)]


class _Cells:
    """The columns of cells by their SQL over joined rows."""

    def __init__(self, query: Several, names: Names) -> None:
        self.names, self.qualifiers = names, _qualifiers(query)
        self.columns: dict[str, str] = {}
        self.types: dict[str, str | None] = {}
        for table in [*(stream.table for stream in query.streams), *(table for _, table in query.dimensions)]:
            for name, kind in (table.columns or {}).items():
                self.types[plain(name)] = kind if self.types.get(plain(name), kind) == kind else None

    def column(self, body: str, wish: str) -> str:
        if body not in self.columns:
            self.columns[body] = quoted(self.names.new(wish))
        return f"g.{self.columns[body]}"

    def aggregate(self, call: Call) -> str:
        """Over cells. Raises NotPossible."""
        if call.distinct or call.name not in ("count", "sum", "avg", "min", "max") or len(call.args) != 1:
            raise NotPossible(f"{call.text} cannot be put together from parts of it")
        arg = "*" if call.star else spelled(call.args[0], self.qualifiers)
        where = f" FILTER (WHERE {spelled(call.filter, self.qualifiers)})" if call.filter is not None else ""
        if call.name == "count":
            return f"COALESCE(SUM({self.column(f'COUNT({arg}){where}', 'n')}), 0)"
        if call.name in ("min", "max"):
            word = call.name.upper()
            return f"{word}({self.column(f'{word}({arg}){where}', call.name)})"
        if type_of(call.args[0].tree, self.types) not in WHOLE:
            raise NotPossible(f"{call.text} does not sum whole numbers (int or smaller)")
        total = f"SUM({self.column(f'SUM({arg}){where}', 'sum')})"
        if call.name == "sum":
            return total
        many = f"SUM({self.column(f'COUNT({arg}){where}', 'n')})"
        return f"(CASE WHEN {many} > 0 THEN CAST({total} AS DOUBLE) / {many} END)"


def _leg(text: str, items: list[str], grouped: str) -> str:
    _, tail = split_at(text, "FROM")
    return tidy(f"SELECT {', '.join(items)}\nFROM {tail}\nGROUP BY {grouped}")
