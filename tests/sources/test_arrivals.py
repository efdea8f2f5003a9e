"""Ages of arrivals as the ledger knows them, against the closing rule itself."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from partwise.ledger.ledger import Ledger
from partwise.ledger.open import in_memory
from partwise.ledger.write.commit import Content, Entry
from partwise.sources.arrivals import arrivals_of
from partwise.sources.closing import MICROS, complete_before
from partwise.sources.expected import Arrivals, StillToCome
from partwise.tables import Graph, Table

SOURCE = Table("s", "source", 60, "f")
#: A load: the clock, and rows as (event time, in seconds).
Load = tuple[float, Sequence[float]]


def delivered(table: Table, deliveries: Sequence[tuple[float, dict[int, int]]]) -> Ledger:
    """A ledger after deliveries of so many rows for each part, at these clocks."""
    ledger = in_memory()
    ledger.define(Graph.of([table]), 0.0)
    for clock, rows in deliveries:
        held = ledger.take(table.name, "ingest", 60, clock)
        at = ledger.current(table.name)
        contents = {p: Content(n, f"{clock}:{n}") for p, n in rows.items()}
        entry = Entry(table.name, at.generation, table.fingerprint, None, parts=contents, reason="loaded", arrived=rows)
        ledger.commit(held, entry, 0 if at.version is None else at.version + 1, clock)
    return ledger


def loaded(loads: Sequence[Load]) -> Ledger:
    return delivered(SOURCE, [(clock, dict(Counter(int(time // 60) for time in times))) for clock, times in loads])


def seen_of(ledger: Ledger) -> Arrivals:
    with ledger.database.reading() as r:
        found = arrivals_of(r, "s", 60)
    assert found is not None
    return found


def late_by_the_rule(loads: Sequence[Load], delay: int) -> int:
    """Rows whose part was closed when they came, by the newest event time before their load."""
    late, newest = 0, None
    for _, times in loads:
        if newest is not None:
            closed = complete_before(int(newest * MICROS), delay, 60)
            late += sum(int(time // 60) < closed for time in times)
        newest = max(times, default=newest) if newest is None else max([newest, *times])
    return late


def live(seed: int) -> list[Load]:
    """A load a minute with the rows of the last one, some of them late by up to an hour."""
    rng = random.Random(seed)
    waiting: list[tuple[float, float]] = []
    loads: list[Load] = []
    for minute in range(1, 240):
        now = 60.0 * minute + rng.uniform(0, 20)
        for _ in range(5):
            event = 60 * minute - rng.uniform(0, 60)
            waiting.append((event + (rng.expovariate(1 / 600) if rng.random() < 0.2 else rng.uniform(0, 5)), event))
        arrived = [event for at, event in waiting if at <= now]
        waiting = [(at, event) for at, event in waiting if at > now]
        loads.append((now, arrived))
    return [(now, times) for now, times in loads if times]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("delay", [0, 60, 300, 900])
def test_no_row_is_late_that_the_ages_call_on_time(seed: int, delay: int) -> None:
    """Event time is known to the part, or to the clock within it: so the ages are upper bounds, and close ones."""
    loads = live(seed)
    found = sum(each.rows for each in seen_of(loaded(loads)).behind if each.age > delay)
    true = late_by_the_rule(loads, delay)
    assert true <= found <= true + 0.03 * sum(len(times) for _, times in loads)


def test_history_that_is_loaded_in_order_is_not_late_however_old_it_is() -> None:
    loads = [(1e9 + n, [3600.0 * n + 60 * m for m in range(60)]) for n in range(10)]
    seen = seen_of(loaded(loads))
    assert seen.behind == ()
    assert StillToCome(seen).usual == 1


def test_the_first_load_is_no_observation() -> None:
    """A day at once, and then a row for its first minute: that is one delivery in what was watched, not in a day."""
    loads: list[Load] = [(86400.0, [60.0 * m for m in range(1440)]), (86460.0, [86410.0]), (86520.0, [86470.0, 30.0])]
    seen = seen_of(loaded(loads))
    assert [each.age for each in seen.behind] == [pytest.approx(86460 - 60)]
    assert seen.parts_at(seen.behind[0].age) <= 3
    assert StillToCome(seen).deliveries(3600) >= 1 / 3


def test_the_clock_says_where_within_a_part_event_time_stands() -> None:
    """Long parts: an hour after the end of a day is an hour, not a day."""
    day = Table("s", "source", 86400, "f")
    ledger = delivered(day, [(86000.0, {0: 5}), (90000.0, {1: 5}), (93600.0, {0: 1, 1: 5})])
    with ledger.database.reading() as r:
        found = arrivals_of(r, "s", 86400)
    assert found is not None
    assert [(each.age, each.rows) for each in found.behind] == [(3600.0, 1)]


def test_of_a_source_without_arrivals_nothing_is_known() -> None:
    ledger = in_memory()
    ledger.define(Graph.of([SOURCE]), 0.0)
    with ledger.database.reading() as r:
        assert arrivals_of(r, "s", 60) is None
