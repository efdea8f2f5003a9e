"""The rewriting: every query gets the index as its last column, and everything inside keeps to its own part.

Each relation that carries rows of parts has an index column under a name of its own (`__j1`, `__j2`, ...), used
without qualifier, so that no alias can capture it. `query(.., name=n)` adds the index as last column `n`;
`query(.., within=J)` keeps the columns and asks for the rows of part J only: that is what subqueries in
expressions need, and LATERAL, which serves queries that answer once per part even where it has no rows
(aggregates without GROUP BY) or that pick rows (LIMIT).
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from partwise.compile.many_parts import grouping
from partwise.compile.many_parts.joins import Joins, JoinScope, add_column
from partwise.compile.many_parts.model import PARTS, NotLiftable

#: Names of WITH queries that carry an index, and its column; None for those that do not.
Named = dict[str, str | None]

_CLAUSES = """
    expressions from_ joins laterals where group having qualify windows order sort cluster distribute distinct limit
    offset hint with_
"""
_OF_A_SET = "this expression distinct by_name side kind on limit offset order with_"


class Rewriter:
    """`references` are the tables that have parts. `columns` will be the name of each one's index column."""

    def __init__(self, references: set[str]) -> None:
        self.references = references
        self.columns: dict[str, str] = {}
        self._count = 0

    # -- small pieces

    def fresh(self) -> str:
        self._count += 1
        return f"__j{self._count}"

    def parts(self, name: str) -> exp.Subquery:
        """All parts that are computed, as a relation with the column `name`."""
        query = exp.select(exp.alias_(exp.column("j"), name)).from_(exp.to_table(PARTS))
        return query.subquery(f"__s{name[3:]}")

    def carries(self, node: exp.Expr | None, named: Named) -> bool:
        """Whether rows of parts are read somewhere inside."""
        if node is None:
            return False
        tables = node.find_all(exp.Table)
        return any(t.name in self.references or named.get(t.name.lower()) is not None for t in tables)

    # -- queries

    def query(self, q: exp.Expr, named: Named, name: str | None = None, within: exp.Expr | None = None) -> exp.Expr:
        if isinstance(q, exp.Subquery):
            _only(q, "this", "parentheses")
            q.set("this", self.query(q.this, named, name, within))
            return q
        if not self.carries(q, named):
            return q if name is None else self._for_every_part(q, name)
        if not isinstance(q, exp.Select | exp.SetOperation):
            raise NotLiftable(f"{q.key.upper()} is not supported")
        with_ = q.args.get("with_")
        named = self._named_queries(with_, named)
        q.set("with_", None)
        if name is not None and (limited(q) or (isinstance(q, exp.Select) and grouping.is_whole(q))):
            done: exp.Expr = self._one_by_one(q, named, name)
        elif isinstance(q, exp.Select):
            done = self._select(q, named, name, within)
        else:
            done = self._set_operation(q, named, name, within)
        done.set("with_", with_)
        return done

    def _for_every_part(self, q: exp.Expr, name: str) -> exp.Expr:
        """A query that reads no parts gives the same rows for each."""
        inner = exp.Subquery(this=q, alias=exp.TableAlias(this=exp.to_identifier(f"__t{name[3:]}")))
        return exp.select(exp.Star()).from_(inner).join(self.parts(name), join_type="cross")

    def _one_by_one(self, q: exp.Expr, named: Named, name: str) -> exp.Select:
        """The engine itself runs the query once per part: exact also for parts without rows."""
        inner = self.query(q, named, within=exp.column(name))
        alias = f"__t{name[3:]}"
        lateral = exp.Lateral(this=exp.Subquery(this=inner), alias=exp.TableAlias(this=exp.to_identifier(alias)))
        listed = exp.Column(this=exp.Star(), table=exp.to_identifier(alias))
        outer = exp.select(listed, exp.column(name)).from_(self.parts(name))
        outer.append("joins", exp.Join(this=lateral, kind="CROSS"))
        return outer

    def _named_queries(self, with_: exp.With | None, named: Named) -> Named:
        if with_ is None:
            return named
        if with_.args.get("recursive"):
            raise NotLiftable("WITH RECURSIVE is not supported")
        found = dict(named)
        for cte in with_.expressions:
            column = self.fresh() if self.carries(cte.this, found) else None
            if column is not None:
                cte.set("this", self.query(cte.this, found, column))
                add_column(cte, column)
            found[cte.alias.lower()] = column
        return found

    def _set_operation(self, q: exp.SetOperation, named: Named, name: str | None, within: exp.Expr | None) -> exp.Expr:
        _only(q, _OF_A_SET, q.key.upper())
        for side in ("this", "expression"):
            q.set(side, self.query(q.args[side], named, name, None if within is None else within.copy()))
        return q

    def _select(self, s: exp.Select, named: Named, name: str | None, within: exp.Expr | None) -> exp.Expr:
        _only(s, _CLAUSES, "this clause")
        grouping.check(s)
        if grouping.is_whole(s):
            for clause in _nodes(s, "expressions", "having", "order"):
                if self.carries(clause, named):
                    raise NotLiftable("a subquery that reads parts is used next to an aggregate of the whole part")
        if any(self.carries(inner, named) for inner in grouping.beside_groups(s)):
            raise NotLiftable("a query with GROUP BY has a subquery that reads parts, as a value or in ORDER BY")
        if name is None and grouping.has_sets(s):
            raise NotLiftable("ROLLUP, CUBE or GROUPING SETS are used in a subquery or with LIMIT")
        if any(self.carries(lateral, named) for lateral in s.args.get("laterals") or ()):
            raise NotLiftable("a LATERAL VIEW reads parts")
        scope = Joins(self, named).read(s)
        if scope.index is None:  # only subqueries read parts
            self._add_parts(s, scope)
        assert scope.index is not None
        for clause in _nodes(s, "expressions", "where", "group", "having", "qualify", "order", "windows"):
            self._subqueries(clause, named, scope.index)
        hide(s, scope)
        grouping.by_part(s, scope.index)
        if name is None:
            assert within is not None
            s.where(exp.EQ(this=scope.index.copy(), expression=within.copy()), copy=False)
        else:
            grouping.windows_by_part(s, scope.index)
            s.append("expressions", exp.alias_(scope.index.copy(), name))
        return s

    def _add_parts(self, s: exp.Select, scope: JoinScope) -> None:
        column = self.fresh()
        relation = self.parts(column)
        if s.args.get("from_") is None:
            s.set("from_", exp.From(this=relation))
        else:
            s.append("joins", exp.Join(this=relation, kind="CROSS"))
        scope.add(relation.alias, column)
        scope.index = exp.column(column)

    def _subqueries(self, clause: exp.Expr, named: Named, index: exp.Expr) -> None:
        """Subqueries in expressions see the part of the row that they are evaluated for."""
        inner = [n for n in clause.walk(prune=lambda n: isinstance(n, exp.Query)) if isinstance(n, exp.Query)]
        for query in inner:
            if self.carries(query, named):
                query.replace(self.query(query.copy(), named, within=index))


def limited(q: exp.Expr) -> bool:
    return bool(q.args.get("limit") or q.args.get("offset"))


def _only(node: exp.Expr, allowed: str, what: str) -> None:
    extra = [key for key, value in node.args.items() if value and key not in allowed.split()]
    if extra:
        raise NotLiftable(f"{what}: {extra[0].rstrip('_').upper()} is not supported")


def _nodes(s: exp.Select, *keys: str) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    for key in keys:
        value: Any = s.args.get(key)
        found += value if isinstance(value, list) else [value] if isinstance(value, exp.Expr) else []
    return found


def hide(s: exp.Select, scope: JoinScope) -> None:
    """A star means the columns that the author knows of."""
    for item in s.expressions:
        star = item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else item
        if isinstance(star, exp.Star):
            owner = item.table.lower() if isinstance(item, exp.Column) else None
            hidden = scope.visible if owner is None else [scope.owners[owner]] if owner in scope.owners else []
            excepted = [*(star.args.get("except_") or []), *(exp.column(name) for name in hidden)]
            star.set("except_", excepted or None)
        elif any(not _is_count(star) for star in item.find_all(exp.Star) if star.find_ancestor(exp.Query) is s):
            raise NotLiftable("a star is used inside an expression")


def _is_count(star: exp.Star) -> bool:
    call = star.parent
    return isinstance(call, exp.Anonymous) and str(call.this).lower() == "count"
