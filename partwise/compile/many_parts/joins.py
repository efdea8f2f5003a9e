"""FROM and its joins: rows of one part meet rows of the same part only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from partwise.compile.many_parts.model import NotLiftable

if TYPE_CHECKING:
    from partwise.compile.many_parts.rewrite import Named, Rewriter


@dataclass
class JoinScope:
    """What the rows of a FROM know: their part (`index`, None so far), and which columns a star must not show."""

    index: exp.Expr | None = None
    visible: list[str] = field(default_factory=list)
    owners: dict[str, str] = field(default_factory=dict)  # alias -> its index column

    def add(self, alias: str, column: str) -> None:
        if column not in self.visible:
            self.visible.append(column)
        self.owners[alias.lower()] = column


def add_column(relation: exp.Expr, column: str) -> None:
    """`AS a (x, y)` names the columns: name the index as well."""
    alias = relation.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.args.get("columns"):
        alias.append("columns", exp.to_identifier(column))


def index_after(side: str, before: exp.Expr, here: exp.Expr) -> exp.Expr:
    """The part of a joined row: on the side whose rows are always there it is never NULL."""
    if side == "RIGHT":
        return here.copy()
    if side == "FULL":
        return exp.Coalesce(this=before.copy(), expressions=[here.copy()])
    return before


class Joins:
    """Reads one FROM, relation by relation."""

    def __init__(self, rewriter: Rewriter, named: Named) -> None:
        self.rewriter, self.named = rewriter, named
        self.scope = JoinScope()
        self.joins: list[exp.Join] = []

    def read(self, s: exp.Select) -> JoinScope:
        if (from_ := s.args.get("from_")) is not None:
            node, column = self._relation(from_.this)
            from_.set("this", node)
            if column is not None:
                self.scope.add(node.alias_or_name, column)
                self.scope.index = exp.column(column)
        crossed = False
        for join in s.args.get("joins") or []:
            side = (join.side or "").upper()
            if crossed and (side in ("RIGHT", "FULL") or join.method) and self._carries(s):
                raise NotLiftable("a RIGHT, FULL or NATURAL JOIN follows a comma or CROSS JOIN")
            crossed = crossed or (join.kind or "").upper() == "CROSS"
            self._join(join, side)
            self.joins.append(join)
        if self.joins:
            s.set("joins", self.joins)
        return self.scope

    def _carries(self, node: exp.Expr | None) -> bool:
        return self.rewriter.carries(node, self.named)

    # -- one join

    def _join(self, join: exp.Join, side: str) -> None:
        if (join.method or "").upper() not in ("", "NATURAL"):
            raise NotLiftable(f"{join.method} JOIN is not supported")
        if isinstance(join.this, exp.Lateral):
            self._lateral(join)
            return
        if self._carries(join.args.get("on")):
            raise NotLiftable("a join condition contains a subquery that reads parts")
        scope, kind = self.scope, (join.kind or "").upper()
        hides_right = kind in ("SEMI", "ANTI")
        right = self._carries(join.this)
        if not right and scope.index is None:
            return
        if right and scope.index is None and (side in ("LEFT", "FULL") or hides_right):
            self._cross_parts()
        by_name = bool(join.args.get("using")) or bool(join.method)
        wish = self._shared_name() if by_name and scope.index is not None else None
        if right or side in ("RIGHT", "FULL"):
            node, column = self._relation(join.this, wish) if right else self._with_parts(join.this, wish)
            join.set("this", node)
            assert column is not None
            self._connect(join, side, column)
            if not hides_right:
                scope.add(node.alias_or_name, column)

    def _connect(self, join: exp.Join, side: str, column: str) -> None:
        """The same part on both sides."""
        scope, here = self.scope, exp.column(column)
        before = scope.index
        if before is None:
            scope.index = here
            return
        if join.args.get("using"):
            join.append("using", exp.to_identifier(column))
            return
        if join.method:
            return
        join.on(exp.EQ(this=before.copy(), expression=here.copy()), copy=False)
        if (join.kind or "").upper() == "CROSS":
            join.set("kind", None)
        scope.index = index_after(side, before, here)

    def _shared_name(self) -> str:
        """USING and NATURAL compare columns of one name."""
        if not isinstance(self.scope.index, exp.Column):
            raise NotLiftable("USING or NATURAL follows a FULL JOIN with a condition")
        return self.scope.index.name

    def _cross_parts(self) -> None:
        """The side whose rows are always there has no part yet: it has all of them. Just before the join, not earlier."""
        column = self.rewriter.fresh()
        relation = self.rewriter.parts(column)
        self.joins.append(exp.Join(this=relation, kind="CROSS"))
        self.scope.add(relation.alias, column)
        self.scope.index = exp.column(column)

    def _lateral(self, join: exp.Join) -> None:
        lateral = join.this
        if not self._carries(lateral):
            return
        if not isinstance(lateral.this, exp.Subquery):
            raise NotLiftable("LATERAL reads parts, but is no subquery")
        if self.scope.index is None:
            self._cross_parts()
        assert self.scope.index is not None
        inner = self.rewriter.query(lateral.this.this, self.named, within=self.scope.index)
        lateral.this.set("this", inner)

    # -- relations

    def _relation(self, node: exp.Expr, wish: str | None = None) -> tuple[exp.Expr, str | None]:
        """The relation with its index column as last one; None if it has none."""
        if not self._carries(node):
            return node, None
        if not isinstance(node, exp.Table | exp.Subquery) or node.args.get("joins"):
            raise NotLiftable("joins in parentheses are not supported")
        if node.args.get("pivots"):
            raise NotLiftable("PIVOT and UNPIVOT are not supported")
        if node.args.get("sample"):
            raise NotLiftable("TABLESAMPLE is not supported")
        column = wish or self.rewriter.fresh()
        if isinstance(node, exp.Subquery):
            if not isinstance(node.this, exp.Query):
                raise NotLiftable("joins in parentheses are not supported")
            node.set("this", self.rewriter.query(node.this, self.named, column))
        elif node.name in self.rewriter.references:
            self.rewriter.columns[node.name] = column
        else:
            node = self._named_query(node, column)
        add_column(node, column)
        return node, column

    def _named_query(self, table: exp.Table, column: str) -> exp.Subquery:
        """A WITH query may be read twice: each time its index has another name."""
        own = self.named[table.name.lower()]
        assert own is not None
        alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name))
        table.set("alias", None)
        rest = exp.Star(except_=[exp.column(own)])
        return exp.Subquery(this=exp.select(rest, exp.alias_(exp.column(own), column)).from_(table), alias=alias)

    def _with_parts(self, node: exp.Expr, wish: str | None) -> tuple[exp.Expr, str]:
        """A relation without parts on the side whose rows are always there: each row once for every part."""
        column = wish or self.rewriter.fresh()
        name = node.alias_or_name
        inner = exp.select(exp.Star()).from_(node).join(self.rewriter.parts(column), join_type="cross")
        return inner.subquery(name or None), column
