"""Which queries can be part of one query for several views, and what they become there.

    SELECT g, SUM(x) AS s FROM m[j] WHERE y > 1 GROUP BY g HAVING SUM(x) > 3

    SUM(CASE WHEN y > 1 THEN x END)    for a group that is there if    COUNT(CASE WHEN y > 1 THEN 1 END) > 0 AND ... > 3

CASE and not FILTER: with `MAX(1/x) FILTER (WHERE x <> 0)` beside it Spark divides by zero, while CASE evaluates what it
guards for no other rows. What may still fail beside a condition is left to a query of its own, as is everything whose
meaning could depend on what stands around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from partwise.compile.many_parts.model import NotLiftable
from partwise.compile.many_parts.text import parsed, unmasked, written
from partwise.compile.many_views.model import Fusable, NotFusable
from partwise.sql.functions import AGGREGATES
from partwise.sql.references import find, splice

#: Without a row of theirs these give what they give without any row at all, and the order of rows does not matter to
#: them any more than by themselves.
_AGGREGATE_NAMES = """
    sum count avg mean min max count_if bool_and bool_or every variance var_samp var_pop stddev stddev_samp stddev_pop
"""
_AGGREGATES = frozenset(_AGGREGATE_NAMES.split())
_SCALAR_NAMES = """
    abs ceil ceiling coalesce concat date_trunc day exp floor greatest hour ifnull isnan isnotnull isnull least length ln
    log10 log2 lower ltrim minute month nanvl nullif nvl pow power replace round rtrim second sign sqrt substr substring
    trim upper xxhash64 year
"""
_SCALARS = frozenset(_SCALAR_NAMES.split())
_PLAIN = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ,
    exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Is, exp.In, exp.Between, exp.Like, exp.Add, exp.Sub, exp.Mul,
    exp.Neg, exp.Case, exp.If, exp.DataType, exp.DataTypeParam,
)  # fmt: skip
_DIVISIONS = (exp.Div, exp.IntDiv, exp.Mod)
_OURS = re.compile(r"__(?:in|is|c|h)\d", re.IGNORECASE)
_CLAUSES = {"kind", "expressions", "from_", "joins", "where", "group", "having"}


def read(text: str, columns: tuple[tuple[str, ...], ...]) -> Fusable:
    """Raises NotFusable."""
    if _OURS.search(text):
        raise NotFusable("it uses names that are kept for queries of several views")
    found = find(text)
    if found.problems or found.names_part or len(found.tables) != len(columns):
        raise NotFusable("its tables are not known for sure")
    called = {table.start: f"__in{at}" for at, table in enumerate(found.tables, 1)}
    try:
        tree, strings = parsed(splice(text, lambda table: called[table.start], found=found))
    except NotLiftable as why:
        raise NotFusable(str(why)) from None
    if not isinstance(tree, exp.Select):
        raise NotFusable("it is no plain SELECT")
    return _Reader(tree, strings, columns).read()


class _Reader:
    def __init__(self, tree: exp.Select, strings: list[str], columns: tuple[tuple[str, ...], ...]) -> None:
        self.tree, self.strings, self.columns = tree, strings, columns
        self.known = {name.lower() for names in columns for name in names}

    def read(self) -> Fusable:
        extra = [key for key, value in self.tree.args.items() if value and key not in _CLAUSES]
        if extra or sum(1 for _ in self.tree.find_all(exp.Query)) > 1:
            raise NotFusable("it has clauses or queries inside that belong to it alone")
        source = self._source()
        items, keys, having = self._items(), self._keys(), self.tree.args.get("having")
        where = self.tree.args.get("where")
        condition = None if where is None else where.this
        self._check_names(items, keys, having)
        if condition is not None:
            self._check(condition, aggregates=False, may_fail=False)
        for key in keys or ():
            self._check(key, aggregates=False, may_fail=False)
        grouped = keys is not None
        for item in [*(each for _, each in items), *([having.this] if having is not None else [])]:
            self._check(item, aggregates=grouped, may_fail=True, guarded=condition is not None)
        return Fusable(
            source,
            self._text(condition) if condition is not None else None,
            None if keys is None else tuple(map(self._text, keys)),
            tuple(name for name, _ in items),
            tuple(self._text(_where(each, condition) if grouped else each) for _, each in items),
            self._present(condition, having, keys),
        )

    def _text(self, node: exp.Expr) -> str:
        return unmasked(written(node), self.strings)

    def _present(
        self, condition: exp.Expr | None, having: exp.Having | None, keys: list[exp.Expr] | None
    ) -> str | None:
        if keys is None:
            return self._text(condition) if condition is not None else None
        found = []
        if keys and condition is not None:
            found.append(f"COUNT(CASE WHEN {self._text(condition)} THEN 1 END) > 0")
        if having is not None:
            found.append(f"({self._text(_where(having.this, condition))})")
        return " AND ".join(found) or None

    # -- what is read

    def _source(self) -> str:
        """Of one table without its alias, which then stands before no column any more."""
        source, joins = self.tree.args.get("from_"), self.tree.args.get("joins") or []
        if source is None or not isinstance(source.this, exp.Table) or source.this.args.get("sample"):
            raise NotFusable("it reads no table")
        for join in joins:
            if not isinstance(join.this, exp.Table) or join.args.get("using") or join.args.get("method"):
                raise NotFusable("it joins more than tables by conditions")
            if join.args.get("on") is not None:
                self._check(join.args["on"], aggregates=False, may_fail=False)
        if joins:
            return " ".join(map(self._text, (source.this, *joins)))
        table = source.this
        self._without(str(table.alias or table.name).lower())
        return str(table.name)

    def _without(self, qualifier: str) -> None:
        if qualifier in self.known:
            raise NotFusable("a column is called like the table")
        for column in list(self.tree.find_all(exp.Column)):
            parts = column.parts
            if len(parts) > 1 and parts[0].name.lower() == qualifier:
                left = [part.copy() for part in reversed(parts[1:])]
                column.replace(exp.Column(**dict(zip(("this", "table", "db", "catalog"), left, strict=False))))

    # -- what is selected

    def _items(self) -> list[tuple[str, exp.Expr]]:
        found: list[tuple[str, exp.Expr]] = []
        for item in self.tree.expressions:
            if isinstance(item, exp.Star) and len(self.columns) == 1 and not any(item.args.values()):
                found += [(name, exp.column(name, quoted=True)) for name in self.columns[0]]
            elif isinstance(item, exp.Alias):
                found.append((item.alias, item.this))
            elif isinstance(item, exp.Column) and not isinstance(item.this, exp.Star):
                found.append((item.name, item))
            else:
                raise NotFusable("not every column has a name")
        return found

    def _keys(self) -> list[exp.Expr] | None:
        group = self.tree.args.get("group")
        if group is not None:
            if [key for key, value in group.args.items() if value and key != "expressions"] or not group.expressions:
                raise NotFusable("it groups in another way than by a list of keys")
            if any(isinstance(key, exp.Literal) for key in group.expressions):
                raise NotFusable("it groups by the number of a column")
            return list(group.expressions)
        nodes = [*self.tree.expressions, *([self.tree.args["having"]] if self.tree.args.get("having") else [])]
        aggregates = any(_name(call) in AGGREGATES for node in nodes for call in node.find_all(exp.Func))
        return [] if aggregates or self.tree.args.get("having") else None

    def _check_names(
        self, items: list[tuple[str, exp.Expr]], keys: list[exp.Expr] | None, having: exp.Having | None
    ) -> None:
        """A name must mean a column of what is read, not what another column of the result is called."""
        given = {name.lower() for name, item in items if not (isinstance(item, exp.Column) and item.name == name)}
        for node in [*(item for _, item in items), *(keys or [])]:
            for column in node.find_all(exp.Column):
                if column.parts[0].name.lower() in given - self.known:
                    raise NotFusable("a column of the result is read by its name")
        for column in having.find_all(exp.Column) if having is not None else ():
            if column.parts[0].name.lower() in given:
                raise NotFusable("HAVING names a column of the result")

    # -- what it is made of

    def _check(self, node: exp.Expr, *, aggregates: bool, may_fail: bool, guarded: bool = False) -> None:
        """`guarded`: what is aggregated is of some rows only, so nothing in there may fail of others."""
        if isinstance(node, exp.Filter):
            if not isinstance(node.this, exp.Anonymous) or not isinstance(node.expression, exp.Where):
                raise NotFusable("FILTER of something else than an aggregate")
            self._check(node.expression.this, aggregates=False, may_fail=False)
            self._check(node.this, aggregates=aggregates, may_fail=may_fail, guarded=True)
            return
        if isinstance(node, exp.Anonymous):
            name = _name(node)
            if name in _AGGREGATES and aggregates:
                if len(node.expressions) != 1:
                    raise NotFusable("an aggregate of several arguments")
                (argument,) = node.expressions
                if name == "count" and isinstance(argument, exp.Star) and not any(argument.args.values()):
                    return
                self._check(argument, aggregates=False, may_fail=not guarded)
                return
            if name not in _SCALARS:
                raise NotFusable(f"{name} may depend on what stands around it")
        elif isinstance(node, _DIVISIONS):
            if not may_fail and not _is_safe(node.expression):
                raise NotFusable("a division may fail")
        elif isinstance(node, exp.Cast):
            if not may_fail and not node.to.is_type("string", "decimal"):
                raise NotFusable("a CAST may fail")
        elif not isinstance(node, _PLAIN):
            raise NotFusable(f"{node.key} is not looked through")
        for inner in _inside(node):
            self._check(inner, aggregates=aggregates, may_fail=may_fail, guarded=guarded)


def _inside(node: exp.Expr) -> Iterator[exp.Expr]:
    for value in node.args.values():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, exp.Expr):
                yield each


def _name(call: exp.Expr) -> str:
    return str(call.this).lower() if isinstance(call, exp.Anonymous) else call.key


def _is_safe(divisor: exp.Expr) -> bool:
    """Whether dividing by it never fails: a number that is not 0, or NULL instead of 0."""
    while isinstance(divisor, exp.Paren):
        divisor = divisor.this
    if isinstance(divisor, exp.Anonymous):
        return _name(divisor) == "nullif" and [each.sql() for each in divisor.expressions[1:]] == ["0"]
    return isinstance(divisor, exp.Literal) and not divisor.is_string and float(divisor.name) != 0


def _where(node: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
    """With every aggregate over the rows of a condition, and of its own FILTER."""
    return node.copy().transform(lambda each: _conditional(each, condition))


def _conditional(node: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
    filtered = isinstance(node, exp.Filter)
    call = node.this if filtered else node
    if not isinstance(call, exp.Anonymous) or _name(call) not in _AGGREGATES:
        return node
    conditions = [*([condition.copy()] if condition is not None else []), *([node.expression.this] if filtered else [])]
    if not conditions or (isinstance(node.parent, exp.Filter) and not filtered):
        return node
    (argument,) = call.expressions
    one = exp.Literal.number(1) if isinstance(argument, exp.Star) else argument.copy()
    guard = (
        conditions[0]
        if len(conditions) == 1
        else exp.And(**dict(zip(("this", "expression"), map(_in_parentheses, conditions), strict=True)))
    )
    return exp.Anonymous(this=call.this, expressions=[exp.Case(ifs=[exp.If(this=guard, true=one)])])


def _in_parentheses(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node)
