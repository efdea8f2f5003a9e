"""Update classes: how rows leave the present result of a query as time goes on.

    monotonic   no row ever leaves
    weakest     rows leave in the order in which they came
    weak        in another order, but when a row comes it is known when it leaves (or that a newer one takes its place)
    strict      some rows leave when something else comes, which nobody can know before

Each operator makes a class of those of its inputs. Parts are facts of their time: what reads the rows of its own part
only is monotonic, whatever it does with them. Two rules of the literature are not sound and not used: a join with one
window is not weakest (the pair that came later may leave first), nor is a union of windows of different lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sqlglot import exp

Name = Literal["monotonic", "weakest", "weak", "strict"]
ORDER: tuple[Name, ...] = ("monotonic", "weakest", "weak", "strict")


@dataclass(frozen=True, slots=True)
class Classified:
    """The class of an operator, why, where it stands in the text, and its inputs. `window` is that of a weakest one."""

    name: Name
    operator: str
    why: str
    offset: int
    inputs: tuple[Classified, ...] = ()
    window: int | None = None

    def lines(self, depth: int = 0) -> Iterator[str]:
        """As a tree, for people."""
        yield f"{'  ' * depth}{self.operator}: {self.name}" + (f", {self.why}" if self.why else "")
        for each in self.inputs:
            yield from each.lines(depth + 1)

    @property
    def reason(self) -> str:
        """The operator that makes it what it is, and why; nothing to say of what is monotonic."""
        if self.name == "monotonic":
            return ""
        found = self.culprit(ORDER[ORDER.index(self.name) - 1])
        return f"{found.operator}: {found.why}" if found.why else found.operator

    def culprit(self, allowed: Name) -> Classified:
        """The innermost operator that is worse than what is allowed."""
        for each in self.inputs:
            if is_worse(each.name, allowed):
                return each.culprit(allowed)
        return self


def is_worse(name: Name, allowed: Name) -> bool:
    return ORDER.index(name) > ORDER.index(allowed)


#: What is known of a table where it is read: its class, and the window's length of a weakest one.
Leaf = Callable[["exp.Table"], Classified]


def classify(tree: exp.Expr, leaf: Leaf) -> Classified:
    return _Rules(leaf).query(tree)


class _Rules:
    def __init__(self, leaf: Leaf) -> None:
        self.leaf = leaf
        self.named: dict[str, exp.Expr] = {}

    def query(self, q: exp.Expr) -> Classified:
        from sqlglot import exp

        for cte in q.args["with_"].expressions if q.args.get("with_") else ():
            self.named[cte.alias.lower()] = cte.this
        if isinstance(q, exp.Subquery):
            return self.query(q.this)
        if isinstance(q, exp.SetOperation):
            return self._set(q)
        if isinstance(q, exp.Select):
            return self._select(q)
        return Classified("strict", q.key.upper(), "it is not understood", _place(q))

    def _relation(self, node: exp.Expr) -> Classified:
        from sqlglot import exp

        if isinstance(node, exp.Table):
            inner = self.named.get(node.name.lower())
            return self.query(inner) if inner is not None else self.leaf(node)
        if isinstance(node, exp.Subquery):
            return self.query(node.this)
        return Classified("strict", node.key.upper(), "it is not understood", _place(node))

    def _select(self, s: exp.Select) -> Classified:
        from sqlglot import exp

        first = s.args.get("from_")
        if first is None:
            return Classified("monotonic", "SELECT", "it reads nothing", 0)
        found = self._relation(first.this)
        for join in s.args.get("joins") or ():
            found = self._join(join, found)
        where = s.args.get("where")
        for condition in _conjuncts(where.this) if where is not None else ():
            found = self._condition(condition, found)
        others = [i for i in s.find_all(exp.Window) if i.parent_select is s]
        aggregated = any(c.parent_select is s for i in s.expressions for c in i.find_all(exp.AggFunc)) and not others
        if s.args.get("group") is not None or aggregated:
            found = _worse(found, "GROUP BY", "a newer row of the group takes its place", _place(s))
        if others or s.args.get("qualify") is not None:
            found = _taken_back(found, "OVER", "other rows decide whether a row stays", _place(s))
        if s.args.get("distinct") is not None:
            found = _worse(found, "DISTINCT", "the youngest of equal rows takes its place", _place(s))
        if s.args.get("limit") is not None:
            found = _taken_back(found, "LIMIT", "a larger row takes the place of a smaller one", _place(s))
        return found

    def _join(self, join: exp.Join, before: Classified) -> Classified:
        right, kind, side = self._relation(join.this), (join.kind or "").upper(), (join.side or "").upper()
        at, inputs = _place(join.this), (before, right)
        if kind == "SEMI":
            return _met(inputs, "SEMI JOIN", at)
        if kind == "ANTI":
            return _negated(inputs, "ANTI JOIN", "a row leaves when a partner comes", at)
        if side in ("LEFT", "RIGHT", "FULL"):
            if right.operator == _FORWARD:
                return before
            return _negated(inputs, f"{side} JOIN", "a row without a partner leaves when one comes", at)
        if right.operator == _FORWARD:
            return before
        return _joined(inputs, at)

    def _condition(self, condition: exp.Expr, before: Classified) -> Classified:
        from sqlglot import exp

        negated = isinstance(condition, exp.Not)
        inner = condition.this if negated else condition
        query = (
            inner.this
            if isinstance(inner, exp.Exists)
            else inner.args.get("query")
            if isinstance(inner, exp.In)
            else None
        )
        if query is None:
            reads = list(condition.find_all(exp.Query))
            inputs = (before, *(self.query(q) for q in reads))
            return _negated(inputs, "subquery", "its value may change", _place(condition)) if reads else before
        inputs = (before, self.query(query))
        word = "EXISTS" if isinstance(inner, exp.Exists) else "IN"
        if negated:
            return _negated(inputs, f"NOT {word}", "a row leaves when a partner comes", _place(query))
        return _met(inputs, word, _place(query))

    def _set(self, q: exp.SetOperation) -> Classified:
        from sqlglot import exp

        inputs, at = (self.query(q.this), self.query(q.expression)), _place(q.expression)
        if isinstance(q, exp.Except):
            return _negated(inputs, "EXCEPT", "a row leaves when an equal one comes on the other side", at)
        if isinstance(q, exp.Intersect):
            return _met(inputs, "INTERSECT", at)
        found = _union(inputs, at)
        return (
            found
            if not q.args.get("distinct")
            else _worse(found, "UNION", "the youngest of equal rows takes its place", at)
        )


_FORWARD = "forward dimension"


def forward(offset: int) -> Classified:
    """A dimension whose changes count for later rows only: it leaves the class as it is."""
    return Classified("monotonic", _FORWARD, "", offset)


def _all_own(inputs: tuple[Classified, ...]) -> bool:
    return all(each.name == "monotonic" for each in inputs)


def _joined(inputs: tuple[Classified, ...], at: int) -> Classified:
    if any(each.name == "strict" for each in inputs):
        return Classified("strict", "JOIN", "as its input", at, inputs)
    name: Name = "monotonic" if _all_own(inputs) else "weak"
    return Classified(name, "JOIN", "" if _all_own(inputs) else "a row expires with the first of its rows", at, inputs)


def _met(inputs: tuple[Classified, ...], operator: str, at: int) -> Classified:
    if any(each.name == "strict" for each in inputs):
        return Classified("strict", operator, "as its input", at, inputs)
    name: Name = "monotonic" if _all_own(inputs) else "weak"
    return Classified(
        name, operator, "" if _all_own(inputs) else "the youngest partner decides when it leaves", at, inputs
    )


def _negated(inputs: tuple[Classified, ...], operator: str, why: str, at: int) -> Classified:
    own = _all_own(inputs)
    return Classified("monotonic" if own else "strict", operator, "" if own else why, at, inputs)


def _union(inputs: tuple[Classified, ...], at: int) -> Classified:
    one, other = inputs
    if _all_own(inputs):
        return Classified("monotonic", "UNION ALL", "", at, inputs)
    if one.name == other.name == "weakest" and one.window == other.window:
        return Classified("weakest", "UNION ALL", "", at, inputs, one.window)
    worst = max(inputs, key=lambda each: ORDER.index(each.name)).name
    name: Name = worst if is_worse(worst, "weakest") else "weak"
    return Classified(name, "UNION ALL", "rows of different windows leave in another order", at, inputs)


def _worse(found: Classified, operator: str, why: str, at: int) -> Classified:
    """At least weak, unless nothing ever leaves."""
    if found.name in ("monotonic", "strict"):
        return Classified(found.name, operator, "", at, (found,))
    return Classified("weak", operator, why, at, (found,))


def _taken_back(found: Classified, operator: str, why: str, at: int) -> Classified:
    own = found.name == "monotonic"
    return Classified("monotonic" if own else "strict", operator, "" if own else why, at, (found,))


def _conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    from sqlglot import exp

    if isinstance(node, exp.Paren):
        yield from _conjuncts(node.this)
    elif isinstance(node, exp.And):
        yield from (*_conjuncts(node.this), *_conjuncts(node.expression))
    else:
        yield node


def _place(node: exp.Expr) -> int:
    from partwise.sql.columns import place

    return place(node)[0]
