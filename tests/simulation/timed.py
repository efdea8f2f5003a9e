"""Dimensions whose rows are valid for a time, in random histories: a value for each stretch of time, of which a part reads
those that its inputs with parts overlap.

Nothing here asks the ledger which times have changed, but for what the writer of the dimension says when it commits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from zlib import crc32

from partwise.parts import FOREVER, Range
from partwise.tables import DIMENSION_PART, Graph, Input, Table
from tests.simulation.world import Model, Value, required

NAME = "t"
#: Stretches of so many seconds; the first and the last one have no end.
_STRETCH, _COUNT = 120, 10


def with_timed(model: Model, seed: int) -> Model:
    """A dimension that most views read: the same ones whatever their definition."""
    tables = {**model.graph.tables, NAME: Table(NAME, "dimension", 0, NAME, timed=True)}
    model = replace(model, graph=Graph(tables))
    for view in [t for t in model.graph.tables.values() if t.kind == "view"]:
        some, read = Random(f"{seed} {view.name} {NAME}"), Input(NAME, None)
        if some.random() < 0.7 and read not in view.inputs:
            first = view.initial if some.random() < 0.2 else (*view.initial, read)
            own = bool(view.self_references) and some.random() < 0.5
            view = replace(view, inputs=(*view.inputs, read), initial=first, own_times=own)
            model = model.with_view(view, model.salts[view.name])
    return model


def another(value: Value, rng: Random) -> int:
    """Other rows for some times, mostly for one stretch."""
    value, first = value or 0, rng.randrange(_COUNT)
    for n in range(first, min(_COUNT, first + rng.choice((1, 1, 1, 2, 10)))):
        value = value & ~(3 << 2 * n) | rng.randrange(4) << 2 * n
    return value


def changed(before: Value, after: Value) -> tuple[Range, ...]:
    """The times in which something else is valid."""
    found = []
    for n in range(_COUNT):
        if _stretch(before, n) != _stretch(after, n):
            lo = -FOREVER if n == 0 else n * _STRETCH
            found.append(Range(lo, FOREVER if n == _COUNT - 1 else (n + 1) * _STRETCH - 1))
    return tuple(found)


def seen(
    view: Table, start: int, j: int, lengths: Mapping[str, int], tables: Mapping[str, Mapping[int, Value]]
) -> Mapping[str, Mapping[int, Value]]:
    """The tables with what part j sees of the dimension."""
    if NAME not in tables or DIMENSION_PART not in tables[NAME]:
        return tables
    value, visible = tables[NAME][DIMENSION_PART], set[int]()
    for name, span in required(view, start, j):
        if lengths.get(name) and (name != view.name or view.own_times):
            first, last = (max(0, min(_COUNT - 1, at // _STRETCH)) for at in _seconds(span, lengths[name]))
            visible |= set(range(first, last + 1))
    text = repr([(n, _stretch(value, n)) for n in sorted(visible)])
    return {**tables, NAME: {DIMENSION_PART: crc32(text.encode()) % 3}}


def _seconds(span: Range, length: int) -> tuple[int, int]:
    return span.lo * length, (span.hi + 1) * length - 1


def _stretch(value: Value, n: int) -> int:
    return ((value or 0) >> 2 * n) & 3
