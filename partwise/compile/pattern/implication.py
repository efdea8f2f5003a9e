"""What follows from a condition being true, and which conditions exclude each other.

Sound, not complete: the answer "yes" is always right, "no" may mean "cannot tell". A condition counts only
when it is TRUE, so NULL never gets in the way: `x > 10` being true says that x is not NULL.
Conditions are compared in their canonical form: `n.x` is a column of the new row, `p.x` of the row before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

#: How left stands to right: -1 below, 0 equal, 1 above.
_RELATIONS: dict[type[exp.Expression], frozenset[int]] = {
    exp.GT: frozenset({1}),
    exp.GTE: frozenset({0, 1}),
    exp.LT: frozenset({-1}),
    exp.LTE: frozenset({-1, 0}),
    exp.EQ: frozenset({0}),
    exp.NEQ: frozenset({-1, 1}),
}
_ALL = frozenset({-1, 0, 1})

TypeOf = Callable[[exp.Expression], str | None]


@dataclass(frozen=True, slots=True)
class Atom:
    """`left` stands to `right` in one of `relations`; `number` is right's value if both sides are numbers.

    Without `right`: the condition `left` itself, taken as it is (relations {1}) or negated ({-1}).
    """

    left: str
    relations: frozenset[int]
    right: str | None = None
    number: Fraction | None = None


def atoms(tree: exp.Expression, is_number: Callable[[exp.Expression], bool]) -> tuple[Atom, ...]:
    """A condition as a conjunction of atoms."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.And):
        return atoms(tree.this, is_number) + atoms(tree.expression, is_number)
    if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
        low = exp.GTE(this=tree.this, expression=tree.args["low"])
        high = exp.LTE(this=tree.this, expression=tree.args["high"])
        return atoms(low, is_number) + atoms(high, is_number)
    if type(tree) in _RELATIONS:
        return (_comparison(tree, _RELATIONS[type(tree)], is_number),)
    if isinstance(tree, exp.Is) and isinstance(tree.expression, exp.Null):
        return (Atom(_text(tree.this), frozenset({1}), "NULL"),)
    if isinstance(tree, exp.Not):
        inner = tree.this
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
            return (Atom(_text(inner.this), frozenset({-1}), "NULL"),)
        if type(inner) in _RELATIONS:
            return (_comparison(inner, _ALL - _RELATIONS[type(inner)], is_number),)
        return (Atom(_text(inner), frozenset({-1})),)
    return (Atom(_text(tree), frozenset({1})),)


def _comparison(tree: exp.Expression, relations: frozenset[int], is_number: Callable[[exp.Expression], bool]) -> Atom:
    left, right = tree.this, tree.expression
    if _constant(left) is not None or (_constant(right) is None and _text(left) > _text(right)):
        left, right, relations = right, left, frozenset(-r for r in relations)
    number = _constant(right) if is_number(left) else None
    return Atom(_text(left), relations, _text(right), number)


def _constant(tree: exp.Expression) -> Fraction | None:
    if isinstance(tree, exp.Neg):
        inner = _constant(tree.this)
        return None if inner is None else -inner
    if isinstance(tree, exp.Literal) and not tree.is_string:
        try:
            return Fraction(tree.this)
        except ValueError:
            return None
    return None


def _text(tree: exp.Expression) -> str:
    return tree.sql("spark", normalize_functions="upper").lower() if not _has_string(tree) else tree.sql("spark")


def _has_string(tree: exp.Expression) -> bool:
    return any(literal.is_string for literal in tree.find_all(exp.Literal))


def implies(given: Iterable[Atom], wanted: Iterable[Atom]) -> bool:
    """Whether `wanted` holds wherever all of `given` holds."""
    known = list(given)
    return all(any(_implies(a, w) for a in known) for w in wanted)


def contradicts(some: Iterable[Atom], others: Iterable[Atom]) -> bool:
    """Whether the two can never hold for the same rows."""
    right = list(others)
    return any(_contradicts(a, b) for a in some for b in right)


def never_null(given: Iterable[Atom], expression: str) -> bool:
    """Whether these conditions hold only where the expression is not NULL."""
    return any(
        (a.right == "NULL" and a.left == expression and a.relations == {-1})
        or (a.right not in (None, "NULL") and expression in (a.left, a.right))
        for a in given
    )


def _implies(a: Atom, b: Atom) -> bool:
    if b.right == "NULL" and b.relations == {-1}:
        return never_null([a], b.left)
    if a.left != b.left or (a.right is None) != (b.right is None):
        return False
    if a.number is not None and b.number is not None:
        return all(_holds(b, x) for x in _samples(a.number, b.number) if _holds(a, x))
    return a.right == b.right and a.relations <= b.relations


def _contradicts(a: Atom, b: Atom) -> bool:
    if b.right == "NULL" and b.relations == {1}:
        return never_null([a], b.left)
    if a.right == "NULL" and a.relations == {1}:
        return never_null([b], a.left)
    if a.left != b.left or (a.right is None) != (b.right is None):
        return False
    if a.number is not None and b.number is not None:
        return not any(_holds(a, x) and _holds(b, x) for x in _samples(a.number, b.number))
    return a.right == b.right and not (a.relations & b.relations)


def _samples(c: Fraction, d: Fraction) -> tuple[Fraction, ...]:
    """One number from every interval that two bounds make: what holds for them holds for all."""
    low, high = min(c, d), max(c, d)
    return (low - 1, low, (low + high) / 2, high, high + 1)


def _holds(atom: Atom, x: Fraction) -> bool:
    assert atom.number is not None
    return (x > atom.number) - (x < atom.number) in atom.relations
