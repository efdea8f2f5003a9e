"""A query of two sampled views that are joined on the key by which both are sampled.

It is asked of one virtual view: the column x of the first view is called `0:x` there, that of the second `1:x`. Where
the query compares the parts of both sides, `part` and `part_timestamp` are those of the joined row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from partwise.fresh.asked.question import PART_COLUMNS, FreshQuestion, columns_of_views, question_of, select_of
from partwise.fresh.asked.refused import Refused, not_answerable

JOINED = "__joined"


@dataclass(frozen=True)
class Joinable:
    """A sampled view: its name, columns, and the key with types. `columns` are empty if they are not known."""

    name: str
    columns: tuple[str, ...]
    key: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class JoinedQuestion:
    """`sides` choose parts of each view; `same_part`: rows are joined within a part."""

    question: FreshQuestion
    sides: tuple[FreshQuestion, FreshQuestion]
    same_part: bool

    def measured_of(self, n: int) -> frozenset[str]:
        names = {name for row in self.question.measured for name in columns_of_views(row)}
        return frozenset(name.removeprefix(f"{n}:") for name in names if name.startswith(f"{n}:"))


def column_of(side: int, name: str) -> str:
    return f"{side}:{name.lower()}"


def ask_joined(sql: str, views: tuple[Joinable, Joinable]) -> JoinedQuestion:
    """Raises Refused."""
    select = select_of(sql)
    tables = _tables(select)
    aliases = [t.alias_or_name.lower() for t in tables]
    if aliases[0] == aliases[1]:
        raise not_answerable("a join of a view with itself under one name", "give each an alias")
    conditions = _conditions(select, _Names(views, aliases, frozenset()))
    shared = frozenset(i.name.lower() for i in select.args["joins"][0].args.get("using") or ())
    names = _Names(views, aliases, shared)
    _rename(select, names)
    conditions += [c for c in _conjuncts(select.args.get("where")) if c not in conditions]
    _same_key(views, conditions)
    same_part = any(_equal(conditions, c, c) for c in PART_COLUMNS)
    if same_part:
        for column in [*select.find_all(exp.Column), *(c for e in conditions for c in e.find_all(exp.Column))]:
            if column.name.partition(":")[2] in PART_COLUMNS:
                column.set("this", exp.to_identifier(column.name.partition(":")[2], quoted=True))
    where = exp.and_(*conditions)
    select.set("where", exp.Where(this=where))
    select.set("joins", None)
    label = f"{views[0].name} JOIN {views[1].name}"
    asked = replace(question_of(select, label, JOINED, ()), keys=None)
    if asked.rows is not None:
        raise not_answerable("a list of joined rows", "ask for totals, or for rows of one view")
    sides = tuple(_side(asked, n, views[n].name, conditions, same_part) for n in (0, 1))
    return JoinedQuestion(asked, (sides[0], sides[1]), same_part)


def _side(asked: FreshQuestion, n: int, view: str, conditions: Sequence[exp.Expr], same_part: bool) -> FreshQuestion:
    """What chooses parts of one side."""
    own = {column_of(n, c) for c in PART_COLUMNS}
    if same_part:
        return replace(asked, view=view)
    parts = []
    for condition in conditions:
        names = {c.name for c in condition.find_all(exp.Column)}
        if names and names <= own:
            plain = condition.copy()
            for column in plain.find_all(exp.Column):
                column.set("this", exp.to_identifier(column.name.partition(":")[2]))
            parts.append(plain.sql("duckdb"))
    return replace(asked, view=view, parts=tuple(parts))


@dataclass(frozen=True)
class _Names:
    """Whose column a name is."""

    views: tuple[Joinable, Joinable]
    aliases: Sequence[str]
    shared: frozenset[str]

    def side_of(self, column: exp.Column) -> int | None:
        name, table = column.name.lower(), column.table.lower()
        if table:
            if table not in self.aliases:
                raise Refused("sql", f"{column.sql('duckdb')}: no table in FROM is called {column.table}", "")
            return self.aliases.index(table)
        has = [n for n, view in enumerate(self.views) if name in {*map(str.lower, view.columns), *PART_COLUMNS}]
        if name in self.shared or len(has) == 1:
            return has[0] if has else 0
        if len(has) > 1:
            raise Refused("sql", f"{column.name} is a column of both views", f"write {self.aliases[0]}.{column.name}")
        return None


def _tables(select: exp.Select) -> list[exp.Table]:
    source, joins = select.args.get("from_") or select.args.get("from"), select.args.get("joins") or []
    tables = [source.this if source is not None else None, *(join.this for join in joins)]
    if len(tables) != 2 or any(not isinstance(t, exp.Table) or t.db for t in tables):
        raise not_answerable("anything but one view, or two that are joined", "")
    join = joins[0]
    if join.method or join.side or join.kind not in ("", "INNER", "CROSS"):
        raise not_answerable(
            f"{join.method or join.side or join.kind} JOIN", "only rows that both views have are joined"
        )
    return [t for t in tables if isinstance(t, exp.Table)]


def _conditions(select: exp.Select, names: _Names) -> list[exp.Expr]:
    """Of ON and USING, with columns as they are called in the virtual view."""
    join = select.args["joins"][0]
    found = [_renamed(c, names) for c in _conjuncts(join.args.get("on"))]
    for shared in join.args.get("using") or ():
        found.append(exp.EQ(this=_column(0, shared.name), expression=_column(1, shared.name)))
    return found


def _conjuncts(where: exp.Expr | None) -> list[exp.Expr]:
    if where is None:
        return []
    body = where.this if isinstance(where, exp.Where) else where
    return [c.unnest() for c in (body.flatten() if isinstance(body, exp.And) else [body])]


def _rename(select: exp.Select, names: _Names) -> None:
    """SELECT, WHERE, GROUP BY and ORDER BY over the virtual view. Results keep the names that they would have."""
    shown = []
    for item in select.expressions:
        if isinstance(item, exp.Star):
            raise not_answerable("a list of joined rows", "ask for totals, or for rows of one view")
        body = item.unalias()
        name = item.alias or (body.name if isinstance(body, exp.Column) else body.sql("duckdb"))
        shown.append(exp.alias_(_renamed(body, names), name, quoted=True))
    select.set("expressions", shown)
    outputs = frozenset(item.alias.lower() for item in shown)
    for clause in ("where", "group", "order"):
        if (node := select.args.get(clause)) is not None:
            select.set(clause, _renamed(node, names, outputs if clause != "where" else frozenset()))


def _renamed(node: exp.Expr, names: _Names, kept: frozenset[str] = frozenset()) -> exp.Expr:
    """`kept`: names of results, which may stand for themselves."""

    def rename(found: exp.Expr) -> exp.Expr:
        if not isinstance(found, exp.Column) or (not found.table and found.name.lower() in kept):
            return found
        side = names.side_of(found)
        if side is None:
            known = ", ".join(c for view in names.views for c in view.columns) or "not known"
            raise Refused("sql", f"neither view has a column {found.name}", f"columns: {known}")
        return _column(side, found.name)

    return node.transform(rename)


def _column(side: int, name: str) -> exp.Column:
    return exp.column(exp.to_identifier(column_of(side, name), quoted=True))


def _same_key(views: tuple[Joinable, Joinable], conditions: Sequence[exp.Expr]) -> None:
    one, other = views
    pairs = list(zip(one.key, other.key, strict=False))
    whole = len(one.key) == len(other.key) and all(_equal(conditions, a, b) for (a, _), (b, _) in pairs)
    if not whole:
        keys = " and ".join(f"{one.name}.{a} = {other.name}.{b}" for (a, _), (b, _) in pairs)
        raise not_answerable("a join on anything but the key by which both views are sampled", f"join on {keys}")
    if different := next(((a, b) for a, b in pairs if _kind(a[1]) != _kind(b[1])), None):
        (a, kind), (b, other_kind) = different
        message = f"{a} is {kind} and {b} is {other_kind}: they have different hashes"
        raise not_answerable("a join of keys of different types", message)


def _kind(name: str) -> str:
    return "integer" if name in ("tinyint", "smallint", "int", "bigint") else name


def _equal(conditions: Sequence[exp.Expr], one: str, other: str) -> bool:
    wanted = {column_of(0, one), column_of(1, other)}
    return any(
        isinstance(c, exp.EQ)
        and isinstance(c.this, exp.Column)
        and isinstance(c.expression, exp.Column)
        and {c.this.name, c.expression.name} == wanted
        for c in conditions
    )
