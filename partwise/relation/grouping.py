"""What a SELECT makes of its rows: groups, windows, and the columns of its result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from partwise.relation.expressions import Known, conjuncts, expression, is_aggregate, no_others
from partwise.relation.problem import NotUnderstood
from partwise.relation.scope import Scope
from partwise.relation.tree import Aggregate, Expr, Filter, Group, Node, Other, Over, Project, Ref, Window
from partwise.sql.types.names import INTEGERS

if TYPE_CHECKING:
    from sqlglot import exp

    from partwise.relation.build import Builder, Environment, Output

_AROUND = "filter ignorenulls respectnulls withingroup"
_GENERATORS = frozenset(
    ["explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack", "json_tuple"]
)


def answers(b: Builder, q: exp.Select, node: Node, scope: Scope, env: Environment) -> tuple[Node, Output]:
    """GROUP BY, HAVING, windows, QUALIFY and the list of columns."""
    for e in q.expressions:
        _refuse_generators(e)
    known: Known = no_others
    group = q.args.get("group")
    if group is not None or q.args.get("having") is not None or aggregates(q):
        node, known = _grouped(b, q, node, scope, env)
        if (having := q.args.get("having")) is not None:
            # Names in HAVING may mean columns of the result: nothing is concluded from it.
            text = having.this.sql("spark", comments=False)
            node = b.placed(Filter(node, (Other(frozenset(), text, sure=False),), b.whole(having, env)), having)
    node, known = _windows(b, q, node, scope, env, known)
    if (qualify := q.args.get("qualify")) is not None:
        node = b.placed(Filter(node, conjuncts(qualify.this, scope, known), b.whole(qualify, env)), qualify)
    return _projected(b, q, node, scope, env, known)


def aggregates(q: exp.Select) -> bool:
    """Whether there is an aggregate that is no window's; a subquery's are its own."""
    clauses = [*q.expressions, q.args.get("order"), q.args.get("qualify")]
    return any(_is_plain_aggregate(n) for clause in clauses if clause is not None for n in own(clause))


def own(e: exp.Expr) -> Iterator[exp.Expr]:
    from sqlglot import exp

    return (n for n in e.walk(prune=lambda n: isinstance(n, exp.Query)) if not isinstance(n, exp.Query))


def _is_plain_aggregate(e: exp.Expr) -> bool:
    from sqlglot import exp

    if not is_aggregate(e):
        return False
    inside, node = e, e.parent
    while node is not None and node.key in _AROUND.split() and node.this is inside:
        inside, node = node, node.parent
    return not (isinstance(node, exp.Window) and node.this is inside)


def _refuse_generators(e: exp.Expr) -> None:
    from sqlglot import exp

    for n in own(e):
        if isinstance(n, exp.UDTF | exp.Explode) or (isinstance(n, exp.Anonymous) and n.name.lower() in _GENERATORS):
            raise NotUnderstood("a function that makes several rows is not followed", n)


def _grouped(b: Builder, q: exp.Select, node: Node, scope: Scope, env: Environment) -> tuple[Node, Known]:
    from sqlglot import exp

    group = q.args.get("group")
    sets, texts = False, list(group.expressions) if group is not None else []
    if group is not None:
        sets = any(group.args.get(k) for k in ("rollup", "cube", "grouping_sets", "totals"))
        sets = sets or any(isinstance(e, exp.Rollup | exp.Cube | exp.GroupingSets) for e in texts)
        if group.args.get("all"):
            texts = [_bare(e) for e in q.expressions if not any(_is_plain_aggregate(n) for n in own(e))]
            if any(e.is_star or isinstance(n, exp.Anonymous) for e in q.expressions for n in own(e)):
                raise NotUnderstood("GROUP BY ALL with a function that may be an aggregate is not followed", group)
    texts = [] if sets else [_meant(e, q, scope) for e in texts]
    keys = tuple((b.column(t.alias_or_name or t.sql("spark")), expression(t, scope)) for t in texts)
    by_text = {t.sql("spark"): (c, e) for t, (c, e) in zip(texts, keys, strict=True)}
    by_value = {e: c for c, e in reversed(keys) if not isinstance(e, Other)}
    made: dict[str, tuple[int, Aggregate]] = {}
    clauses = [*q.expressions, q.args.get("having"), q.args.get("order"), q.args.get("qualify")]
    for n in (n for clause in clauses if clause is not None for n in own(clause) if _is_plain_aggregate(n)):
        outer = _with_surroundings(n)
        text = outer.sql("spark", comments=False)
        if text not in made:
            made[text] = (b.column(text), _aggregate(n, outer, text, scope))

    def known(e: exp.Expr) -> Expr | None:
        if sets:
            return Other(frozenset(), "", sure=False) if isinstance(e, exp.Column) else None
        if is_aggregate(e) or e.key in _AROUND.split():
            found = made.get(e.sql("spark", comments=False))
            return None if found is None else Ref(found[0], found[1].type)
        if isinstance(e, exp.Column | exp.Func | exp.Binary | exp.Paren) or e.key == "cast":
            if (key := by_text.get(e.sql("spark"))) is not None:
                return Ref(key[0], key[1].type)
            if isinstance(e, exp.Column):
                value = scope.find(e)
                if value is None or value not in by_value:
                    return Other(frozenset(), e.sql("spark"), sure=False)
                return Ref(by_value[value], value.type)
        return None

    whole = tuple(n for t in (*texts, *q.expressions) for n in b.whole(t, env)) if group is not None else ()
    found = Group(node, keys, tuple(made.values()), sets, whole)
    return b.placed(found, group if group is not None else q), known


def _meant(e: exp.Expr, q: exp.Select, scope: Scope) -> exp.Expr:
    """GROUP BY 1 is the first column; a name that no table has is that of a column of the result."""
    from sqlglot import exp

    if isinstance(e, exp.Literal) and not e.is_string and e.this.isdigit():
        at = int(e.this) - 1
        if not 0 <= at < len(q.expressions) or any(item.is_star for item in q.expressions[: at + 1]):
            raise NotUnderstood("the position in GROUP BY is not followed", e)
        return _bare(q.expressions[at])
    if isinstance(e, exp.Column) and len(e.parts) == 1:
        inside = [r for r in scope.relations if r.open or e.name.lower() in {n.lower() for n, _ in r.columns}]
        if not inside and e.name.lower() not in scope.merged:
            named = [item for item in q.expressions if item.alias.lower() == e.name.lower()]
            if len(named) == 1:
                return _bare(named[0])
    return e


def _bare(e: exp.Expr) -> exp.Expr:
    from sqlglot import exp

    while isinstance(e, exp.Alias | exp.Paren):
        e = e.this
    return e


def _with_surroundings(e: exp.Expr) -> exp.Expr:
    node = e
    while node.parent is not None and node.parent.key in _AROUND.split() and node.parent.this is node:
        node = node.parent
    return node


def _aggregate(e: exp.Expr, outer: exp.Expr, text: str, scope: Scope) -> Aggregate:
    from sqlglot import exp

    given = e.this if isinstance(e.this, exp.Expr) and not isinstance(e, exp.Anonymous) else None
    several = isinstance(e, exp.Anonymous) or bool(e.args.get("expression") or e.args.get("expressions"))
    plain = outer is e and not isinstance(given, exp.Distinct | exp.Order) and not several
    argument = expression(given, scope) if given is not None and not isinstance(given, exp.Star) else None
    kind = None
    if e.key in ("count", "countif"):
        kind = "bigint"
    elif e.key in ("min", "max") and argument is not None:
        kind = argument.type
    elif e.key == "sum" and argument is not None:
        kind = "bigint" if argument.type in INTEGERS else None
    name = str(e.this).lower() if isinstance(e, exp.Anonymous) else e.key
    return Aggregate(name, argument, text, plain, kind)


def _windows(b: Builder, q: exp.Select, node: Node, scope: Scope, env: Environment, known: Known) -> tuple[Node, Known]:
    from sqlglot import exp

    clauses = [*q.expressions, q.args.get("qualify"), q.args.get("order")]
    calls = [n for c in clauses if c is not None for n in own(c) if isinstance(n, exp.Window)]
    if not calls:
        return node, known
    named = {w.name.lower(): w for w in q.args.get("windows") or ()}
    made: dict[str, tuple[int, Over]] = {}
    for call in calls:
        text = call.sql("spark", comments=False)
        by = _partition(call, named)
        over = Over(tuple(expression(e, scope, known) for e in by), text, isinstance(call.this, exp.RowNumber))
        made.setdefault(text, (b.column(text), over))

    def also(e: exp.Expr) -> Expr | None:
        found = made.get(e.sql("spark", comments=False)) if isinstance(e, exp.Window) else None
        return known(e) if found is None else Ref(found[0], "int" if found[1].first else None)

    whole = tuple(n for call in calls for n in b.whole(call, env))
    return b.placed(Window(node, tuple(made.values()), whole), calls[0]), also


def _partition(call: exp.Expr, named: dict[str, exp.Expr]) -> list[exp.Expr]:
    """OVER (PARTITION BY ...), OVER w, and OVER (w ORDER BY ...)."""
    base = call.args.get("alias")
    if base is None:
        return list(call.args.get("partition_by") or ())
    if base.name.lower() not in named:
        raise NotUnderstood(f"the window {base.name} is not followed", call)
    return [*(call.args.get("partition_by") or ()), *_partition(named[base.name.lower()], named)]


def _projected(
    b: Builder, q: exp.Select, node: Node, scope: Scope, env: Environment, known: Known
) -> tuple[Node, Output]:
    from sqlglot import exp

    items: list[tuple[str, Expr]] = []
    whole: tuple[Node, ...] = ()
    for e in q.expressions:
        if e.is_star:
            items += _star(b, e, scope)
            continue
        items.append((e.alias_or_name or e.sql("spark", comments=False), expression(e, scope, known)))
        whole += b.whole(e, env)
    whole += b.whole(q.args["order"], env) if q.args.get("order") is not None else ()
    columns = tuple((b.column(name), expr) for name, expr in items)
    output = [(name, Ref(c, e.type)) for (name, _), (c, e) in zip(items, columns, strict=True)]
    first = q.expressions[0]
    return b.placed(Project(node, columns, whole), first.this if isinstance(first, exp.Alias) else first), [*output]


def _star(b: Builder, e: exp.Expr, scope: Scope) -> list[tuple[str, Expr]]:
    from sqlglot import exp

    star = e.this if isinstance(e, exp.Column) else e
    table = e.table.lower() if isinstance(e, exp.Column) else ""
    chosen = [r for r in scope.relations if not table or r.alias.lower() == table]
    if not isinstance(star, exp.Star) or any(star.args.values()) or b.names_parts or (scope.by_name and not table):
        raise NotUnderstood("this star is not followed", e)
    if not chosen or any(r.open for r in chosen):
        raise NotUnderstood("a star stands for columns that are not known", e)
    return [(name, expr) for r in chosen for name, expr in r.columns if name not in r.hidden]
