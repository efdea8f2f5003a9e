"""What equal columns make of each other: all the ways to write one value."""

from __future__ import annotations

from collections.abc import Iterable

from partwise.relation.tree import COALESCE, Call, Conjunct, Equal, Expr, Ref, columns_of, substitute

#: No person's query has more ways to write one value; rules that miss one only restrict less.
_MOST = 24


def equalities(conjuncts: Iterable[Conjunct]) -> tuple[Equal, ...]:
    return tuple(c for c in conjuncts if isinstance(c, Equal))


def written(expr: Expr, equal: Iterable[Equal]) -> frozenset[Expr]:
    """The expression, and what it is equal to. Types are such that equal values are identical."""
    known, found, fresh = tuple(equal), {expr}, [expr]
    while fresh and len(found) < _MOST:
        one = fresh.pop()
        for new in _next(one, known):
            if new not in found and columns_of(new):
                found.add(new)
                fresh.append(new)
    return frozenset(found)


def _next(one: Expr, known: tuple[Equal, ...]) -> Iterable[Expr]:
    for e in known:
        for here, there in ((e.left, e.right), (e.right, e.left)):
            if one == here:
                yield there
            elif isinstance(one, Call) and isinstance(here, Ref) and here.column in columns_of(one):
                others: dict[int, Expr] = {r.column: r for r in refs(one)}
                if (new := substitute(one, {**others, here.column: there})) is not None:
                    yield new
    if (shorter := first_of_equals(one, known)) != one:
        yield shorter


def refs(expr: Expr) -> frozenset[Ref]:
    if isinstance(expr, Ref):
        return frozenset([expr])
    return frozenset(r for arg in expr.args for r in refs(arg)) if isinstance(expr, Call) else frozenset()


def first_of_equals(expr: Expr, known: tuple[Equal, ...]) -> Expr:
    """COALESCE(x, y) where x and y are equal is x."""
    if not isinstance(expr, Call):
        return expr
    args = tuple(first_of_equals(arg, known) for arg in expr.args)
    if expr.sql == COALESCE and any({e.left, e.right} == set(args) for e in known):
        return args[0]
    return Call(expr.sql, args, expr.type)
