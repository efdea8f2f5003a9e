"""Histories that break the obvious shortcuts, one by one. Each was found by simulation before it was written down.

`s` and `u` are sources, `a` reads `s`, `v` reads `s` and `a` (or as each test says).
c1 and c2 need really concurrent transactions: see tests/ledger.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from partwise.ledger.catalog import settled
from partwise.ledger.open import in_memory
from partwise.ledger.read.pin import DefinitionChanged
from partwise.ledger.write.leases import Fenced
from partwise.parts import Parts, Reference
from partwise.tables import Graph, Input, Start, Table
from tests.simulation.checks import check_due, check_end
from tests.simulation.history import LEASE, History, Runner
from tests.simulation.world import Model

SAME, BEFORE = Reference.same(), Reference.same(-1)


def view(name: str, *inputs: tuple[str, Reference], **options: object) -> Table:
    read = tuple(Input(*pair) for pair in inputs)
    initial = tuple(i for i in read if i.table != name)
    return Table(name, "view", 60, "", read, initial, **options)  # type: ignore[arg-type]


def world(*views: Table, parts: int = 2, salts: dict[str, int] | None = None) -> History:
    """A history with `parts` parts of the sources s and u in the ledger, and everything else still to do."""
    model = Model(Graph.of([Table("s", "source", 60, "s"), Table("u", "source", 60, "u")]), {})
    for n, table in enumerate(views):
        model = model.with_view(table, (salts or {}).get(table.name, n + 1))
    history = History(Random(1), model, in_memory(), models=[model])
    history.landing = {"s": dict.fromkeys(range(parts), 1), "u": dict.fromkeys(range(parts), 1)}
    history.ledger.define(model.graph, history.now)
    ingest(history)
    return history


def ingest(history: History) -> None:
    for name in ("s", "u"):
        history.finish(history.ingest(name))


def change(history: History, part: int, name: str = "s") -> None:
    history.landing[name][part] = (history.landing[name][part] or 0) + 1
    history.finish(history.ingest(name))


def upto(runner: Runner, point: str) -> Runner:
    while next(runner) != point:
        pass
    return runner


def step(history: History, name: str, *parts: int) -> Runner:
    return history.step(name, Parts.single(*parts) if parts else None, history.model)


def due(history: History, name: str) -> Parts:
    check_due(history)
    return Parts.of(*(s.parts for s in history.ledger.plan(history.now).steps if s.table == name))


def ends_well(history: History) -> None:
    history.settle()
    check_end(history)
    assert not history.problems


def test_c3_an_orphan_is_adopted_before_the_pin() -> None:
    history = world(view("a", ("s", SAME)))
    upto(step(history, "a"), "committed")  # and dies
    history.now += LEASE + 1
    computed = history.computations
    history.finish(step(history, "a", 1))
    assert history.computations == computed
    assert len(history.storage["a", 0].versions) == 1
    ends_well(history)


def test_c4_two_events_for_one_part_compute_it_once() -> None:
    history = world(view("a", ("s", SAME)))
    for _ in range(2):
        history.finish(step(history, "a", 0))
    assert history.computations == 1


def test_c5_a_change_between_pin_and_commit_is_not_lost() -> None:
    history = world(view("a", ("s", SAME)))
    runner = upto(step(history, "a"), "pinned")
    change(history, 0)
    history.finish(runner)
    assert list(due(history, "a")) == [0]
    ends_well(history)


def test_c5_own_output_makes_nothing_stale() -> None:
    history = world(view("a", ("s", SAME), ("a", BEFORE)), parts=4)
    history.finish(step(history, "a"))
    assert not due(history, "a")
    assert history.computations == 4


def test_c5_an_orphan_is_as_old_as_its_pin() -> None:
    history = world(view("a", ("s", SAME)))
    upto(step(history, "a"), "committed")  # and dies
    change(history, 0)
    history.now += LEASE + 1
    history.finish(step(history, "a", 7))
    assert list(due(history, "a")) == [0]
    ends_well(history)


def test_c6_of_two_writers_one_commits() -> None:
    history = world(view("a", ("s", SAME)))
    first = upto(step(history, "a"), "pinned")
    history.now += LEASE + 1
    second = upto(step(history, "a"), "pinned")
    upto(first, "committed")
    history.finish(first)  # refused by the ledger: it lost its lease
    history.finish(second)  # refused by the data: another commit took the version
    assert len(history.storage["a", 0].versions) == 1
    assert list(due(history, "a")) == [0, 1]
    history.now += LEASE + 1
    history.finish(step(history, "a", 0))  # adopts what the first one wrote
    assert not due(history, "a")
    ends_well(history)


def test_c6_a_lost_lease_is_refused_also_for_an_unchanged_result() -> None:
    history = world(view("a", ("s", SAME)))
    held = history.ledger.take("a", "first", LEASE, history.now)
    at_pin = history.ledger.pin(held, history.now)
    assert at_pin is not None
    history.now += LEASE + 1
    history.ledger.take("a", "second", LEASE, history.now)
    with pytest.raises(Fenced):
        history.ledger.commit(held, at_pin.entry({}), None, history.now)


def test_a_zombie_that_no_commit_stood_against_is_looked_at_again() -> None:
    """An unchanged step makes no commit, so a zombie's older result can still be committed after it."""
    history = world(view("a", ("s", SAME)), parts=1)
    history.finish(step(history, "a"))
    change(history, 0)
    zombie = upto(step(history, "a"), "pinned")
    history.landing["s"][0] = 1  # back to what `a` was computed from
    ingest(history)
    history.now += LEASE + 1
    history.finish(step(history, "a"))
    assert not due(history, "a")
    upto(zombie, "committed")
    history.now += LEASE + 1
    history.finish(step(history, "a", 0))  # adopts the zombie's commit: it is older than what was known
    ends_well(history)


def test_c7_a_definition_that_changes_before_the_ledger_commit_is_not_the_one_recorded() -> None:
    history = world(view("a", ("s", SAME)))
    runner = upto(step(history, "a"), "committed")
    history.model = history.model.with_view(history.model.graph["a"], 99)
    history.ledger.define(history.model.graph, history.now)
    history.finish(runner)
    assert list(due(history, "a")) == [0, 1]
    ends_well(history)


def test_c8_a_worker_with_old_files_computes_nothing() -> None:
    history = world(view("a", ("s", SAME)))
    old = history.model
    history.model = old.with_view(old.graph["a"], 99)
    history.ledger.define(history.model.graph, history.now)
    held = history.ledger.take("a", "old worker", LEASE, history.now)
    with pytest.raises(DefinitionChanged):
        history.ledger.pin(held, history.now, fingerprint=old.graph["a"].fingerprint)
    assert history.computations == 0


def repair_deepest_first(history: History) -> int:
    """Computations until nothing is due, always taking the ready view that lies furthest downstream."""
    before = history.computations
    while steps := history.ledger.plan(history.now).steps:
        last = max(steps, key=lambda found: history.model.graph.rank[found.table])
        history.finish(step(history, last.table))
    return history.computations - before


def test_c9_long_and_short_ways_compute_each_view_once() -> None:
    """v0 reads s; every later view reads the one before it, and s directly."""
    views = [view("v0", ("s", SAME))]
    views += [view(f"v{n}", (f"v{n - 1}", SAME), ("s", SAME)) for n in range(1, 10)]
    history = world(*views, parts=1)
    repair_deepest_first(history)
    for _ in range(5):
        change(history, 0)
        assert repair_deepest_first(history) <= 10
    ends_well(history)


def test_c9_nested_diamonds_compute_each_view_once() -> None:
    """Six diamonds on top of each other, eighteen views: each is looked at once, not 2^6 times."""
    views, top = [], "s"
    for n in range(6):
        left, right, bottom = f"l{n}", f"r{n}", f"b{n}"
        views += [view(left, (top, SAME)), view(right, (top, SAME)), view(bottom, (left, SAME), (right, SAME))]
        top = bottom
    history = world(*views, parts=1)
    assert repair_deepest_first(history) == 18
    for _ in range(5):
        change(history, 0)
        assert repair_deepest_first(history) <= 18
    ends_well(history)


def test_c10_versions_enter_the_ledger_in_order_whoever_writes() -> None:
    history = world(view("a", ("s", SAME)), parts=6)
    history.finish(step(history, "a", 0, 1, 2, 3))
    upto(step(history, "a"), "committed")  # version 1, and dies
    history.now += LEASE + 1
    history.finish(history.retain("a"))  # adopts version 1 before it registers its own
    current = history.ledger.current("a")
    assert current.version == len(history.storage["a", 0].versions) - 1
    check_end(history)
    assert not history.problems


@pytest.mark.parametrize("patience", [None, 30.0])
def test_c11_patience_ends_waiting_for_an_input_that_never_rests(patience: float | None) -> None:
    history = world(view("a", ("s", SAME)), view("v", ("a", SAME), ("u", SAME), patience=patience), parts=1)
    history.finish(step(history, "a"))
    history.finish(step(history, "v"))
    change(history, 0, "u")
    ready_after = None
    for n in range(50):
        change(history, 0)
        runner = upto(step(history, "a"), "pinned")
        change(history, 0)
        history.finish(runner)
        history.now += 1
        if due(history, "v"):
            ready_after = n
            break
    assert (ready_after is not None) == (patience is not None)


# What a definition change does to parts that exist.


def test_another_query_makes_exactly_its_parts_stale() -> None:
    history = world(view("a", ("s", SAME)), view("v", ("a", SAME)), view("w", ("u", SAME)), parts=3)
    history.settle()
    history.model = history.model.with_view(history.model.graph["a"], 99)
    changes = history.ledger.define(history.model.graph, history.now)
    assert (changes.changed, changes.restarted) == (("a",), ())
    steps = history.ledger.plan(history.now).steps
    assert [(found.table, found.kind, found.reason) for found in steps] == [("a", "stale", "definition changed")]
    ends_well(history)


def test_references_that_old_parts_can_satisfy_keep_the_table() -> None:
    history = world(view("a", ("s", SAME)), view("v", ("a", SAME)), parts=3)
    history.settle()
    history.model = history.model.with_view(view("a", ("s", SAME), ("u", SAME)), 1)
    assert history.ledger.define(history.model.graph, history.now).changed == ("a",)
    ends_well(history)


def test_references_that_old_parts_cannot_satisfy_restart_it_and_its_readers() -> None:
    history = world(view("a", ("s", SAME)), view("v", ("a", SAME)), view("w", ("u", SAME)), parts=4)
    history.settle()
    history.model = history.model.with_view(view("a", ("s", Reference.window(-2, 0))), 1)
    assert history.ledger.define(history.model.graph, history.now).restarted == ("a", "v")
    ends_well(history)
    with history.ledger.database.reading() as r:
        assert [settled(r, name).start for name in "avw"] == [2, 2, 0]


def test_another_part_length_restarts() -> None:
    history = world(view("a", ("s", SAME)), parts=4)
    history.settle()
    hourly = replace(view("a"), length=120, inputs=(Input("s", Reference.window(0, 0)),))
    two = Reference(replace(SAME.lo, times=2), replace(SAME.hi, times=2, plus=1))
    hourly = replace(hourly, inputs=(Input("s", two),), initial=(Input("s", two),))
    history.model = history.model.with_view(hourly, 1)
    assert history.ledger.define(history.model.graph, history.now).restarted == ("a",)
    ends_well(history)
    stored = history.storage["a", 1]
    assert sorted(stored.at(stored.version)) == [0, 1]


# Where a view starts.


def test_earliest_is_settled_when_the_first_part_is_built() -> None:
    history = world(view("a", ("s", SAME), ("a", Reference.same(-2))), parts=0)
    history.landing["s"] = {5: 1}
    ingest(history)
    history.landing["s"][3] = 1
    ingest(history)
    assert list(due(history, "a")) == [3, 5]
    for part in (3, 5):
        history.finish(step(history, "a", part))
    history.landing["s"][1] = 1
    ingest(history)
    assert not due(history, "a")
    history.ledger.move_start("a", 1, history.now)
    assert list(due(history, "a")) == [1, 3]  # the old first part was INITIALIZE and becomes UPDATE
    ends_well(history)


def test_latest_takes_the_newest_part_that_all_sources_have() -> None:
    """The paper's minimum rule: S up to 394464 and T up to 394462 give 394462."""
    history = world(view("a", ("s", SAME), ("u", SAME), start=Start("latest")), parts=0)
    history.landing = {"s": dict.fromkeys(range(394460, 394465), 1), "u": dict.fromkeys(range(394460, 394463), 1)}
    ingest(history)
    assert list(due(history, "a")) == [394462]


def test_a_given_start_waits_for_its_inputs() -> None:
    history = world(view("a", ("s", SAME), start=Start("at", 3)), parts=3)
    assert not due(history, "a")
    history.landing["s"] |= {3: 1, 4: 1}
    ingest(history)
    assert list(due(history, "a")) == [3, 4]


def test_update_never_reaches_back_before_the_first_part_of_an_input() -> None:
    """INITIALIZE reads one part and UPDATE a window: the first part is where the next one can follow."""
    window = (Input("s", Reference.window(-3, 0)), Input("a", BEFORE))
    history = world(replace(view("a"), inputs=window, initial=(Input("s", SAME),)), parts=6)
    assert list(due(history, "a")) == [2, 3, 4, 5]
    ends_well(history)
