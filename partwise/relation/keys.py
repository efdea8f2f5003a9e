"""By which columns the rows of a result are unique, within one part.

    reference      the table's key; of several parts, together with `part`
    group          the columns that are grouped by
    distinct, set  all columns (UNION ALL: none)
    join           both keys, or one if ON compares the whole key of the other side
    full join      COALESCE of the keys if ON is `<=>` of them and nothing else: by `=` two rows can be NULL
    semi, anti     that of the kept side
    project        must keep it; equal columns count as one

A key is a set of expressions, so that a full join can say COALESCE(l.x, r.y).
"""

from __future__ import annotations

from itertools import product

from partwise.relation.equalities import equalities, written
from partwise.relation.tree import (
    COALESCE,
    Call,
    Const,
    Distinct,
    Equal,
    Expr,
    Filter,
    Group,
    Join,
    Limit,
    Node,
    Project,
    Ref,
    Scan,
    SetOp,
    Tree,
    Window,
    columns_of,
    is_total,
)

Key = frozenset[Expr]
#: Others are rarely better, and each costs time.
_MOST = 4
_ONE_ROW: Key = frozenset()


def key(tree: Tree) -> tuple[str, ...] | None:
    """Names of the columns by which rows of one part are unique, () if there is one row at most, None if none is known."""
    names = dict(zip(tree.root.columns, tree.names, strict=False))
    order = {name: at for at, name in enumerate(tree.names)}
    found = [
        tuple(sorted({names[e.column] for e in k if isinstance(e, Ref)}, key=order.__getitem__))
        for k in keys(tree.root)
        if all(isinstance(e, Ref) and e.column in names for e in k)
    ]
    found = [k for k in found if all(tree.names.count(name) == 1 for name in k)]
    return min(found, key=lambda k: (len(k), k)) if found else None


def keys(node: Node, known: tuple[Equal, ...] = ()) -> list[Key]:
    """Keys of an operator's rows. `known`: what holds for all rows that are looked at, by conditions above."""
    return _shortest(_keys(node, known), known)


def _keys(node: Node, known: tuple[Equal, ...]) -> list[Key]:
    if isinstance(node, Scan):
        return _of_table(node)
    if isinstance(node, Filter):
        holds = (*known, *equalities(node.conjuncts))
        return [*_first_of_each(node, holds), *keys(node.child, holds)]
    if isinstance(node, Project):
        return _projected(node)
    if isinstance(node, Join):
        return _joined(node, known)
    if isinstance(node, Group):
        return [] if node.sets else [frozenset(Ref(c, e.type) for c, e in node.keys)]
    if isinstance(node, Window | Limit):
        return keys(node.child, known if isinstance(node, Window) else ())
    if isinstance(node, Distinct):
        return [_all(node.child), *keys(node.child)]
    return _of_set(node) if isinstance(node, SetOp) else []


def _of_table(node: Scan) -> list[Key]:
    if not node.key:
        return []
    by_name = {name.lower(): Ref(c) for c, name in zip(node.columns, node.names, strict=True)}
    one_part = node.reference is None or node.reference.lo == node.reference.hi
    # The key of a table's rows holds within a part: two parts may have the same.
    wanted = [name.lower() for name in node.key] + ([] if one_part else ["part"])
    return [frozenset(by_name[name] for name in wanted)] if all(name in by_name for name in wanted) else []


def _first_of_each(node: Filter, holds: tuple[Equal, ...]) -> list[Key]:
    """ROW_NUMBER() OVER (PARTITION BY k ...) = 1."""
    if not isinstance(node.child, Window):
        return []
    firsts = {c: over for c, over in node.child.items if over.first and all(map(is_total, over.by))}
    chosen = [e.left.column for e in holds if isinstance(e.left, Ref) and e.right == Const("1", "int")]
    return [frozenset(firsts[c].by) for c in chosen if c in firsts]


def _all(node: Node) -> Key:
    return frozenset(Ref(c) for c in node.columns)


def _of_set(node: SetOp) -> list[Key]:
    left = {pair[0].column: Ref(c) for c, pair in zip(node.columns, node.sides, strict=True)}
    kept: list[Key] = [
        frozenset(left[e.column] for e in k if isinstance(e, Ref)) for k in keys(node.left) if _all_refs(k, left)
    ]
    if node.kind == "union all":
        return []
    if node.kind == "union":
        return [_all(node)]
    return kept if node.kind.endswith("all") else [_all(node), *kept]


def _all_refs(k: Key, known: dict[int, Ref]) -> bool:
    return all(isinstance(e, Ref) and e.column in known for e in k)


def _projected(node: Project) -> list[Key]:
    by_value: dict[Expr, Ref] = {}
    for column, expr in node.items:
        if is_total(expr):
            by_value.setdefault(_plain(expr), Ref(column))
    holds = _holding(node.child)
    found: list[Key] = []
    for k in keys(node.child):
        shown = [next((by_value[_plain(w)] for w in _ways(e, holds) if _plain(w) in by_value), None) for e in k]
        if all(ref is not None for ref in shown):
            found.append(frozenset(ref for ref in shown if ref is not None))
    return found


def _ways(e: Expr, holds: tuple[Equal, ...]) -> list[Expr]:
    return sorted({_plain(w) for w in written(_plain(e), [_plain_equal(h) for h in holds])}, key=repr)


def _plain(e: Expr) -> Expr:
    """Without types, and COALESCE with its arguments in one order: keys are compared by what they are."""
    if isinstance(e, Ref):
        return Ref(e.column)
    if isinstance(e, Call):
        args = tuple(_plain(arg) for arg in e.args)
        return Call(e.sql, tuple(sorted(args, key=repr)) if e.sql == COALESCE and _is_pair(e) else args)
    return e


def _is_pair(e: Call) -> bool:
    return all(isinstance(arg, Ref) for arg in e.args)


def _plain_equal(e: Equal) -> Equal:
    return Equal(_plain(e.left), _plain(e.right), e.null_safe)


def _holding(node: Node) -> tuple[Equal, ...]:
    """Equalities that hold for every row of this operator."""
    if isinstance(node, Filter):
        return (*equalities(node.conjuncts), *_holding(node.child))
    if isinstance(node, Join):
        own = equalities(node.on) if node.kind == "inner" else ()
        right = _holding(node.right) if node.kind == "inner" else ()
        return (*own, *right, *(_holding(node.left) if node.kind != "full" else ()))
    return _holding(node.child) if isinstance(node, Window | Limit | Distinct) else ()


def _joined(node: Join, known: tuple[Equal, ...]) -> list[Key]:
    on = equalities(node.on)
    if node.kind == "full":
        return _of_full(node, on)
    inner = node.kind == "inner"
    left = keys(node.left, known if inner else ())
    if node.kind in ("semi", "anti"):
        return left
    right = keys(node.right, (*known, *on) if inner else on)
    compared = (*on, *known) if inner else on
    found = list(left) if any(_covered(k, node.left, compared) for k in right) else []
    if inner and any(_covered(k, node.right, compared) for k in left):
        found += right
    return found or [a | b for a, b in product(left[:2], right[:2])]


def _covered(k: Key, other: Node, compared: tuple[Equal, ...]) -> bool:
    """Whether every expression of the key is compared with something of the other side, or with a constant."""
    own = frozenset(other.columns)
    pairs = [p for e in compared for p in ((e.left, e.right), (e.right, e.left))]
    return all(any(_plain(a) == _plain(e) and columns_of(b) <= own for a, b in pairs) for e in k)


def _of_full(node: Join, on: tuple[Equal, ...]) -> list[Key]:
    left, right = frozenset(node.left.columns), frozenset(node.right.columns)
    if len(on) != len(node.on) or not on or not all(e.null_safe for e in on):
        return []
    pairs = [(e.left, e.right) if columns_of(e.left) <= left else (e.right, e.left) for e in on]
    if not all(columns_of(a) <= left and columns_of(b) <= right and columns_of(a) and columns_of(b) for a, b in pairs):
        return []
    ours, theirs = frozenset(_plain(a) for a, _ in pairs), frozenset(_plain(b) for _, b in pairs)
    mine, yours = ([frozenset(map(_plain, k)) for k in keys(side)] for side in (node.left, node.right))
    return [frozenset(_plain(Call(COALESCE, pair)) for pair in pairs)] if ours in mine and theirs in yours else []


def _shortest(found: list[Key], known: tuple[Equal, ...]) -> list[Key]:
    """Without columns that are equal to a constant, and each key once, the shortest first."""
    fixed = {_plain(a) for e in known for a, b in ((e.left, e.right), (e.right, e.left)) if isinstance(b, Const)}
    plain = [frozenset(_plain(e) for e in k if _plain(e) not in fixed) for k in found]
    return sorted(dict.fromkeys(plain), key=len)[:_MOST]
