"""Optional inputs: what lies before their start reads nothing, everything else is waited for as usual."""

from __future__ import annotations

from dataclasses import replace

from partwise.ledger.catalog import settled
from partwise.ledger.write.commit import Entry
from partwise.parts import Parts, Reference
from partwise.tables import Input
from tests.simulation.checks import check_end
from tests.simulation.history import History
from tests.simulation.test_counter_examples import BEFORE, SAME, due, ends_well, ingest, step, view, world

WINDOW = Reference.window(-3, 0)


def start(history: History, name: str) -> int | None:
    with history.ledger.database.reading() as r:
        return settled(r, name).start


def test_a_partial_window_begins_with_the_first_part() -> None:
    history = world(view("w", ("s", WINDOW), optional=("s",)), view("f", ("s", WINDOW)), parts=6)
    assert list(due(history, "w")) == [0, 1, 2, 3, 4, 5]
    assert list(due(history, "f")) == [3, 4, 5]
    ends_well(history)
    assert (start(history, "s"), start(history, "w")) == (0, 0)


def test_an_earlier_part_of_a_source_feeds_the_windows_that_reach_it() -> None:
    history = world(view("w", ("s", WINDOW), optional=("s",)), parts=6)
    history.settle()
    history.landing["s"][-1] = 2
    ingest(history)
    assert start(history, "s") == -1
    assert list(due(history, "w")) == [0, 1, 2]  # its own start is settled: part -1 is not built
    ends_well(history)


def test_a_hole_behind_an_earlier_part_is_waited_for() -> None:
    history = world(view("w", ("s", WINDOW), optional=("s",)), parts=3)
    history.settle()
    history.landing["s"][-3] = 2
    ingest(history)
    assert not due(history, "w")
    [blocked] = history.ledger.plan(history.now).blocked
    assert blocked.parts == (0, 0)
    assert [(w.table, w.parts, w.state) for w in blocked.waits_for] == [("s", (-2, -1), "missing")]
    history.landing["s"] |= {-2: 1, -1: 1}
    ingest(history)
    ends_well(history)


def test_a_missing_part_after_retention_is_not_taken_for_one_before_the_start() -> None:
    """After parts below 4 have gone, the first existing part says nothing about where the table began."""
    history = world(view("w", ("s", WINDOW), ("u", SAME), optional=("s",)), parts=0)
    history.landing = {"s": {0: 1, 1: 1, 2: 1, 3: 1, 6: 1, 7: 1}, "u": dict.fromkeys(range(8), 1)}
    ingest(history)
    history.calm()
    held = history.ledger.take("s", "retain", 20.0, history.now)
    own = history.ledger.current("s")
    entry = Entry("s", own.generation, "", None, floor=4)
    version = history.storage.commit("s", own.generation, own.version, {}, entry, gone=4)
    history.ledger.commit(held, entry, version, history.now)
    assert not due(history, "w")  # 7 reads 4 to 7, of which 4 and 5 have not come yet
    history.landing["s"] |= {4: 1, 5: 1}
    ingest(history)
    assert list(due(history, "w")) == [7]


def test_a_view_that_has_not_begun_is_waited_for() -> None:
    history = world(view("a", ("s", SAME)), view("w", ("a", WINDOW), ("s", SAME), optional=("a",)), parts=4)
    assert not due(history, "w")
    history.finish(step(history, "a", 2))
    assert start(history, "a") == 0  # settled by its first step, though part 0 is still to come
    assert not due(history, "w")
    history.finish(step(history, "a", 0))
    assert list(due(history, "w")) == [0]
    ends_well(history)


def test_what_update_reads_may_lie_before_the_start_altogether() -> None:
    """A rolling sum subtracts parts that left; in the beginning none has."""
    rolling = view("r", ("r", BEFORE), ("a", SAME), ("a", Reference.same(-4)), optional=("a",))
    rolling = replace(rolling, initial=(Input("a", WINDOW),))
    history = world(view("a", ("s", SAME)), rolling, parts=6)
    history.settle()
    assert start(history, "r") == 0
    check_end(history)
    assert not history.problems


def test_readers_follow_when_a_table_begins_whose_parts_they_do_not_read_yet() -> None:
    history = world(view("w", ("s", SAME), ("u", Reference.window(-6, -4)), optional=("u",)), parts=0)
    history.landing = {"s": dict.fromkeys(range(12), 1), "u": {4: 1}}
    history.finish(history.ingest("s"))
    assert not due(history, "w")
    history.finish(history.ingest("u"))
    assert list(due(history, "w")) == [8]  # 8 reads u[4] and what came before it
    history.landing["u"] |= {5: 1, 6: 1}
    ends_well(history)


def test_an_earlier_start_of_a_view_makes_its_readers_wait_for_the_new_parts() -> None:
    history = world(view("a", ("s", SAME)), view("w", ("a", WINDOW), optional=("a",)), parts=0)
    history.landing["s"] = {3: 1, 4: 1, 5: 1}
    ingest(history)
    history.settle()
    history.landing["s"] |= {1: 2, 2: 2, 6: 1}
    ingest(history)
    history.ledger.move_start("a", 1, history.now)
    history.requested.add(("a", 3))  # what was the first part is always computed again
    assert list(due(history, "a")) == [1, 2, 3, 6]
    assert not due(history, "w")
    ends_well(history)
    assert (start(history, "a"), start(history, "w")) == (1, 3)


def test_an_input_that_is_no_longer_optional_restarts_the_view() -> None:
    history = world(view("w", ("s", WINDOW), optional=("s",)), parts=6)
    history.settle()
    history.model = history.model.with_view(view("w", ("s", WINDOW)), 1)
    assert history.ledger.define(history.model.graph, history.now).restarted == ("w",)
    assert due(history, "w") == Parts.of((3, 5))
    ends_well(history)
