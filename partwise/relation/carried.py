"""Which expression over the columns of which reference carries a column of the result.

If a reference carries column c by expression e, then its rows for which a predicate on e is not true can be left out
without changing the rows of the result for which the predicate on c is true. That is what restriction needs: the
engine filters what a reference reads and the result, and leaves the text of the query alone.

    filter         down; `a = b` makes b carry what a carries
    project        through columns and total functions
    inner join     to the side that has it, and by ON to the other
    left, semi,    columns of the kept side: to it, and by ON to the other side. Columns of the side that may be NULL:
    anti           nowhere, for a row left out there comes back as a row of NULLs
    full           COALESCE of two columns that ON compares: to both
    group          columns that are grouped by; without any, or with ROLLUP and the like, nothing
    window         columns in PARTITION BY of every window
    distinct, set  to both sides, by position, where the types are the same
    limit, opaque  nothing

Values are compared null-safely: `IN` would lose the group NULL.
"""

from __future__ import annotations

from collections.abc import Mapping

from partwise.relation.equalities import equalities, refs, written
from partwise.relation.expressions import render
from partwise.relation.tree import (
    COALESCE,
    Call,
    Distinct,
    Equal,
    Expr,
    Filter,
    Group,
    Join,
    Limit,
    Node,
    Opaque,
    Project,
    Ref,
    Scan,
    SetOp,
    Tree,
    Window,
    children,
    columns_of,
    substitute,
    whole,
)
from partwise.relation.types import is_exact

#: Column of the result -> the ways to write it over the columns of an operator, all the same value.
Wants = Mapping[str, frozenset[Expr]]
#: Column of the result -> SQL over the columns of a reference.
Carried = dict[str, str]


def carried(tree: Tree) -> dict[int, Carried]:
    """By occurrence in the text: what each reference carries. One that is read in several places carries what all do."""
    wants = {
        name: frozenset([Ref(column, kind)])
        for name, column, kind in zip(tree.names, tree.root.columns, tree.types, strict=True)
        if is_exact(kind) and tree.names.count(name) == 1
    }
    leaves: list[tuple[Scan, dict[str, set[str]]]] = []
    _push(tree.root, wants, leaves)
    found: dict[int, dict[str, set[str]]] = {}
    for scan, texts in leaves:
        before = found.get(scan.occurrence)
        found[scan.occurrence] = texts if before is None else _every_use(before, texts)
    order = {name: at for at, name in enumerate(tree.names)}
    return {
        n: {
            name: min(texts[name], key=lambda t: (len(t), t))
            for name in sorted(texts, key=order.__getitem__)
            if texts[name]
        }
        for n, texts in sorted(found.items())
    }


def _every_use(one: dict[str, set[str]], other: dict[str, set[str]]) -> dict[str, set[str]]:
    """What is read in two places is restricted in both at once."""
    return {name: one[name] & other[name] for name in one.keys() & other.keys()}


def _push(node: Node, wants: Wants, leaves: list[tuple[Scan, dict[str, set[str]]]]) -> None:
    if isinstance(node, Scan):
        names = dict(zip(node.columns, node.names, strict=True))
        leaves.append((node, {want: {render(e, names) for e in ways} for want, ways in wants.items()}))
        return
    for child, below in zip(children(node), _below(node, wants), strict=True):
        _push(child, _within(below, child), leaves)
    for inner in whole(node):
        _push(inner, {}, leaves)


def _within(wants: Wants, node: Node) -> Wants:
    """What can be said with the columns of this operator alone. A constant says nothing about rows."""
    own = frozenset(node.columns)
    found = {name: frozenset(e for e in ways if columns_of(e) and columns_of(e) <= own) for name, ways in wants.items()}
    return {name: ways for name, ways in found.items() if ways}


def _below(node: Node, wants: Wants) -> list[Wants]:
    """What is wanted of each child."""
    if isinstance(node, Filter):
        return [_all_ways(wants, equalities(node.conjuncts))]
    if isinstance(node, Project):
        return [_replaced(wants, dict(node.items))]
    if isinstance(node, Group):
        return [{} if node.sets else _replaced(wants, dict(node.keys))]
    if isinstance(node, Window):
        return [_partitioned(node, wants)]
    if isinstance(node, Distinct):
        return [wants]
    if isinstance(node, SetOp):
        return [_side(node, wants, 0), _side(node, wants, 1)]
    if isinstance(node, Join):
        return _joined(node, wants)
    assert isinstance(node, Limit | Opaque)
    return [{} for _ in children(node)]


def _all_ways(wants: Wants, equal: tuple[Equal, ...]) -> Wants:
    return {name: frozenset(w for e in ways for w in written(e, equal)) for name, ways in wants.items()}


def _replaced(wants: Wants, values: dict[int, Expr]) -> Wants:
    found = {name: [substitute(e, values) for e in ways] for name, ways in wants.items()}
    return {name: frozenset(e for e in ways if e is not None) for name, ways in found.items()}


def _partitioned(node: Window, wants: Wants) -> Wants:
    """Whole partitions stay or go, for every window: so the value must be one of the partition's."""
    kept: dict[str, frozenset[Expr]] = {}
    for name, ways in wants.items():
        good = [e for e in ways if all(e in over.by or refs(e) <= set(over.by) for _, over in node.items)]
        kept[name] = frozenset(good)
    return kept


def _side(node: SetOp, wants: Wants, side: int) -> Wants:
    values: dict[int, Expr] = {
        column: pair[side] for column, pair, same in zip(node.columns, node.sides, node.same, strict=True) if same
    }
    return _replaced(wants, values)


def _joined(node: Join, wants: Wants) -> list[Wants]:
    on = equalities(node.on)
    if node.kind == "inner":
        both = _all_ways(wants, on)
        return [both, both]
    if node.kind == "full":
        return [_of_full(node, wants, on, 0), _of_full(node, wants, on, 1)]
    # COALESCE(l.x, r.y) with l.x = r.y is l.x: where r is absent, it is NULL.
    kept = _within(
        {n: frozenset(w for e in ways for w in _kept_first(e, node, on)) for n, ways in wants.items()}, node.left
    )
    return [kept, _all_ways(kept, on)]


def _kept_first(expr: Expr, node: Join, on: tuple[Equal, ...]) -> frozenset[Expr]:
    return frozenset([expr, _choose(expr, on, frozenset(node.left.columns))])


def _choose(expr: Expr, on: tuple[Equal, ...], own: frozenset[int]) -> Expr:
    """The expression with every COALESCE of two columns that ON compares replaced by the one of this side."""
    if not isinstance(expr, Call):
        return expr
    if expr.sql == COALESCE and any({e.left, e.right} == set(expr.args) for e in on):
        mine = [arg for arg in expr.args if columns_of(arg) and columns_of(arg) <= own]
        if len(mine) == 1:
            return mine[0]
    return Call(expr.sql, tuple(_choose(arg, on, own) for arg in expr.args), expr.type)


def _of_full(node: Join, wants: Wants, on: tuple[Equal, ...], side: int) -> Wants:
    """Only what both sides can say by COALESCE of columns that ON compares; a column of one side alone may be NULL."""
    sides = (frozenset(node.left.columns), frozenset(node.right.columns))
    found: dict[str, frozenset[Expr]] = {}
    for name, ways in wants.items():
        pairs = [(_choose(e, on, sides[0]), _choose(e, on, sides[1])) for e in ways]
        good = [p for p in pairs if columns_of(p[0]) <= sides[0] and columns_of(p[1]) <= sides[1]]
        found[name] = frozenset(p[side] for p in good)
    return found
