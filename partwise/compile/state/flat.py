"""The outermost SELECT of a query as joins of references: what could be kept of it, with texts cut as they stand.

Only inner joins of references are taken apart. Whatever else a query has (subqueries, windows, HAVING) stays as written
around them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partwise.definitions.definitions import Statement
from partwise.relation.build import Known
from partwise.relation.expressions import expression, split
from partwise.relation.scope import Scope, ScopedRelation
from partwise.relation.tree import Other, Ref, columns_of
from partwise.relation.types import comparable
from partwise.sql.columns import place
from partwise.sql.references import Analysis, FoundReference, analyse
from partwise.sql.types.names import INTEGERS, normal

if TYPE_CHECKING:
    from sqlglot import exp

    from partwise.sql.tokens import Token

#: Clauses behind WHERE, as sqlglot's tokens name them.
_TAIL = frozenset(
    [
        "GROUP_BY",
        "HAVING",
        "QUALIFY",
        "WINDOW",
        "ORDER_BY",
        "SORT_BY",
        "CLUSTER_BY",
        "DISTRIBUTE_BY",
        "LIMIT",
        "OFFSET",
        "FETCH",
    ]
)
_JOINS = frozenset(["JOIN", "INNER", "CROSS", "COMMA"])


class NotSplit(Exception):
    """Why nothing of a query can be kept; `start` is the place in its text."""

    def __init__(self, message: str, start: int = 0) -> None:
        super().__init__(message)
        self.start = start


@dataclass(frozen=True)
class Joined:
    """One reference in FROM, by its number in the text, with its columns."""

    occurrence: int
    reference: FoundReference
    alias: str
    columns: tuple[tuple[str, str | None], ...]

    def has(self, name: str) -> bool:
        return any(name.lower() == column.lower() for column, _ in self.columns)


@dataclass(frozen=True)
class FlatCondition:
    """A conjunct of WHERE or ON: the references that it looks at (None: not known), and whether it never fails.

    `equal`: pairs of columns that it compares, each as (occurrence, column).
    """

    sql: str
    occurrences: frozenset[int] | None
    total: bool
    equal: tuple[tuple[int, str], tuple[int, str]] | None = None


@dataclass(frozen=True)
class Flat:
    """`head` ends before FROM; `on` and `where` are texts of conditions; `tail` begins behind WHERE."""

    statement: Statement
    tree: exp.Select
    joined: tuple[Joined, ...]
    conditions: tuple[FlatCondition, ...]
    head: tuple[int, int]
    places: tuple[tuple[int, int], ...]
    tail: tuple[int, int]

    def of(self, occurrence: int) -> Joined:
        return next(each for each in self.joined if each.occurrence == occurrence)


def flat(statement: Statement, known: Callable[[str], Known | None]) -> Flat:
    """Raises NotSplit."""
    analysis = analyse(statement.text, statement.index)
    tree = _select(analysis)
    joined = from_references(tree, analysis, known)
    _refuse_shadows(tree, {each.alias.lower() for each in joined})
    scope = Scope(aliases={item.alias.lower() for item in tree.expressions if item.alias})
    owner: dict[int, tuple[int, str]] = {}
    for each in joined:
        refs: list[tuple[str, Ref]] = []
        for name, kind in each.columns:
            owner[len(owner) + 1] = (each.occurrence, name)
            refs.append((name, Ref(len(owner), normal(kind))))
        scope.relations.append(ScopedRelation(each.alias, [*refs]))
    texts = [join.args["on"] for join in tree.args.get("joins") or () if join.args.get("on") is not None]
    if (where := tree.args.get("where")) is not None:
        texts.append(where.this)
    conditions = tuple(_condition(e, scope, owner) for text in texts for e in split(text))
    head, places, tail = _cut(statement.text, analysis)
    return Flat(statement, tree, joined, conditions, head, places, tail)


def _select(analysis: Analysis) -> exp.Select:
    from sqlglot import exp

    tree = analysis.tree
    if tree is None or analysis.found.problems:
        raise NotSplit("the query cannot be read")
    if not isinstance(tree, exp.Select):
        raise NotSplit(f"{tree.key.upper()} is not one SELECT")
    if tree.args.get("with_") is not None:
        raise NotSplit("a query with WITH is not taken apart")
    if analysis.found.names_part:
        raise NotSplit("the query names the columns part or part_timestamp")
    for key in ("laterals", "pivots", "connect", "match", "sample", "operation_modifiers"):
        if tree.args.get(key):
            raise NotSplit(f"{key} is not taken apart", place(tree)[0])
    for star in tree.find_all(exp.Star):
        if not isinstance(star.parent, exp.Count) and star.find_ancestor(exp.Select) is tree:
            raise NotSplit("a star stands for all columns, of which some would not be kept: name them", place(star)[0])
    return tree


def from_references(tree: exp.Select, analysis: Analysis, known: Callable[[str], Known | None]) -> tuple[Joined, ...]:
    """What stands in FROM, if it is nothing but references and inner joins of them. Raises NotSplit."""
    from sqlglot import exp

    if tree.args.get("from_") is None:
        raise NotSplit("it has no FROM")
    tables = [tree.args["from_"].this]
    for join in tree.args.get("joins") or ():
        side, kind = (join.side or "").upper(), (join.kind or "").upper()
        if side or kind not in ("", "INNER", "CROSS") or join.args.get("using") or join.args.get("method"):
            what = f"{side} {kind} JOIN".strip() if side or kind not in ("", "INNER", "CROSS") else "USING or NATURAL"
            raise NotSplit(
                f"{what.replace('  ', ' ')} is not taken apart, only inner joins with ON", place(join.this)[0]
            )
        tables.append(join.this)
    by_start = {found.start: n for n, found in enumerate(analysis.found.tables)}
    found: list[Joined] = []
    for table in tables:
        if not isinstance(table, exp.Table) or any(
            table.args.get(k) for k in ("joins", "pivots", "sample", "laterals")
        ):
            raise NotSplit("FROM has something else than references", place(table)[0])
        start = min((int(part.meta["start"]) for part in table.parts if "start" in part.meta), default=-1)
        occurrence = by_start.get(start)
        alias = table.args.get("alias")
        if occurrence is None or (alias is not None and alias.args.get("columns")):
            raise NotSplit("FROM has something else than references", place(table)[0])
        reference = analysis.found.tables[occurrence]
        columns = known(reference.table.lower())
        if columns is None or not columns.columns:
            raise NotSplit(f"the columns of {reference.table} are not known", reference.start)
        found.append(Joined(occurrence, reference, table.alias_or_name, tuple(columns.columns.items())))
    if len({each.alias.lower() for each in found}) < len(found):
        raise NotSplit("two references have one name")
    return tuple(found)


def _refuse_shadows(tree: exp.Select, aliases: set[str]) -> None:
    """A subquery that calls a table of its own like one of ours would have its columns renamed."""
    from sqlglot import exp

    for node in tree.find_all(exp.Table, exp.Subquery):
        inner = node.find_ancestor(exp.Select)
        if inner is not tree and node.alias_or_name.lower() in aliases:
            message = f"a subquery has a table called {node.alias_or_name}, too: call it something else"
            raise NotSplit(message, place(node)[0])


def _condition(e: exp.Expr, scope: Scope, owner: dict[int, tuple[int, str]]) -> FlatCondition:
    from sqlglot import exp

    columns: set[int] = set()
    for column in e.find_all(exp.Column):
        found = scope.find(column)
        if found is None:
            return FlatCondition("", None, False)
        columns |= columns_of(found)
    occurrences = frozenset(owner[c][0] for c in columns)
    if e.find(exp.Query) is not None:
        return FlatCondition("", None, False)
    total = _is_total(e, scope)
    pair = None
    if isinstance(e, exp.EQ) and total:
        sides = expression(e.this, scope), expression(e.expression, scope)
        if isinstance(sides[0], Ref) and isinstance(sides[1], Ref):
            pair = (owner[sides[0].column], owner[sides[1].column])
    return FlatCondition(e.sql("spark", comments=False), occurrences, total, pair)


def _is_total(e: exp.Expr, scope: Scope) -> bool:
    """Whether a condition can be evaluated on any row: comparisons of columns and constants of one type."""
    from sqlglot import exp

    if isinstance(e, exp.Paren | exp.Not):
        return _is_total(e.this, scope)
    if isinstance(e, exp.And | exp.Or):
        return _is_total(e.this, scope) and _is_total(e.expression, scope)
    if isinstance(e, exp.EQ | exp.NEQ | exp.NullSafeEQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        return _of_one_type([e.this, e.expression], scope)
    if isinstance(e, exp.Between) and not e.args.get("symmetric"):
        return _of_one_type([e.this, e.args["low"], e.args["high"]], scope)
    if isinstance(e, exp.In) and e.expressions and not e.args.get("query") and not e.args.get("unnest"):
        return _of_one_type([e.this, *e.expressions], scope)
    return isinstance(e, exp.Is) and isinstance(e.expression, exp.Null) and _is_plain(e.this, scope)


def _of_one_type(operands: list[exp.Expr], scope: Scope) -> bool:
    from sqlglot import exp

    kinds = set()
    for e in operands:
        if isinstance(e, exp.Cast) and e.to.sql("spark").upper() == "DATE" and _is_date(e.this):
            kinds.add("date")
            continue
        if isinstance(e, exp.Literal | exp.Neg) and not e.is_string:
            kinds.add("number")
            continue
        found = expression(e, scope)
        if isinstance(found, Other) or found.type is None:
            return False
        kinds.add(found.type)
    numbers = {k for k in kinds if k == "number" or k.startswith("decimal(") or k in INTEGERS}
    if kinds == numbers:
        return True  # numbers are widened, which never fails
    first = next(iter(kinds))
    return len(kinds) == 1 and comparable(first, first)


def _is_date(e: exp.Expr) -> bool:
    from datetime import date

    try:
        return bool(e.is_string and date.fromisoformat(e.name))
    except ValueError:
        return False


def _is_plain(e: exp.Expr, scope: Scope) -> bool:
    return not isinstance(expression(e, scope), Other)


# -- texts


def _cut(text: str, analysis: Analysis) -> tuple[tuple[int, int], tuple[tuple[int, int], ...], tuple[int, int]]:
    """Where the text before FROM stands, each condition of ON and WHERE, and what follows."""
    outer = list(_outer(analysis.tokens))
    at = next(n for n, t in enumerate(outer) if t.token_type.name == "FROM" and not _is_comparison(outer, n))
    conditions: list[tuple[int, int]] = []
    opened: int | None = None
    tail = end = len(text)
    for token in outer[at + 1 :]:
        name = token.token_type.name
        if opened is not None and (name in _JOINS or name == "WHERE" or name in _TAIL):
            conditions.append((opened, token.start))
            opened = None
        if name in ("ON", "WHERE"):
            opened = token.end + 1
        if name in _TAIL:
            tail = token.start
            break
    if opened is not None:
        conditions.append((opened, end))
    return (0, outer[at].start), tuple(conditions), (tail, end)


def _outer(tokens: tuple[Token, ...]) -> Iterator[Token]:
    """Tokens outside all parentheses."""
    depth = 0
    for token in tokens:
        name = token.token_type.name
        if name in ("R_PAREN", "R_BRACKET", "R_BRACE"):
            depth -= 1
        elif name in ("L_PAREN", "L_BRACKET", "L_BRACE"):
            depth += 1
        elif depth == 0:
            yield token


def _is_comparison(tokens: list[Token], n: int) -> bool:
    """`a IS DISTINCT FROM b` has no FROM clause."""
    return (
        n > 0
        and tokens[n - 1].token_type.name == "DISTINCT"
        and n > 1
        and tokens[n - 2].token_type.name in ("IS", "NOT")
    )
