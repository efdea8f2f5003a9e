"""What a query asks of a sampled view: groups, conditions, and results as formulas over totals.

Everything that depends on which rows there are at all (LIMIT, DISTINCT, HAVING, sub-queries, window functions) cannot
be seen in a sample and is refused, as is whatever is not known to be answerable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from partwise.estimate.formula import Formula, Number, Operation, SquareRoot, TotalAt, average, variance
from partwise.fresh.refused import Refused

PART_COLUMNS = ("part", "part_timestamp")
_CHANGING = ("random", "setseed", "nextval", "uuid", "gen_random_uuid")
_PUBLISHED = "without --fresh the query gives the published content"
_CLAUSES = {
    "having": "HAVING", "limit": "LIMIT", "offset": "OFFSET", "distinct": "DISTINCT", "qualify": "QUALIFY",
    "windows": "WINDOW", "with_": "WITH", "with": "WITH", "laterals": "LATERAL", "sample": "TABLESAMPLE", "pivots": "PIVOT",
}  # fmt: skip


@dataclass(frozen=True)
class Total:
    """A sum over rows. `value` is SQL for one row, `row` its expression (None: rows are counted), `squared` of x * x."""

    value: str
    row: exp.Expression | None
    squared: bool = False


@dataclass(frozen=True)
class FreshQuestion:
    """`parts`: the conditions that choose parts, `keys`: values of the key that WHERE lists, as text, if it does."""

    view: str
    alias: str
    groups: tuple[tuple[str, str], ...]
    results: tuple[tuple[str, Formula], ...]
    written: tuple[str, ...]  # the results as SQL
    totals: tuple[Total, ...]
    coupled: tuple[tuple[int, int], ...]
    where: str
    parts: tuple[str, ...]
    keys: tuple[str, ...] | None
    by_part: int | None  # the number of the group that is the part, or its time
    order: tuple[tuple[int, bool], ...] = ()


def view_of(sql: str) -> str:
    """The name of the view that a query is about. Raises Refused."""
    return _table(_select(sql)).name


def ask(sql: str, key: Sequence[tuple[str, str]]) -> FreshQuestion:
    """`key` are the sampled columns of the view with their types. Raises Refused."""
    select = _select(sql)
    table = _table(select)
    groups = _groups(select)
    made = _Totals()
    results: list[tuple[str, Formula]] = []
    written: list[str] = []
    shown: list[tuple[str, str]] = []
    for item in select.expressions:
        body = item.unalias()
        name = item.alias or (body.name if isinstance(body, exp.Column) else "")
        if body.sql("duckdb") in groups or _position(body, groups) is not None:
            shown.append((name or body.sql("duckdb"), body.sql("duckdb")))
        else:
            results.append((name or body.sql("duckdb"), _formula(body, made)))
            written.append(body.sql("duckdb"))
    if not results:
        raise _refused("rows of a sample", "it would show some rows of the view and not others")
    hidden = [g for g in groups if g not in {text for _, text in shown}]
    shown += [(text, text) for text in hidden]
    where = select.args.get("where")
    condition = where.this if where is not None else None
    conjuncts = (
        list(condition.flatten()) if isinstance(condition, exp.And) else [condition] if condition is not None else []
    )
    conjuncts = [c.unnest() for c in conjuncts]
    return FreshQuestion(
        view=table.name,
        alias=table.alias_or_name,
        groups=tuple(shown),
        results=tuple(results),
        written=tuple(written),
        totals=tuple(made.totals),
        coupled=tuple(made.pairs()),
        where="TRUE" if condition is None else condition.sql("duckdb"),
        parts=tuple(c.sql("duckdb") for c in conjuncts if _is_about_parts(c)),
        keys=_keys(conjuncts, key),
        by_part=next((n for n, (_, text) in enumerate(shown) if text.rpartition(".")[2].lower() in PART_COLUMNS), None),
        order=_order(select, shown),
    )


def _select(sql: str) -> exp.Select:
    try:
        statements = [s for s in parse(sql, read="duckdb") if s is not None]
    except SqlglotError as why:
        raise Refused("sql", f"the query cannot be read: {str(why).splitlines()[0]}", "write one SELECT") from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        raise _refused("anything but one SELECT", "")
    select = statements[0]
    for clause, name in _CLAUSES.items():
        if select.args.get(clause):
            raise _refused(name, "the rows that count may not be in it")
    if select.args.get("joins"):
        raise _refused("a join", "only one sampled view can be read")
    for kind, name in ((exp.Subquery, "a sub-query"), (exp.Window, "a window function"), (exp.Select, "a sub-query")):
        if any(found is not select for found in select.find_all(kind)):
            raise _refused(name, "it may need rows that are not in it")
    for call in select.find_all(exp.Func):
        if isinstance(call, exp.Rand | exp.Uuid) or call.name.lower() in _CHANGING:
            raise _refused(f"'{call.sql('duckdb')}'", "it gives another value each time")
    if select.find(exp.Star) and not all(isinstance(s.parent, exp.Count) for s in select.find_all(exp.Star)):
        raise _refused("SELECT *", "it would show some rows of the view and not others")
    return select


def _refused(what: str, why: str) -> Refused:
    return Refused("not-answerable", f"{what} cannot be answered from a sample{': ' + why if why else ''}", _PUBLISHED)


def _table(select: exp.Select) -> exp.Table:
    source = select.args.get("from") or select.args.get("from_")
    if source is None or not isinstance(source.this, exp.Table) or source.this.db:
        raise _refused("a query without one view in FROM", "")
    return source.this


def _groups(select: exp.Select) -> list[str]:
    group = select.args.get("group")
    if group is None:
        return []
    if any(group.args.get(kind) for kind in ("grouping_sets", "cube", "rollup", "all", "totals")):
        raise _refused("GROUP BY with sets of groups", "")
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
        if body.find(exp.AggFunc):
            raise _refused("GROUP BY of an aggregate", "")
        found.append(body.sql("duckdb"))
    return found


def _position(body: exp.Expression, groups: list[str]) -> int | None:
    """`customer` and `v.customer` are the same column: there is one table."""
    if not isinstance(body, exp.Column):
        return None
    return next(
        (n for n, text in enumerate(groups) if text.rpartition(".")[2] == body.sql("duckdb").rpartition(".")[2]), None
    )


def _order(select: exp.Select, shown: list[tuple[str, str]]) -> tuple[tuple[int, bool], ...]:
    order = select.args.get("order")
    found = []
    for item in order.expressions if order is not None else ():
        text = item.this.sql("duckdb")
        if item.this.is_int:
            text = select.expressions[int(item.this.name) - 1].unalias().sql("duckdb")
        at = next((n for n, (name, body) in enumerate(shown) if text in (name, body)), None)
        if at is None:
            raise _refused("ORDER BY an estimate", "its order is as uncertain as its values")
        found.append((at, bool(item.args.get("desc"))))
    return tuple(found)


def _is_about_parts(condition: exp.Expr) -> bool:
    names = {c.name.lower() for c in condition.find_all(exp.Column)}
    return bool(names) and names <= set(PART_COLUMNS)


def _keys(conjuncts: Sequence[exp.Expr], key: Sequence[tuple[str, str]]) -> tuple[str, ...] | None:
    """Values of the key that the condition leaves, if the key is one column of text or whole numbers."""
    if len(key) != 1:
        return None
    name, kind = key[0]
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


def _literal(value: exp.Expression, kind: str) -> str | None:
    if not isinstance(value, exp.Literal):
        return None
    if kind == "string":
        return value.name if value.is_string else None
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return str(int(value.name)) if value.is_int else None
    return None


@dataclass
class _Totals:
    """Totals that formulas need, each once."""

    totals: list[Total] = field(default_factory=list)
    coupled: list[tuple[int, int]] = field(default_factory=list)

    def at(self, total: Total) -> int:
        for n, known in enumerate(self.totals):
            if known.value == total.value:
                return n
        self.totals.append(total)
        return len(self.totals) - 1

    def pairs(self) -> list[tuple[int, int]]:
        """Sums with the count of their rows, and with the count of all rows: where that is 0, so is every sum."""
        whole = next((n for n, t in enumerate(self.totals) if t.value == _EVERY_ROW), None)
        more = [] if whole is None else [(n, whole) for n, t in enumerate(self.totals) if t.row is not None]
        return list(dict.fromkeys([*self.coupled, *more]))

    def count(self, row: exp.Expression | None, only: str) -> int:
        holds = [c for c in (only, "" if row is None else f"({row.sql('duckdb')}) IS NOT NULL") if c]
        return self.at(Total(f"CASE WHEN {' AND '.join(holds) or 'TRUE'} THEN 1e0 ELSE 0e0 END", None))

    def sum(self, row: exp.Expression, only: str, squared: bool = False) -> int:
        value = f"CAST({row.sql('duckdb')} AS DOUBLE)"
        value = f"{value} * {value}" if squared else value
        chosen = f"CASE WHEN {only} THEN {value} END" if only else value
        return self.at(Total(f"COALESCE({chosen}, 0e0)", row, squared))


_EVERY_ROW = "CASE WHEN TRUE THEN 1e0 ELSE 0e0 END"
_SPREADS = {
    exp.Variance: (True, False), exp.VariancePop: (False, False),
    exp.Stddev: (True, True), exp.StddevSamp: (True, True), exp.StddevPop: (False, True),
}  # fmt: skip
_OPERATORS: dict[type[exp.Binary], Literal["+", "-", "*", "/"]] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
}


def _formula(body: exp.Expression, made: _Totals, only: str = "") -> Formula:
    if isinstance(body, exp.Paren):
        return _formula(body.this, made, only)
    if isinstance(body, exp.Neg):
        return Operation("-", Number(0.0), _formula(body.this, made, only))
    if isinstance(body, exp.Literal) and not body.is_string:
        return Number(float(body.name))
    if isinstance(body, exp.Cast) and body.to.is_type("double", "float"):
        return _formula(body.this, made, only)
    if isinstance(body, exp.Add | exp.Sub | exp.Mul | exp.Div):
        left, right = _formula(body.this, made, only), _formula(body.expression, made, only)
        return Operation(_OPERATORS[type(body)], left, right)
    if isinstance(body, exp.Filter) and not only:
        return _formula(body.this, made, f"({body.expression.this.sql('duckdb')})")
    if isinstance(body, exp.AggFunc):
        return _aggregate(body, made, only)
    raise _refused(f"'{body.sql('duckdb')}'", "only sums, differences, products and quotients of aggregates can")


def _aggregate(call: exp.AggFunc, made: _Totals, only: str) -> Formula:
    row = call.this
    if isinstance(row, exp.Distinct) or call.args.get("order"):
        raise _refused(f"'{call.sql('duckdb')}'", "values that are not in it may be distinct ones")
    if isinstance(call, exp.Count):
        if call.expressions:
            raise _refused(f"'{call.sql('duckdb')}'", "")
        return TotalAt(made.count(None if row is None or isinstance(row, exp.Star) else row, only))
    if isinstance(call, exp.Sum):
        return TotalAt(made.sum(row, only))
    if isinstance(call, exp.Avg):
        total, count = made.sum(row, only), made.count(row, only)
        made.coupled.append((total, count))
        return average(total, count)
    if type(call) in _SPREADS:
        of_sample, root = _SPREADS[type(call)]
        found = variance(made.sum(row, only), made.sum(row, only, squared=True), made.count(row, only), of_sample)
        return SquareRoot(found) if root else found
    raise _refused(f"'{call.sql('duckdb')}'", "SUM, COUNT, AVG, VAR and STDDEV can")
