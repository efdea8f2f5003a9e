"""Ranges kept as rows, against plain dictionaries and sets: random sequences of what can happen to them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from partwise.ledger.database import Writing
from partwise.ledger.ledger import Ledger
from partwise.ledger.open import in_memory
from partwise.ledger.runs import clear, due_rows, existing, existing_together, paint, set_existing
from partwise.parts import FOREVER, Parts
from partwise.plan.model import Cause

PARTS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), min_size=1, max_size=3).map(
    lambda found: Parts.of(*((lo, lo + size) for lo, size in found))
)
CAUSES = st.sampled_from([Cause("definition"), Cause("input", "s"), Cause("requested"), Cause("start")])
PAINTS = st.lists(
    st.one_of(
        st.tuples(st.just("paint"), PARTS, CAUSES),
        st.tuples(st.just("clear"), PARTS, st.one_of(st.just(FOREVER), st.integers(-1, 12))),
    ),
    min_size=1,
    max_size=12,
)
HAVES = st.lists(st.tuples(st.booleans(), PARTS), min_size=1, max_size=12)


@dataclass(frozen=True)
class Mark:
    seq: int
    since: float
    cause: Cause


def _paint_like_a_dictionary(w: Writing, model: dict[int, Mark], action: tuple[str, Parts, object]) -> None:
    kind, parts, argument = action
    if kind == "paint":
        assert isinstance(argument, Cause)
        paint(w, "v", parts, argument)
        for p in parts:
            before = model[p].cause.kind if p in model else ""  # what stays so
            asked = before == "requested" or (before == "start" and argument.kind == "input")
            cause = model[p].cause if asked else argument
            model[p] = Mark(w.seq, model[p].since if p in model else w.now, cause)
    else:
        assert isinstance(argument, int)
        clear(w, "v", parts, up_to=argument)
        for p in parts:
            if p in model and model[p].seq <= argument:
                del model[p]


def _check_paint(ledger: Ledger, actions: list[tuple[str, Parts, object]]) -> None:
    model: dict[int, Mark] = {}
    with ledger.database.writing(0.0) as w:
        clear(w, "v", Parts.of((-FOREVER, FOREVER)))
        first = w.seq
    for n, action in enumerate(actions):
        if action[0] == "clear" and isinstance(action[2], int) and action[2] < FOREVER:
            action = (action[0], action[1], first + action[2])
        with ledger.database.writing(float(n)) as w:
            _paint_like_a_dictionary(w, model, action)
            rows = due_rows(w, "v")
        found = {p: Mark(row.seq, row.since, row.cause) for row in rows for p in range(row.lo, row.hi + 1)}
        assert found == model
        assert sum(row.hi - row.lo + 1 for row in rows) == len(model)  # disjoint
        assert all(a.hi < b.lo for a, b in pairwise(rows))
        with ledger.database.reading() as r:
            overlapping = [row for row in rows if row.hi >= 7 and row.lo <= 11]
            assert due_rows(r, "v", 7, 11) == overlapping


def _check_have(ledger: Ledger, actions: list[tuple[bool, Parts]]) -> None:
    model: set[int] = set()
    with ledger.database.writing(0.0) as w:
        set_existing(w, "v", remove=Parts.of((-FOREVER, FOREVER)))
    for add, parts in actions:
        with ledger.database.writing(0.0) as w:
            if add:
                set_existing(w, "v", add=parts)
                model |= set(parts)
            else:
                set_existing(w, "v", remove=parts)
                model -= set(parts)
        windows = [("v", 5, 12), ("v", 0, 0), ("v", -FOREVER, FOREVER), ("other", 0, 9), ("v", 20, 19)]
        with ledger.database.reading() as r:
            rows = [tuple(row) for row in r.on.exec_driver_sql("SELECT lo, hi FROM have ORDER BY lo")]
            assert rows == [tuple(run) for run in Parts.single(*model).ranges]  # runs are maximal
            together = existing_together(r, windows)
            for window in windows:
                wanted = Parts.single(*(p for p in model if window[0] == "v" and window[1] <= p <= window[2]))
                assert existing(r, *window) == wanted
                assert together[window] == wanted


@settings(max_examples=60)
@given(PAINTS)
def test_due_ranges_are_a_dictionary_of_parts(actions: list[tuple[str, Parts, object]]) -> None:
    _check_paint(_MEMORY, actions)


@settings(max_examples=60)
@given(HAVES)
def test_runs_are_a_set_of_parts(actions: list[tuple[bool, Parts]]) -> None:
    _check_have(_MEMORY, actions)


def test_the_same_on_every_database(ledger: Ledger) -> None:
    @settings(max_examples=15)
    @given(PAINTS, HAVES)
    def check(paints: list[tuple[str, Parts, object]], haves: list[tuple[bool, Parts]]) -> None:
        _check_paint(ledger, paints)
        _check_have(ledger, haves)

    check()


_MEMORY = in_memory()
