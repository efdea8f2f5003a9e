"""A result over totals: SUM and COUNT are totals themselves, AVG, VAR, sums and quotients are written over them.

The gradient says how much each total moves the result: that is all linearisation needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class TotalAt:
    """The total with this number."""

    at: int


@dataclass(frozen=True, slots=True)
class SumAt:
    """The sum with this number, of as many values as the other total counts: of none it is NULL."""

    at: int
    values: int


@dataclass(frozen=True, slots=True)
class Number:
    value: float


@dataclass(frozen=True, slots=True)
class Operation:
    operator: Literal["+", "-", "*", "/"]
    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class SquareRoot:
    of: Formula


Formula: TypeAlias = TotalAt | SumAt | Number | Operation | SquareRoot


@dataclass(frozen=True, slots=True)
class Valued:
    """A value and its derivative by each total."""

    value: float
    gradient: tuple[float, ...]


def average(total: int, count: int) -> Formula:
    return Operation("/", TotalAt(total), TotalAt(count))


def variance(total: int, squares: int, count: int, sample: bool) -> Formula:
    """Of a sample (n - 1), or of all (n)."""
    centred = Operation("-", TotalAt(squares), Operation("*", TotalAt(total), average(total, count)))
    n = TotalAt(count)
    return Operation("/", centred, Operation("-", n, Number(1.0)) if sample else n)


def used(formula: Formula) -> frozenset[int]:
    """Numbers of the totals that move it."""
    if isinstance(formula, TotalAt | SumAt):
        return frozenset([formula.at])
    if isinstance(formula, Operation):
        return used(formula.left) | used(formula.right)
    return used(formula.of) if isinstance(formula, SquareRoot) else frozenset()


def evaluate(formula: Formula, totals: Sequence[float]) -> Valued | None:
    """None where a value cannot be estimated: a division by zero, the root of a negative number."""
    if isinstance(formula, TotalAt | SumAt):
        return Valued(totals[formula.at], tuple(1.0 if at == formula.at else 0.0 for at in range(len(totals))))
    if isinstance(formula, Number):
        return Valued(formula.value, (0.0,) * len(totals))
    if isinstance(formula, SquareRoot):
        inner = evaluate(formula.of, totals)
        if inner is None or inner.value < 0:
            return None
        root = math.sqrt(inner.value)
        if root == 0:
            # The slope there is vertical: what little changes may change it by any factor.
            return Valued(0.0, tuple(math.inf if slope else 0.0 for slope in inner.gradient))
        return Valued(root, tuple(slope / (2 * root) for slope in inner.gradient))
    left, right = evaluate(formula.left, totals), evaluate(formula.right, totals)
    if left is None or right is None:
        return None
    return _combined(formula.operator, left, right)


def is_null(formula: Formula, totals: Sequence[float]) -> bool:
    """Whether SQL has no value, by totals that are exact: something in it adds up no values, or divides by none."""
    if isinstance(formula, SumAt):
        return totals[formula.values] < 0.5
    if isinstance(formula, Operation):
        return is_null(formula.left, totals) or is_null(formula.right, totals) or evaluate(formula, totals) is None
    return isinstance(formula, SquareRoot) and is_null(formula.of, totals)


def _combined(operator: str, a: Valued, b: Valued) -> Valued | None:
    pairs = list(zip(a.gradient, b.gradient, strict=True))
    if operator == "+":
        return Valued(a.value + b.value, tuple(x + y for x, y in pairs))
    if operator == "-":
        return Valued(a.value - b.value, tuple(x - y for x, y in pairs))
    if operator == "*":
        return Valued(a.value * b.value, tuple(x * b.value + y * a.value for x, y in pairs))
    if b.value == 0:
        return None
    quotient = a.value / b.value
    return Valued(quotient, tuple((x - quotient * y) / b.value for x, y in pairs))
