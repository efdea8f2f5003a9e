"""Which rows of parts a changed row of a dimension can matter for: those that it is joined with.

Where a dimension is joined by `d.k = x`, a row of it that meets no x is as good as absent. So if every value of x comes
from a column of a reference with parts, a change of the dimension matters only where that column holds one of the
changed keys. What happens above the join does not count: its rows are the same.

    inner join                 on either side; conditions of a filter above count as well
    left, semi, anti join      on the right: a row without a partner there shows nothing of it
    below the join             whatever keeps the key, as rules for carried columns say
    anywhere else              every change matters for every part
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from partwise.relation.carried import carried
from partwise.relation.equalities import equalities
from partwise.relation.expressions import render
from partwise.relation.tree import (
    COALESCE,
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
    TreeCall,
    Window,
    children,
    columns_of,
    walk,
    whole,
)
from partwise.sql.types.names import INTEGERS

_TYPES = INTEGERS | {"string", "boolean", "date"}


@dataclass(frozen=True)
class JoinedBy:
    """Rows of a dimension matter only for rows of another reference in which `columns` hold the values of its `own`."""

    own: tuple[str, ...]
    occurrence: int
    columns: tuple[str, ...]


@dataclass
class _Joins:
    found: dict[int, set[JoinedBy]] = field(default_factory=dict)
    everywhere: set[int] = field(default_factory=set)

    def uncut(self, node: Node, conditions: tuple[Equal, ...] = ()) -> list[Scan]:
        """Dimensions below that no join has narrowed down yet."""
        for query in whole(node):
            self.everywhere |= {leaf.occurrence for leaf in _dimensions(query)}
        if isinstance(node, Scan):
            return [node] if node.reference is None else []
        if isinstance(node, Filter):
            return self.uncut(node.child, (*conditions, *equalities(node.conjuncts)))
        if not isinstance(node, Join):
            return [leaf for child in children(node) for leaf in self.uncut(child)]
        inner = node.kind == "inner"
        below = (*equalities(node.on), *(conditions if inner else ()))
        left, right = (self.uncut(side, conditions if inner else ()) for side in (node.left, node.right))
        rest = [leaf for leaf in left if not (inner and self._cut(leaf, node.left, node.right, below))]
        may = node.kind in ("inner", "left", "semi", "anti")
        return rest + [leaf for leaf in right if not (may and self._cut(leaf, node.right, node.left, below))]

    def _cut(self, leaf: Scan, side: Node, other: Node, on: tuple[Equal, ...]) -> bool:
        """Whether the join tells which rows of the other side a row of the dimension meets."""
        singles: list[set[JoinedBy]] = []
        pairs: dict[int, list[tuple[str, str]]] = {}
        leaves: dict[int, Scan] = {}
        for mine, theirs, equal in _pairs(on, side, other):
            own = _own_column(leaf, side, mine)
            sources = None if own is None else _sources(other, theirs.column, equal.null_safe)
            if own is None or not sources:
                continue
            singles.append({JoinedBy((own,), scan.occurrence, (column,)) for scan, column in sources})
            if len(sources) == 1:
                ((scan, column),) = sources
                leaves[id(scan)] = scan
                pairs.setdefault(id(scan), []).append((own, column))
        if not singles:
            return False
        # Columns of one and the same row select more than one of them alone.
        at = max(pairs, key=lambda at: len(pairs[at]), default=None)
        if at is not None:
            chosen = sorted(pairs[at])
            both = JoinedBy(tuple(o for o, _ in chosen), leaves[at].occurrence, tuple(c for _, c in chosen))
            singles.insert(0, {both})
        self.found.setdefault(leaf.occurrence, set()).update(singles[0])
        return True


def joined(tree: Tree) -> dict[int, tuple[JoinedBy, ...]]:
    """By occurrence in the text: what the rows of a dimension are joined with. One that is not there can matter anywhere."""
    joins = _Joins()
    joins.everywhere |= {leaf.occurrence for leaf in joins.uncut(tree.root)}
    return {
        n: tuple(sorted(found, key=lambda each: (each.occurrence, each.columns, each.own)))
        for n, found in joins.found.items()
        if n not in joins.everywhere
    }


def _dimensions(node: Node) -> Iterator[Scan]:
    return (leaf for leaf in walk(node) if isinstance(leaf, Scan) and leaf.reference is None)


def _pairs(on: tuple[Equal, ...], side: Node, other: Node) -> Iterator[tuple[Expr, Ref, Equal]]:
    """Equal values of both sides, of types that are the same wherever they are read."""
    mine, theirs = frozenset(side.columns), frozenset(other.columns)
    for equal in on:
        for one, two in ((equal.left, equal.right), (equal.right, equal.left)):
            same = isinstance(one, Ref) and isinstance(two, Ref) and _same(one.type, two.type)
            if same and isinstance(two, Ref) and columns_of(one) <= mine and columns_of(two) <= theirs:
                yield one, two, equal


def _same(one: str | None, other: str | None) -> bool:
    return one in _TYPES and (one == other or {one, other} <= INTEGERS)


def _own_column(leaf: Scan, side: Node, wanted: Expr) -> str | None:
    """The column of the dimension that decides for which values of `wanted` its rows can matter."""
    kind = wanted.type if isinstance(wanted, Ref) else None
    found = carried(Tree(Project(side, ((0, wanted),)), ("k",), (kind,), {}, {}))
    text = found.get(leaf.occurrence, {}).get("k")
    names = dict(zip(leaf.columns, leaf.names, strict=True))
    return next((names[c] for c in leaf.columns if render(Ref(c), names) == text), None)


def _sources(node: Node, column: int, null_safe: bool) -> set[tuple[Scan, str]] | None:
    """Columns of references with parts from which every value of a column comes. None: it may come from elsewhere.

    `null_safe`: NULL is a value, too, so it must not come from a join that found nothing.
    """
    if isinstance(node, Scan):
        names = dict(zip(node.columns, node.names, strict=True))
        return {(node, names[column])} if node.reference is not None and column in names else None
    if isinstance(node, Filter | Limit | Distinct | Window):
        return _sources(node.child, column, null_safe) if column in node.child.columns else None
    if isinstance(node, Project | Group):
        if isinstance(node, Group) and node.sets and null_safe:
            return None
        values = dict(node.items if isinstance(node, Project) else node.keys)
        return _from_value(node.child, values.get(column), null_safe)
    if isinstance(node, SetOp):
        at = node.columns.index(column)
        left, right = node.sides[at]
        first = _sources(node.left, left.column, null_safe)
        if not node.same[at] or not node.kind.startswith("union"):
            return first if node.same[at] else None
        return _both(first, _sources(node.right, right.column, null_safe))
    if isinstance(node, Join):
        return _through_join(node, column, null_safe)
    assert isinstance(node, Opaque)
    return None


def _from_value(child: Node, value: Expr | None, null_safe: bool) -> set[tuple[Scan, str]] | None:
    if isinstance(value, Ref):
        return _sources(child, value.column, null_safe)
    if isinstance(value, TreeCall) and value.sql == COALESCE:
        one, other = (_from_value(child, arg, null_safe) for arg in value.args)
        return _both(one, other)
    return None


def _both(one: set[tuple[Scan, str]] | None, other: set[tuple[Scan, str]] | None) -> set[tuple[Scan, str]] | None:
    return None if one is None or other is None else one | other


def _through_join(node: Join, column: int, null_safe: bool) -> set[tuple[Scan, str]] | None:
    from_left = column in node.left.columns
    may_be_absent = node.kind == "full" or (node.kind == "left" and not from_left)
    if null_safe and may_be_absent:
        return None
    found = _sources(node.left if from_left else node.right, column, null_safe)
    if found is not None or node.kind != "inner":
        return found
    for equal in equalities(node.on):
        for one, two in ((equal.left, equal.right), (equal.right, equal.left)):
            if isinstance(one, Ref) and isinstance(two, Ref) and one.column == column:
                side = node.right if from_left else node.left
                if two.column in side.columns and (found := _sources(side, two.column, null_safe)) is not None:
                    return found
    return None
