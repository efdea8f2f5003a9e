"""What a query asks of a sampled view: groups, conditions, and results as formulas over totals.

Everything that depends on which rows there are at all (LIMIT, DISTINCT, HAVING, sub-queries, window functions) cannot
be seen in a sample and is refused, as is whatever is not known to be answerable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from sqlglot import exp, parse, parse_one
from sqlglot.errors import SqlglotError

from partwise.fresh.asked.refused import Refused, not_answerable
from partwise.fresh.asked.results import ExtremeOf, Result, Total, TotalsOf, duckdb_text, result_of
from partwise.sql.types.names import INTEGERS

PART_COLUMNS = ("part", "part_timestamp")
_CHANGING = ("random", "setseed", "nextval", "uuid", "gen_random_uuid")
_CLAUSES = {
    "having": "HAVING", "limit": "LIMIT", "offset": "OFFSET", "distinct": "DISTINCT", "qualify": "QUALIFY",
    "windows": "WINDOW", "with_": "WITH", "with": "WITH", "laterals": "LATERAL", "sample": "TABLESAMPLE", "pivots": "PIVOT",
}  # fmt: skip


@dataclass(frozen=True)
class RowsAsked:
    """Rows, not totals: names with SQL (None: all columns of the view), and ORDER BY as it is written."""

    items: tuple[tuple[str, str], ...] | None
    order: str = ""


@dataclass(frozen=True)
class FreshQuestion:
    """`parts`: the conditions that choose parts, `keys`: values of the key that WHERE lists, as text, if it does;
    `pinned`: the same by column of a key of several columns."""

    view: str
    alias: str
    groups: tuple[tuple[str, str], ...]
    results: tuple[tuple[str, Result], ...]
    written: tuple[str, ...]  # the results as SQL
    totals: tuple[Total, ...]
    coupled: tuple[tuple[int, int], ...]
    where: str
    parts: tuple[str, ...]
    keys: tuple[str, ...] | None
    by_part: tuple[int, ...]  # groups that follow from the part alone
    order: tuple[tuple[int, bool, bool], ...] = ()  # number of the group, whether it falls, whether NULL is first
    rows: RowsAsked | None = None  # instead of results
    pinned: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def measured(self) -> list[exp.Expression]:
        """What is added up, or looked at for its largest value."""
        rows = [total.row for total in self.totals if total.row is not None]
        return rows + [result.row for _, result in self.results if isinstance(result, ExtremeOf)]


def views_of(sql: str) -> list[str]:
    """The names of the views that a query is about: one, or two that are joined. Raises Refused."""
    select = select_of(sql)
    joined = [join.this for join in select.args.get("joins") or ()]
    if not joined:
        return [_table(select).name]
    if len(joined) > 1 or not isinstance(joined[0], exp.Table):
        raise not_answerable("a join of more than two views", "")
    return [_table(select).name, joined[0].name]


def ask(sql: str, key: Sequence[tuple[str, str]]) -> FreshQuestion:
    """Of one view. `key` are its sampled columns with their types. Raises Refused."""
    select = select_of(sql)
    table = _table(select)
    if select.args.get("joins"):
        raise not_answerable("a join", "only one sampled view can be read")
    return question_of(select, table.name, table.alias_or_name, key)


def question_of(select: exp.Select, view: str, alias: str, key: Sequence[tuple[str, str]]) -> FreshQuestion:
    groups = _groups(select)
    made = TotalsOf()
    results: list[tuple[str, Result]] = []
    written: list[str] = []
    shown: list[tuple[str, str]] = []
    rows = None if groups or select.find(exp.AggFunc, exp.Anonymous) else _rows(select)
    for item in select.expressions if rows is None else ():
        body = item.unalias()
        name = item.alias or (body.name if isinstance(body, exp.Column) else "")
        if body.sql("duckdb") in groups or _position(body, groups) is not None:
            shown.append((name or body.sql("duckdb"), body.sql("duckdb")))
        else:
            results.append((name or body.sql("duckdb"), result_of(body, made)))
            written.append(duckdb_text(body))
    if not results and rows is None:
        raise not_answerable("a list of groups", "there may be groups that are not in it")
    hidden = [g for g in groups if g not in {text for _, text in shown}]
    shown += [(text, text) for text in hidden]
    where = select.args.get("where")
    condition = where.this if where is not None else None
    conjuncts = (
        list(condition.flatten()) if isinstance(condition, exp.And) else [condition] if condition is not None else []
    )
    conjuncts = [c.unnest() for c in conjuncts]
    return FreshQuestion(
        view=view,
        alias=alias,
        groups=tuple(shown),
        results=tuple(results),
        written=tuple(written),
        totals=tuple(made.totals),
        coupled=tuple(made.pairs()),
        where="TRUE" if condition is None else condition.sql("duckdb"),
        parts=tuple(c.sql("duckdb") for c in conjuncts if _is_about_parts(c)),
        keys=_values(conjuncts, *key[0]) if len(key) == 1 else None,
        by_part=tuple(n for n, (_, text) in enumerate(shown) if _is_about_parts(parse_one(text, read="duckdb"))),
        order=_order(select, shown) if rows is None else (),
        rows=rows,
        pinned=_pinned(conjuncts, key) if len(key) > 1 else (),
    )


def _rows(select: exp.Select) -> RowsAsked:
    order = select.args.get("order")
    text = order.sql("duckdb") if order is not None else ""
    if any(isinstance(item, exp.Star) for item in select.expressions):
        if len(select.expressions) > 1 or any(select.expressions[0].args.values()):
            raise not_answerable("* beside other columns", "write SELECT *, or name the columns")
        return RowsAsked(None, text)
    return RowsAsked(
        tuple((item.alias_or_name or item.sql("duckdb"), item.unalias().sql("duckdb")) for item in select.expressions),
        text,
    )


def select_of(sql: str) -> exp.Select:
    try:
        statements = [s for s in parse(sql, read="duckdb") if s is not None]
    except SqlglotError as why:
        raise Refused("sql", f"the query cannot be read: {str(why).splitlines()[0]}", "write one SELECT") from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        raise not_answerable("anything but one SELECT", "")
    select = statements[0]
    for clause, name in _CLAUSES.items():
        if select.args.get(clause):
            raise not_answerable(name, "the rows that count may not be in it")
    for kind, name in ((exp.Subquery, "a sub-query"), (exp.Window, "a window function"), (exp.Select, "a sub-query")):
        if any(found is not select for found in select.find_all(kind)):
            raise not_answerable(name, "it may need rows that are not in it")
    for call in select.find_all(exp.Func):
        if isinstance(call, exp.Rand | exp.Uuid) or call.name.lower() in _CHANGING:
            raise not_answerable(f"'{call.sql('duckdb')}'", "it gives another value each time")
    if any(not isinstance(star.parent, exp.Count | exp.Select) for star in select.find_all(exp.Star)):
        raise not_answerable("v.*", "write SELECT *, or name the columns")
    return select


def _table(select: exp.Select) -> exp.Table:
    source = select.args.get("from") or select.args.get("from_")
    if source is None or not isinstance(source.this, exp.Table) or source.this.db:
        raise not_answerable("a query without one view in FROM", "")
    return source.this


def _groups(select: exp.Select) -> list[str]:
    group = select.args.get("group")
    if group is None:
        return []
    if any(group.args.get(kind) for kind in ("grouping_sets", "cube", "rollup", "all", "totals")):
        raise not_answerable("GROUP BY with sets of groups", "")
    found = []
    for item in group.expressions:
        if isinstance(item, exp.Literal) and not item.is_string:
            at = int(item.name) - 1
            if not 0 <= at < len(select.expressions):
                raise Refused("sql", f"GROUP BY {item.name}: there is no such item in SELECT", "")
            item = select.expressions[at].unalias()
        named = next(
            (e for e in select.expressions if e.alias and e.alias == item.name and isinstance(item, exp.Column)), None
        )
        body = named.unalias() if named is not None and not item.table else item
        if any(c.name.lower() == item.name.lower() for c in body.find_all(exp.Column)):
            body = item  # upper(x) AS x: a column of the view comes before a name of SELECT
        if body.find(exp.AggFunc):
            raise not_answerable("GROUP BY of an aggregate", "")
        found.append(body.sql("duckdb"))
    return found


def _position(body: exp.Expression, groups: list[str]) -> int | None:
    """`customer` and `v.customer` are the same column: there is one table."""
    if not isinstance(body, exp.Column):
        return None
    return next(
        (n for n, text in enumerate(groups) if text.rpartition(".")[2] == body.sql("duckdb").rpartition(".")[2]), None
    )


def _order(select: exp.Select, shown: list[tuple[str, str]]) -> tuple[tuple[int, bool, bool], ...]:
    order = select.args.get("order")
    found = []
    for item in order.expressions if order is not None else ():
        text = item.this.sql("duckdb")
        if item.this.is_int:
            text = select.expressions[int(item.this.name) - 1].unalias().sql("duckdb")
        at = next((n for n, (name, body) in enumerate(shown) if text in (name, body)), None)
        if at is None:
            raise not_answerable("ORDER BY an estimate", "its order is as uncertain as its values")
        found.append((at, bool(item.args.get("desc")), bool(item.args.get("nulls_first"))))
    return tuple(found)


def columns_of_views(row: exp.Expression) -> set[str]:
    return {c.name.lower() for c in row.find_all(exp.Column)}


def _is_about_parts(condition: exp.Expr) -> bool:
    names = {c.name.lower() for c in condition.find_all(exp.Column)}
    return bool(names) and names <= set(PART_COLUMNS)


def _pinned(conjuncts: Sequence[exp.Expr], key: Sequence[tuple[str, str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found = [(name, _values(conjuncts, name, kind)) for name, kind in key]
    return tuple((name, values) for name, values in found if values is not None)


def _values(conjuncts: Sequence[exp.Expr], name: str, kind: str) -> tuple[str, ...] | None:
    """Values of a column of the key that the condition leaves, as the text that is hashed."""
    for condition in conjuncts:
        values: list[Any] = []
        if isinstance(condition, exp.EQ):
            sides = [condition.this, condition.expression]
            column = next((s for s in sides if isinstance(s, exp.Column)), None)
            values = [s for s in sides if s is not column]
        elif isinstance(condition, exp.In) and not condition.args.get("query"):
            column, values = condition.this, condition.expressions
        else:
            continue
        if not isinstance(column, exp.Column) or column.name.lower() != name.lower():
            continue
        texts = [_literal(value, kind) for value in values]
        if texts and all(text is not None for text in texts):
            return tuple(text for text in texts if text is not None)
    return None


def _literal(value: exp.Expr, kind: str) -> str | None:
    if isinstance(value, exp.Paren):
        return _literal(value.this, kind)
    if kind == "boolean":
        return str(bool(value.this)).lower() if isinstance(value, exp.Boolean) else None
    if kind == "date" and isinstance(value, exp.Cast) and value.to.is_type("date"):
        value = value.this
    below, value = (True, value.this) if isinstance(value, exp.Neg) else (False, value)
    if not isinstance(value, exp.Literal):
        return None
    if value.is_string:
        return None if below else _text(value.name, kind)
    written = f"-{value.name}" if below else value.name
    if kind in INTEGERS:
        return str(int(written)) if value.is_int else None
    return _decimal(written, kind) if kind.startswith("decimal(") else None


def _text(written: str, kind: str) -> str | None:
    if kind == "string":
        return written
    try:
        return date.fromisoformat(written).isoformat() if kind == "date" and len(written) == 10 else None
    except ValueError:
        return None


def _decimal(written: str, kind: str) -> str | None:
    """With all its digits; of more than six after the point Spark may write an exponent."""
    digits = int(kind.rstrip(")").rpartition(",")[2])
    whole, _, after = written.partition(".")
    if digits > 6 or len(after) > digits or not (whole.lstrip("-") + after).isdigit():
        return None
    number = Decimal(written)
    return str((number if number else Decimal(0)).quantize(Decimal(1).scaleb(-digits)))
