"""The tree of a query as people read it, and as JSON."""

from __future__ import annotations

from typing import Any

from partwise.relation.carried import Carried
from partwise.relation.expressions import render
from partwise.relation.tree import (
    Conjunct,
    Equal,
    Expr,
    Filter,
    Group,
    Join,
    Node,
    Opaque,
    Other,
    Project,
    Scan,
    SetOp,
    Tree,
    Window,
    children,
    whole,
)

_JOINS = {"inner": "inner join", "left": "left join", "full": "full join", "semi": "semi join", "anti": "anti join"}


def as_lines(tree: Tree, carried: dict[int, Carried]) -> list[str]:
    """One line for each operator, what it reads below it."""
    found: list[str] = []

    def visit(node: Node, depth: int, mark: str = "") -> None:
        if _is_silent(node):
            return visit(children(node)[0], depth, mark)
        operator, said = _said(tree, node)
        text = f"{operator} {said}".strip()
        if isinstance(node, Scan):
            text += f" carries {_carries(carried.get(node.occurrence, {}))}"
        found.append(f"{'  ' * depth}{mark}{text}")
        for child in children(node):
            visit(child, depth + 1)
        for inner in whole(node):
            visit(inner, depth + 1, "in a subquery: ")

    visit(tree.root, 0)
    return found


def as_json(tree: Tree, carried: dict[int, Carried]) -> dict[str, Any]:
    def visit(node: Node) -> dict[str, Any]:
        operator, said = _said(tree, node)
        found: dict[str, Any] = {"operator": operator}
        if isinstance(node, Scan):
            found |= {"table": node.table, "parts": _parts(node), "carries": carried.get(node.occurrence, {})}
        elif said:
            found["detail"] = said
        if below := [*map(visit, children(node))]:
            found["inputs"] = below
        if inner := [*map(visit, whole(node))]:
            found["subqueries"] = inner
        return found

    return visit(tree.root)


def _is_silent(node: Node) -> bool:
    """A list of columns that only renames or leaves out says nothing to people."""
    return isinstance(node, Project) and not node.whole


def _carries(carried: Carried) -> str:
    if not carried:
        return "nothing: it is read whole"
    return ", ".join(c if sql == f"`{c}`" else f"{c} as {sql.replace('`', '')}" for c, sql in carried.items())


def _parts(node: Scan) -> str | None:
    return None if node.reference is None else node.reference.text()


def _said(tree: Tree, node: Node) -> tuple[str, str]:
    """The operator, and what there is to say about it."""
    if isinstance(node, Scan):
        return "read", f"{node.table}{_parts(node) or ''}"
    if isinstance(node, Filter):
        return "filter", _conditions(tree, node.conjuncts)
    if isinstance(node, Project):
        return "project", ", ".join(tree.labels.get(c, "?") for c, _ in node.items)
    if isinstance(node, Join):
        return _JOINS[node.kind], f"on {_conditions(tree, node.on)}" if node.on else ""
    if isinstance(node, Group):
        if node.sets:
            return "group", "by several sets of columns"
        by = ", ".join(_expr(tree, e) for _, e in node.keys)
        made = ", ".join(a.text for _, a in node.aggregates)
        return "group", "; ".join(text for text in (f"by {by}" if by else "all rows", made) if text)
    if isinstance(node, Window):
        return "window", ", ".join(over.text for _, over in node.items)
    if isinstance(node, SetOp):
        return node.kind, ""
    return ("opaque", f"({node.why})") if isinstance(node, Opaque) else (type(node).__name__.lower(), "")


def _conditions(tree: Tree, conjuncts: tuple[Conjunct, ...]) -> str:
    def one(c: Conjunct) -> str:
        if isinstance(c, Equal):
            return f"{_expr(tree, c.left)} {'<=>' if c.null_safe else '='} {_expr(tree, c.right)}"
        return c.text

    return " AND ".join(map(one, conjuncts))


def _expr(tree: Tree, expr: Expr) -> str:
    return expr.text if isinstance(expr, Other) else render(expr, tree.labels).replace("`", "")
