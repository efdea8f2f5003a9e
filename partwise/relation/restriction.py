"""Which rows have to be computed again when some references changed, and what may be left unread for it.

Changed rows D of reference r, which carries the columns S, can only change rows of the result whose S is among D's.
So the condition is: S in the set of D's values, for each changed reference, joined by OR. All rows of the result for
which it is true are replaced. A reference is filtered by the same sets, as far as it carries their columns; if it
carries no column of one of them, it is read whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from partwise.relation.carried import Carried

#: More columns make a set more selective and dearer to compare; the first few select enough.
MOST_COLUMNS = 3


@dataclass(frozen=True)
class Touched:
    """A set of values of `columns` of the result, taken from the changed rows of these references: SQL by occurrence."""

    columns: tuple[str, ...]
    taken: Mapping[int, tuple[str, ...]]


@dataclass(frozen=True)
class Restriction:
    """Sets joined by OR. `filters`: by occurrence, for each set the columns of it that filter, and by which SQL."""

    sets: tuple[Touched, ...]
    filters: Mapping[int, tuple[tuple[tuple[str, str], ...], ...]]


def restriction(
    carried: Mapping[int, Carried], changed: Collection[int], key: Collection[str] = ()
) -> Restriction | None:
    """How to restrict to what these references change; None if one of them carries nothing."""
    own = {r: carried.get(r, {}) for r in sorted(changed)}
    if not own or not all(own.values()):
        return None
    weights = {c: sum(c in columns for columns in carried.values()) for found in own.values() for c in found}
    common = [c for c in next(iter(own.values())) if all(c in found for found in own.values())]
    if common:
        columns = _chosen(common, key, weights)
        sets: tuple[Touched, ...] = (
            Touched(columns, {r: tuple(found[c] for c in columns) for r, found in own.items()}),
        )
    else:
        chosen = {r: _chosen(list(found), key, weights) for r, found in own.items()}
        sets = tuple(Touched(chosen[r], {r: tuple(found[c] for c in chosen[r])}) for r, found in own.items())
    filters = {}
    for occurrence, found in carried.items():
        by = tuple(tuple((c, found[c]) for c in touched.columns if c in found) for touched in sets)
        if all(by):
            filters[occurrence] = by
    return Restriction(sets, filters)


def to_columns(carried: Mapping[int, Carried], columns: tuple[str, ...]) -> Restriction:
    """A restriction to values of these columns that are known already."""
    filters = {n: (tuple((c, found[c]) for c in columns if c in found),) for n, found in carried.items()}
    return Restriction((Touched(columns, {}),), {n: by for n, by in filters.items() if all(by)})


def _chosen(columns: list[str], key: Collection[str], weights: Mapping[str, int]) -> tuple[str, ...]:
    """Columns of the key first, then those that most references carry."""
    best = sorted(columns, key=lambda c: (c not in key, -weights[c]))
    return tuple(c for c in columns if c in best[:MOST_COLUMNS])
