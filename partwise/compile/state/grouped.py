"""A query in two: one of its GROUP BYs, which can be kept, and the rest, which reads the groups.

    SELECT .. WHERE k IN (SELECT i.k FROM lineitem[j] i GROUP BY i.k HAVING SUM(i.q) > 280) ..

    kept    SELECT i.k AS k, SUM(i.q) AS sum_1, COUNT(i.q) AS count_1, COUNT(*) AS rows_n FROM lineitem[j] i GROUP BY i.k
    rest    .. WHERE k IN (SELECT kept__.k FROM kept[j] AS kept__ WHERE (kept__.sum_1 > 280)) ..

What is kept shows every partial that merging needs, so that a late row is added to its group and nothing else is read.
Everything between FROM and GROUP BY stays the author's text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from partwise.compile.state.flat import NotSplit, from_references
from partwise.compile.state.split import ALIAS, JoinSplit
from partwise.definitions.definitions import Statement
from partwise.relation.build import Known
from partwise.sql.references import Analysis, analyse
from partwise.sql.text import quoted

if TYPE_CHECKING:
    from sqlglot import exp

    from partwise.sql.tokens import Token

_FUNCTIONS = frozenset(["SUM", "COUNT", "MIN", "MAX"])
_BEHIND = frozenset(["FILTER", "OVER", "WITHIN", "IGNORE", "RESPECT"])


@dataclass
class _Stored:
    """Columns of what is kept, by what they are in the query."""

    taken: set[str]
    columns: dict[str, str] = field(default_factory=dict)

    def name(self, what: str, wanted: str) -> str:
        if what not in self.columns:
            stored, n = wanted, 0
            while stored.lower() in self.taken:
                n += 1
                stored = f"{wanted}_{n}"
            self.taken.add(stored.lower())
            self.columns[what] = stored
        return self.columns[what]


def groupings(statement: Statement, known: Callable[[str], Known | None], name: str) -> list[JoinSplit]:
    """Each GROUP BY of a query that can be cut out, the outermost first."""
    from sqlglot import exp

    analysis = analyse(statement.text, statement.index)
    if analysis.tree is None or analysis.found.problems or analysis.found.names_part:
        return []
    found = []
    for select in analysis.tree.find_all(exp.Select):
        if select.args.get("group") is not None:
            try:
                found.append(_Cut(statement, analysis, select, known).made(name))
            except NotSplit:
                continue
    return found


class _Cut:
    def __init__(
        self, statement: Statement, analysis: Analysis, select: exp.Select, known: Callable[[str], Known | None]
    ) -> None:
        self.text, self.index = statement.text, statement.index
        self.analysis, self.select = analysis, select
        _refuse_parts(select)
        self.inside = from_references(select, analysis, known)
        if not any(each.reference.brackets is not None for each in self.inside):
            raise NotSplit("none of it has parts")
        self.tokens = _tokens_of(select, analysis.tokens, is_root=select is analysis.tree)
        self.names = {each.alias.lower(): {name.lower() for name, _ in each.columns} for each in self.inside}
        self.stored = _Stored({"part", "part_timestamp"})

    def made(self, name: str) -> JoinSplit:
        places = _clauses(self.tokens)
        self._refuse_foreign_columns()
        items = places["SELECT"][1], places["FROM"][0]
        having = places.get("HAVING")
        keys = [self._key(each) for each in self.select.args["group"].expressions]
        edits = [*self._edits(items, keys, with_names=True)]
        edits += self._edits(having, keys) if having is not None else []
        end = self.tokens[-1].end + 1
        condition = f"\nWHERE ({_edited(self.text, having, edits).strip()}\n)" if having is not None else ""
        rest = f"SELECT {_edited(self.text, items, edits).strip()}\nFROM {name}[{self.index}] AS {ALIAS}{condition}"
        start = places["SELECT"][0]
        listed = ", ".join(f"{what} AS {quoted(stored)}" for what, stored in self.stored.columns.items())
        below = self.text[places["FROM"][0] : places["GROUP_BY"][0]].strip()
        by = self.text[places["GROUP_BY"][0] : places["GROUP_BY"][2]].strip()
        numbers = [n for n, table in enumerate(self.analysis.found.tables) if start <= table.start < end]
        outside = [n for n in range(len(self.analysis.found.tables)) if n not in numbers]
        before = [n for n in outside if self.analysis.found.tables[n].start < start]
        behind = [n for n in outside if self.analysis.found.tables[n].start >= end]
        return JoinSplit(
            frozenset(numbers),
            f"SELECT {listed}\n{below}\n{by}",
            f"{self.text[:start]}{rest}\n{self.text[end:]}".rstrip(),
            (*before, None, *behind),
            tuple(self.stored.columns.values()),
        )

    def _refuse_foreign_columns(self) -> None:
        """A column of a query around this one would be another one for each of its rows."""
        from sqlglot import exp

        for column in self.select.find_all(exp.Column):
            parts = [part.name.lower() for part in column.parts]
            own = parts[0] in self.names and parts[1] in self.names[parts[0]] if len(parts) == 2 else False
            if len(parts) == 1:
                own = any(parts[0] in columns for columns in self.names.values())
            if not own or isinstance(column.parent, exp.Dot):
                raise NotSplit(f"{column.sql('spark')} is not followed")

    def _key(self, e: exp.Expr) -> exp.Column:
        from sqlglot import exp

        if not isinstance(e, exp.Column):
            raise NotSplit("a group is not by plain columns")
        self.stored.name(e.sql("spark"), e.name)
        return e

    def _edits(
        self, at: tuple[int, ...], keys: list[exp.Column], with_names: bool = False
    ) -> Iterator[tuple[int, int, str]]:
        """Aggregates and keys of this part of the text, as columns of what is kept."""
        from sqlglot import exp

        spans = [*self._aggregates(at)]
        yield from spans
        nodes = self.select.expressions if with_names else [self.select.args["having"].this]
        counted = 0
        for node in nodes:
            if node.find(exp.Query, exp.Window, exp.Lambda) is not None:
                raise NotSplit("a subquery or a window stands among what is shown")
            counted += sum(1 for _ in node.find_all(exp.AggFunc))
            if with_names and not isinstance(node, exp.Alias | exp.Column):
                raise NotSplit("an expression has no name")
            for column in node.find_all(exp.Column):
                marks = [part.meta for part in column.parts]
                if any("start" not in mark for mark in marks):
                    raise NotSplit(f"{column.sql('spark')} is not followed")
                start, end = int(marks[0]["start"]), int(marks[-1]["end"]) + 1
                if any(a <= start < b for a, b, _ in spans):
                    continue
                stored = quoted(self.stored.columns[_same(column, keys).sql("spark")])
                text = f"{ALIAS}.{stored}"
                yield start, end, f"{text} AS {quoted(column.name)}" if with_names and node is column else text
        if counted != len(spans):
            raise NotSplit("an aggregate cannot be kept in partials")

    def _aggregates(self, at: tuple[int, ...]) -> Iterator[tuple[int, int, str]]:
        tokens = [token for token in self.tokens if at[0] <= token.start < at[-1]]
        n = 0
        while n < len(tokens):
            name = tokens[n].text.upper()
            opens = n + 1 < len(tokens) and tokens[n + 1].token_type.name == "L_PAREN"
            if name not in _FUNCTIONS or not opens or (n and tokens[n - 1].token_type.name == "DOT"):
                n += 1
                continue
            close = _closing(tokens, n + 1)
            behind = tokens[close + 1].text.upper() if close + 1 < len(tokens) else ""
            if behind in _BEHIND or tokens[n + 2].text.upper() in ("DISTINCT", "ALL"):
                raise NotSplit("an aggregate cannot be kept in partials")
            argument = self.text[tokens[n + 1].end + 1 : tokens[close].start].strip()
            yield tokens[n].start, tokens[close].end + 1, f"{ALIAS}.{quoted(self._partial(name, argument))}"
            n = close + 1

    def _partial(self, function: str, argument: str) -> str:
        if function == "SUM":  # of nothing but NULLs it is NULL, which only their number tells
            self._partial("COUNT", argument)
        self.stored.name("COUNT(*)", "rows_n")
        what = "COUNT(*)" if (function, argument) == ("COUNT", "*") else f"{function}({argument})"
        return self.stored.name(what, f"{function.lower()}_{len(self.stored.columns)}")


def _refuse_parts(select: exp.Select) -> None:
    group = select.args["group"]
    if any(value for key, value in group.args.items() if key != "expressions") or not group.expressions:
        raise NotSplit("ROLLUP, CUBE, GROUPING SETS or ALL")
    for key, value in select.args.items():
        if value and key not in ("expressions", "from_", "joins", "where", "group", "having"):
            raise NotSplit(f"{key} is not taken apart")


def _same(column: exp.Column, keys: list[exp.Column]) -> exp.Column:
    """The key that a column is. Names that are not qualified are of one table, or the query would mean nothing."""
    found = [
        key
        for key in keys
        if key.name.lower() == column.name.lower()
        and (not key.table or not column.table or key.table.lower() == column.table.lower())
    ]
    if len(found) != 1:
        raise NotSplit(f"{column.sql('spark')} is no key")
    return found[0]


def _tokens_of(select: exp.Select, tokens: tuple[Token, ...], is_root: bool) -> list[Token]:
    """Those of a SELECT: of a subquery what stands in the innermost parentheses that hold all of it."""
    from sqlglot import exp

    if is_root:
        return [*tokens]
    marks = [int(n.meta["start"]) for n in select.find_all(exp.Identifier) if "start" in n.meta]
    best: list[Token] = []
    for n, token in enumerate(tokens):
        if token.token_type.name != "L_PAREN" or n + 1 == len(tokens) or tokens[n + 1].token_type.name != "SELECT":
            continue
        close = _closing(tokens, n)
        if marks and token.start < min(marks) and max(marks) < tokens[close].start:
            best = [*tokens[n + 1 : close]]
    if not best:
        raise NotSplit("its text is not found")
    return best


def _closing(tokens: tuple[Token, ...] | list[Token], opens: int) -> int:
    depth = 0
    for n in range(opens, len(tokens)):
        depth += {"L_PAREN": 1, "R_PAREN": -1}.get(tokens[n].token_type.name, 0)
        if not depth:
            return n
    raise NotSplit("parentheses do not match")


def _clauses(tokens: list[Token]) -> dict[str, tuple[int, int, int]]:
    """Where each clause begins, where what follows its word does, and where it ends."""
    found: dict[str, tuple[int, int, int]] = {}
    last, depth = "", 0
    for n, token in enumerate(tokens):
        name = token.token_type.name
        depth += {"L_PAREN": 1, "L_BRACKET": 1, "R_PAREN": -1, "R_BRACKET": -1}.get(name, 0)
        comparison = name == "FROM" and n > 0 and tokens[n - 1].token_type.name == "DISTINCT"
        if depth or comparison or name not in ("SELECT", "FROM", "GROUP_BY", "HAVING"):
            continue
        if name in found:
            raise NotSplit("a clause stands twice")
        if last:
            found[last] = (*found[last][:2], token.start)
        found[name] = token.start, token.end + 1, tokens[-1].end + 1
        last = name
    if not {"SELECT", "FROM", "GROUP_BY"} <= found.keys():
        raise NotSplit("its text is not found")
    return found


def _edited(text: str, at: tuple[int, ...], edits: list[tuple[int, int, str]]) -> str:
    """The text of a clause, without its word, with columns of what is kept."""
    begin, end = (at[0], at[1]) if len(at) == 2 else (at[1], at[2])
    out, here = [], begin
    for start, stop, new in sorted(edits):
        if here <= start and stop <= end:
            out += [text[here:start], new]
            here = stop
    return "".join([*out, text[here:end]])
