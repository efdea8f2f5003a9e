"""From the text of a query to its tree.

Read with the one reader of SQL. WITH queries are put in at each use; EXISTS and IN (query) among the conditions that
AND connects are semi joins, NOT EXISTS is an anti join. NOT IN is none: a NULL in the list hides every row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from partwise.relation import grouping
from partwise.relation.expressions import conjunct, equal, expression, split
from partwise.relation.problem import NotUnderstood
from partwise.relation.scope import Scope, ScopedRelation
from partwise.relation.tree import (
    Conjunct,
    Distinct,
    Expr,
    Filter,
    Join,
    JoinKind,
    Limit,
    Node,
    Opaque,
    Other,
    Project,
    Ref,
    Scan,
    SetKind,
    SetOp,
    Tree,
    conjunct_columns,
)
from partwise.relation.types import comparable
from partwise.sql.columns import place
from partwise.sql.references import Analysis, FoundReference, analyse
from partwise.sql.types.names import normal

if TYPE_CHECKING:
    from sqlglot import exp

PART_COLUMNS = {"part": "bigint", "part_timestamp": "timestamp"}
#: More leaves than this come from WITH queries that use each other again and again.
_MOST_LEAVES = 200


@dataclass(frozen=True)
class Known:
    """A table's columns and their types (None: not known), in order, and its key within one part."""

    columns: Mapping[str, str | None]
    key: tuple[str, ...] = ()


#: name of a table, lower case -> what is known of it; None: nothing
Tables = Callable[[str], Known | None]


@dataclass(frozen=True)
class Environment:
    """WITH queries in reach, each with what was in reach where it stands."""

    queries: Mapping[str, tuple[exp.Expr, Environment]] = field(default_factory=dict)


def build(sql: str, tables: Tables, index: str = "j") -> Tree:
    """The tree of a query; of a text that cannot be read it is one Opaque."""
    return build_of(sql, analyse(sql, index), tables)


def build_of(sql: str, analysis: Analysis, tables: Tables) -> Tree:
    """The same for a text that was analysed already."""
    if analysis.tree is None or analysis.found.problems:
        why = analysis.found.problems[0].message if analysis.found.problems else "it cannot be read as SQL"
        return Tree(Opaque(why, ()), (), (), {}, {})
    builder = Builder(tables, {t.start: (n, t) for n, t in enumerate(analysis.found.tables)}, analysis.found.names_part)
    root, output = builder.query(analysis.tree, Environment(), None)
    if output is None:
        return Tree(root, (), (), builder.labels, builder.places)
    kept = [(name, expr) for name, expr in output if name.lower() not in PART_COLUMNS]
    if len(kept) < len(output):  # the part is stored with every row, whatever the query makes of it
        root = Project(root, tuple((builder.column(name), expr) for name, expr in kept))
        kept = [(name, Ref(c, e.type)) for (name, e), (c, _) in zip(kept, root.items, strict=True)]
    return Tree(root, tuple(name for name, _ in kept), tuple(e.type for _, e in kept), builder.labels, builder.places)


#: The columns of a result: names and what they are; None if they are not known.
Output = list[tuple[str, Expr]] | None


@dataclass
class Builder:
    tables: Tables
    found: Mapping[int, tuple[int, FoundReference]]
    names_parts: bool
    labels: dict[int, str] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)
    leaves: int = 0

    def column(self, label: str) -> int:
        number = len(self.labels) + 1
        self.labels[number] = label
        return number

    def placed(self, node: Node, at: exp.Expr) -> Node:
        self.places[id(node)] = place(at)[0]
        return node

    # -- queries

    def query(self, q: exp.Expr, env: Environment, outer: Scope | None) -> tuple[Node, Output]:
        """Never raises: what is not understood is Opaque."""
        from sqlglot import exp

        try:
            env = self._with(q, env)
            if isinstance(q, exp.Subquery):
                _only(q, "this with_ order limit offset alias")
                node, output = self.query(q.this, env, outer)
                return self._limited(q, node), output
            if isinstance(q, exp.SetOperation):
                return self._set(q, env)
            if isinstance(q, exp.Select):
                return self._select(q, env, outer)
            raise NotUnderstood(f"{q.key.upper()} is not followed", q)
        except NotUnderstood as why:
            return self.opaque(str(why), q, env, why.start)

    def opaque(self, why: str, q: exp.Expr, env: Environment, start: int = 0) -> tuple[Node, Output]:
        from sqlglot import exp

        named = [item.alias_or_name for item in q.expressions] if isinstance(q, exp.Select) else []
        columns = [(name, self.column(name)) for name in named if name]
        known = bool(columns) and len(columns) == len(named) and not any(i.is_star for i in q.expressions)
        node = Opaque(why, self.whole(q, env), tuple(c for _, c in columns) if known else (), start or place(q)[0])
        return node, [(name, Ref(c)) for name, c in columns] if known else None

    def whole(self, e: exp.Expr, env: Environment) -> tuple[Node, ...]:
        """Every reference below, read whole."""
        from sqlglot import exp

        found: list[Node] = []
        for table in e.find_all(exp.Table):
            inner = self._reach(table, e, env)
            if (named := inner.queries.get(table.name.lower())) is not None and self._written(table) is None:
                found += self.whole(*named)
            elif self._written(table) is not None:
                found.append(self._scan(table)[0])
        return tuple(found)

    def _reach(self, table: exp.Table, top: exp.Expr, env: Environment) -> Environment:
        """WITH queries inside what is not understood: their names mean no tables, and they are walked anyway."""
        from sqlglot import exp

        names = {cte.alias.lower() for w in top.find_all(exp.With) for cte in w.expressions}
        return Environment({n: q for n, q in env.queries.items() if n not in names})

    def _with(self, q: exp.Expr, env: Environment) -> Environment:
        defined = q.args.get("with_")
        if defined is not None and defined.args.get("recursive"):
            raise NotUnderstood("WITH RECURSIVE is not followed", q)
        for cte in defined.expressions if defined is not None else ():
            hidden = dict(env.queries)
            hidden[cte.alias.lower()] = (cte, env)
            env = Environment(hidden)
        return env

    def _limited(self, q: exp.Expr, node: Node) -> Node:
        limit = q.args.get("limit") or q.args.get("offset")
        return node if limit is None else self.placed(Limit(node), limit if place(limit)[0] else q)

    def _set(self, q: exp.SetOperation, env: Environment) -> tuple[Node, Output]:
        _only(q, "this expression distinct with_ order limit offset")
        (left, ours), (right, theirs) = self.query(q.this, env, None), self.query(q.expression, env, None)
        if ours is None or theirs is None or len(ours) != len(theirs):
            raise NotUnderstood("the columns of one side are not known", q)
        if any(not isinstance(e, Ref) for _, e in (*ours, *theirs)):
            raise NotUnderstood("the columns of one side are not followed", q)
        kind: SetKind = q.key.lower() if q.args.get("distinct") else f"{q.key.lower()} all"  # type: ignore[assignment]
        columns = tuple(self.column(name) for name, _ in ours)
        pairs = [
            (a, b) for (_, a), (_, b) in zip(ours, theirs, strict=True) if isinstance(a, Ref) and isinstance(b, Ref)
        ]
        same = tuple(comparable(a.type, b.type) for a, b in pairs)
        node = self.placed(SetOp(kind, left, right, columns, tuple(pairs), same), q)
        types = [a.type if a.type == b.type else None for a, b in pairs]
        named = [(name, Ref(c, t)) for (name, _), c, t in zip(ours, columns, types, strict=True)]
        return self._limited(q, node), [*named]

    def _select(self, q: exp.Select, env: Environment, outer: Scope | None) -> tuple[Node, Output]:
        _only(q, "expressions from_ joins where group having qualify windows order sort cluster distribute distinct "
                 "limit offset hint with_")  # fmt: skip
        if q.args.get("distinct") is not None and q.args["distinct"].args.get("on"):
            raise NotUnderstood("DISTINCT ON is not followed", q)
        node, scope = self.sources(q, env, outer)
        if (where := q.args.get("where")) is not None:
            node = self.conditions(node, where.this, scope, env)
        node, output = grouping.answers(self, q, node, scope, env)
        if q.args.get("distinct") is not None:
            node = self.placed(Distinct(node), q)
        return self._limited(q, node), output

    # -- FROM

    def sources(self, q: exp.Select, env: Environment, outer: Scope | None) -> tuple[Node, Scope]:
        scope = Scope(outer=outer, aliases={item.alias.lower() for item in q.expressions if item.alias})
        if (first := q.args.get("from_")) is None:
            raise NotUnderstood("it has no FROM", q)
        node, relation = self._relation(first.this, env)
        scope.relations.append(relation)
        crossed = False
        for join in q.args.get("joins") or ():
            side, kind = (join.side or "").upper(), (join.kind or "").upper()
            if crossed and side in ("RIGHT", "FULL"):
                raise NotUnderstood(f"{side} JOIN after a comma or CROSS JOIN is not followed", join)
            crossed = crossed or kind == "CROSS"
            node = self._join(node, join, side, kind, scope, env)
        return node, scope

    def _join(self, left: Node, join: exp.Join, side: str, kind: str, scope: Scope, env: Environment) -> Node:
        _only(join, "this side kind on using")
        right, relation = self._relation(join.this, env)
        sides: dict[str, JoinKind] = {"LEFT": "left", "RIGHT": "left", "FULL": "full"}
        how: JoinKind = "semi" if kind == "SEMI" else "anti" if kind == "ANTI" else sides.get(side, "inner")
        if kind not in ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI") or (how in ("semi", "anti") and side == "RIGHT"):
            raise NotUnderstood(f"{side} {kind} JOIN is not followed".strip(), join)
        if join.args.get("on") is not None and self.whole(join.args["on"], env):
            raise NotUnderstood("a subquery stands in a join condition", join)
        on = self._using(join, scope, relation, side) if join.args.get("using") else ()
        scope.relations.append(relation)
        on += tuple(conjunct(e, scope) for e in split(join.args.get("on")))
        if how in ("semi", "anti"):
            scope.relations.pop()
        if side == "RIGHT":
            left, right = right, left
        return self.placed(Join(how, left, right, on), join)

    def _using(self, join: exp.Join, scope: Scope, relation: ScopedRelation, side: str) -> tuple[Conjunct, ...]:
        from partwise.relation.expressions import coalesce

        found: list[Conjunct] = []
        scope.by_name = True
        for name in join.args["using"]:
            small = name.name.lower()
            ours, theirs = scope._plain(small), Scope([relation])._plain(small)
            same = equal(ours, theirs) if ours is not None and theirs is not None else None
            if same is None or ours is None or theirs is None:
                raise NotUnderstood(f"USING ({name.name}) compares columns that are not followed", join)
            found.append(same)
            merged = {"RIGHT": theirs, "FULL": coalesce([ours, theirs])}.get(side, ours)
            if merged is None:
                raise NotUnderstood(f"USING ({name.name}) compares columns that are not followed", join)
            scope.merged[small] = merged
        return tuple(found)

    def _relation(self, r: exp.Expr, env: Environment) -> tuple[Node, ScopedRelation]:
        from sqlglot import exp

        alias = r.args.get("alias")
        renamed = [c.name for c in alias.columns] if isinstance(alias, exp.TableAlias) else []
        if isinstance(r, exp.Table):
            named = env.queries.get(r.name.lower()) if self._written(r) is None else None
            if named is None:
                _only(r, "this db catalog alias")
                if self._written(r) is None:
                    raise NotUnderstood(f"{r.name} is not a reference", r)
                node, relation = self._scan(r)
            else:
                cte, within = named
                _only(r, "this alias")
                node, relation = self._derived(
                    cte.this, within, r.alias_or_name, [c.name for c in cte.args["alias"].columns]
                )
        elif isinstance(r, exp.Subquery):
            _only(r, "this alias with_ order limit offset")
            bare = exp.Subquery(**{k: v for k, v in r.args.items() if k != "alias"}) if r.args.get("limit") else r.this
            node, relation = self._derived(bare, self._with(r, env), r.alias, [])
        else:
            node, output = self.opaque(f"{r.key.upper()} in FROM is not followed", r, env)
            relation = ScopedRelation(r.alias_or_name, output or [], open=output is None)
        if renamed:
            columns = [(n, e) for n, (_, e) in zip(renamed, relation.columns, strict=False)]
            whole = not relation.open and len(renamed) == len(relation.columns) and not relation.hidden
            relation = ScopedRelation(relation.alias, columns if whole else [], open=not whole)
        return node, relation

    def _derived(self, q: exp.Expr, env: Environment, alias: str, renamed: list[str]) -> tuple[Node, ScopedRelation]:
        node, output = self.query(q, env, None)
        if output is not None and renamed:
            output = (
                [(n, e) for n, (_, e) in zip(renamed, output, strict=True)] if len(renamed) == len(output) else None
            )
        return node, ScopedRelation(alias, output or [], open=output is None)

    def _written(self, table: exp.Table) -> tuple[int, FoundReference] | None:
        if "start" not in table.this.meta:
            return None
        return self.found.get(min(int(part.meta.get("start", table.this.meta["start"])) for part in table.parts))

    def _scan(self, table: exp.Table) -> tuple[Node, ScopedRelation]:
        self.leaves += 1
        written = self._written(table)
        assert written is not None
        if self.leaves > _MOST_LEAVES:
            return Opaque("there are too many references", ()), ScopedRelation(table.alias_or_name, [], open=True)
        occurrence, reference = written
        known = self.tables(reference.table.lower())
        columns = dict(known.columns) if known is not None else {}
        if reference.brackets is not None and columns:
            columns |= PART_COLUMNS
        refs = {name: Ref(self.column(f"{table.alias_or_name}.{name}"), normal(kind)) for name, kind in columns.items()}
        key = known.key if known is not None else ()
        node = Scan(
            occurrence, reference.table, reference.reference, tuple(r.column for r in refs.values()), tuple(refs), key
        )
        hidden = frozenset(PART_COLUMNS) if reference.brackets is not None else frozenset()
        return self.placed(node, table), ScopedRelation(table.alias_or_name, [*refs.items()], not columns, hidden)

    # -- WHERE

    def conditions(self, node: Node, condition: exp.Expr, scope: Scope, env: Environment) -> Node:
        """Filters and semi joins, in the order in which they stand."""
        found: list[Conjunct] = []
        whole: tuple[Node, ...] = ()
        for e in split(condition):
            joined = self._semi(node, e, scope, env)
            if joined is not None:
                node = joined
            else:
                found.append(conjunct(e, scope))
                whole += self.whole(e, env)
        return self.placed(Filter(node, tuple(found), whole), condition) if found else node

    def _semi(self, node: Node, e: exp.Expr, scope: Scope, env: Environment) -> Node | None:
        from sqlglot import exp

        negated = isinstance(e, exp.Not)
        inner = e.this if isinstance(e, exp.Not) else e
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if isinstance(inner, exp.Exists):
            return self._related(node, "anti" if negated else "semi", inner.this, None, scope, env, e)
        if isinstance(inner, exp.In) and inner.args.get("query") is not None and not negated:
            if isinstance(inner.this, exp.Tuple) or inner.this.find(exp.Query):
                return None
            return self._related(node, "semi", inner.args["query"], expression(inner.this, scope), scope, env, e)
        return None

    def _related(
        self, node: Node, kind: JoinKind, q: exp.Expr, wanted: Expr | None, scope: Scope, env: Environment, at: exp.Expr
    ) -> Node | None:
        """A subquery as the right side. A correlated one only if it is FROM and WHERE and nothing else."""
        from sqlglot import exp

        while isinstance(q, exp.Subquery) and not any(q.args.get(k) for k in ("limit", "offset", "with_", "alias")):
            q = q.this
        on: tuple[Conjunct, ...] = ()
        try:
            if isinstance(q, exp.Select) and not any(
                v for k, v in q.args.items() if v and k not in ("expressions", "from_", "joins", "where", "distinct", "order")
            ) and not grouping.aggregates(q):  # fmt: skip
                right, inner = self.sources(q, env, scope)
                if (where := q.args.get("where")) is not None:
                    right = self.conditions(right, where.this, inner, env)
                right, on = _correlated(right)
                output: Output = (
                    [("", expression(item, inner)) for item in q.expressions] if len(q.expressions) == 1 else None
                )
            else:
                right, output = self.query(q, env, None)
        except NotUnderstood:
            return None
        if wanted is not None:
            if output is None or len(output) != 1 or q.expressions[0].is_star:
                return None
            given = output[0][1]
            on += (equal(wanted, given) or Other(frozenset(), "IN", sure=False),)
        return self.placed(Join(kind, node, right, on), at)


def _correlated(right: Node) -> tuple[Node, tuple[Conjunct, ...]]:
    """Conditions that look outside belong to the join with what is outside."""
    if not isinstance(right, Filter):
        return right, ()
    own = frozenset(right.columns)
    inside = tuple(
        c for c in right.conjuncts if conjunct_columns(c) <= own and not (isinstance(c, Other) and not c.sure)
    )
    outside = tuple(c for c in right.conjuncts if c not in inside)
    if right.whole or not outside:
        return right, ()
    return (Filter(right.child, inside) if inside else right.child), outside


def _only(node: exp.Expr, allowed: str) -> None:
    extra = [key for key, value in node.args.items() if value and key not in allowed.split()]
    if extra:
        raise NotUnderstood(f"{extra[0].rstrip('_').upper()} is not followed", node)
