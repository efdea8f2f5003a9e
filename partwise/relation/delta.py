"""Whether a change of the inputs can be merged into the result without looking at what did not change.

Linear operators (filter, project, inner join, UNION ALL) give for changed rows the changed rows of the result:

    Q(new) = Q(old) + sum over the changed occurrences i of Q(new_1, .., delta_i, .., old_n)

where occurrences after i read what they held before, as of the old result. One GROUP BY on top is merged group by
group: partials of the changed rows are added to those of the groups. COUNT(*) tells when a group is gone, and a
COUNT(x) beside each sum when the sum is NULL. Sums must be exact: doubles that are added and taken away again
leave a rest.
"""

from __future__ import annotations

from dataclasses import dataclass

from partwise.relation.tree import (
    Aggregate,
    Distinct,
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
    walk,
    whole,
)
from partwise.relation.types import is_summed_exactly


@dataclass(frozen=True)
class Obstacle:
    """An operator that is not linear, and where it stands in the text."""

    operator: str
    why: str
    start: int


@dataclass(frozen=True)
class Partial:
    """One number that is kept for each group: `column` of the result shows it, or none does."""

    function: str  # count_all, count, sum, min, max
    argument: str  # as written; empty for count_all
    column: str | None


@dataclass(frozen=True)
class Delta:
    """How changes are merged. `groups` None: rows are added and taken away as they are.

    `published`: all partials can be read from the result itself, so nothing else has to be kept. `extremes`: MIN or
    MAX, where a row taken away at the extreme sends its group to be computed again.
    """

    obstacle: Obstacle | None = None
    groups: tuple[str, ...] | None = None
    partials: tuple[Partial, ...] = ()
    published: bool = True
    extremes: bool = False
    start: int | None = None  # where the GROUP BY stands in the text

    @property
    def possible(self) -> bool:
        return self.obstacle is None


def delta(tree: Tree) -> Delta:
    if (twice := _twice(tree)) is not None:
        return Delta(twice)
    top, below = _peeled(tree.root)
    group = top[-1] if top and isinstance(top[-1], Group) else None
    if group is None:
        return Delta(_obstacle(tree, tree.root))
    if (found := _obstacle(tree, below)) is not None:
        return Delta(found)
    if group.sets or not group.keys:
        why = "ROLLUP, CUBE or GROUPING SETS" if group.sets else "there is one row, also over no rows at all"
        return Delta(Obstacle("group", why, tree.place(group)))
    for node in top:
        if whole(node):
            return Delta(Obstacle(_name(node), "a subquery stands in an expression", tree.place(node)))
    for _, aggregate in group.aggregates:
        if (reason := _not_merged(aggregate)) is not None:
            return Delta(Obstacle("group", f"{aggregate.text}: {reason}", tree.place(group)))
    return _by_groups(tree, top, group)


def _twice(tree: Tree) -> Obstacle | None:
    """One text that is read in two places changes in both at once: the formula has a term for neither."""
    scans = [node for node in walk(tree.root) if isinstance(node, Scan)]
    seen: set[int] = set()
    for scan in scans:
        if scan.occurrence in seen:
            return Obstacle("scan", f"{scan.table} is read by a WITH query that is used twice", tree.place(scan))
        seen.add(scan.occurrence)
    return None


def _peeled(root: Node) -> tuple[list[Node], Node]:
    """The operators from the top to the first GROUP BY, it included, if nothing but HAVING and columns lie between."""
    top: list[Node] = []
    node = root
    while isinstance(node, Project | Filter):
        top.append(node)
        node = node.child
    if isinstance(node, Group):
        return [*top, node], node.child
    return [], root


def _obstacle(tree: Tree, node: Node) -> Obstacle | None:
    """The first operator that is not linear."""
    why = _not_linear(node)
    if why is not None:
        return Obstacle(_name(node), why, tree.place(node))
    return next((found for child in children(node) if (found := _obstacle(tree, child)) is not None), None)


def _not_linear(node: Node) -> str | None:
    if isinstance(node, Opaque):
        return node.why
    if whole(node):
        return "a subquery stands in an expression"
    if isinstance(node, Join) and node.kind != "inner":
        return f"a {node.kind} join shows rows because others are absent or present"
    if isinstance(node, SetOp) and node.kind != "union all":
        return f"{node.kind.upper()} counts equal rows"
    reasons: dict[type, str] = {
        Distinct: "DISTINCT counts equal rows",
        Limit: "LIMIT picks rows among all",
        Window: "a window function looks at other rows",
        Group: "an aggregate lies below another operator",
    }
    return reasons.get(type(node))


def _not_merged(aggregate: Aggregate) -> str | None:
    if not aggregate.plain:
        return "DISTINCT, FILTER or several arguments are not merged"
    if aggregate.function in ("count", "min", "max"):
        return None
    if aggregate.function in ("sum", "avg"):
        kind = aggregate.argument.type if aggregate.argument is not None else None
        if is_summed_exactly(kind):
            return None
        return "sums of floating point are not exact" if kind in ("float", "double") else "the type is not known"
    return "it cannot be merged"


def _by_groups(tree: Tree, top: list[Node], group: Group) -> Delta:
    shown = _shown(tree, top)
    groups = tuple(shown[c] for c, _ in group.keys if c in shown)
    partials: dict[tuple[str, str], Partial] = {("count_all", ""): Partial("count_all", "", None)}
    complete = len(groups) == len(group.keys) and not any(isinstance(node, Filter) for node in top)
    for column, aggregate in group.aggregates:
        for function in _needs(aggregate):
            argument = "" if function == "count_all" else aggregate.text.partition("(")[2].rpartition(")")[0]
            here = shown.get(column) if function == _own(aggregate) else None
            known = partials.get((function, argument))
            if known is None or known.column is None:
                partials[function, argument] = Partial(function, argument, here)
    published = complete and all(p.column is not None for p in partials.values())
    extremes = any(p.function in ("min", "max") for p in partials.values())
    return Delta(None, groups, tuple(partials.values()), published, extremes, tree.place(group))


def _own(aggregate: Aggregate) -> str:
    return "count_all" if aggregate.function == "count" and aggregate.argument is None else aggregate.function


def _needs(aggregate: Aggregate) -> tuple[str, ...]:
    if aggregate.function in ("sum", "avg"):
        return ("sum", "count")
    return (_own(aggregate),)


def _shown(tree: Tree, top: list[Node]) -> dict[int, str]:
    """Columns of the group that the result shows as they are."""
    found = dict(zip(tree.root.columns, tree.names, strict=True))
    for node in top:
        if isinstance(node, Project):
            found = {e.column: found[c] for c, e in node.items if isinstance(e, Ref) and c in found}
    return found


def _name(node: Node) -> str:
    if isinstance(node, Join):
        return f"{node.kind} join"
    return node.kind if isinstance(node, SetOp) else type(node).__name__.lower()


def occurrences(tree: Tree) -> tuple[int, ...]:
    """Occurrences in the text that the tree reads row by row, in the order of the formula above."""
    found: list[int] = []

    def visit(node: Node) -> None:
        if isinstance(node, Scan):
            found.append(node.occurrence)
        for child in children(node):
            visit(child)

    visit(tree.root)
    return tuple(dict.fromkeys(found))
