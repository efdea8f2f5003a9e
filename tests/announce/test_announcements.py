"""What is told, what is not told twice, and that nothing gets lost: on a real ledger, with a scheduler that loses things."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from partwise.announce.decide import GRACE, LONGEST_GRACE
from partwise.ledger.ledger import Ledger
from partwise.ledger.open import in_memory
from partwise.ledger.records.announcements import announce, begin, concerned, ends_quietly, forget, told
from partwise.ledger.write.commit import Content, Entry
from partwise.ledger.write.define import request
from partwise.parts import Parts, Reference
from partwise.plan.refresh import Refresh
from partwise.tables import Graph, Input, Table

SAME = (Input("s", Reference.same()),)
FROM_HELPER = (Input("v__helper", Reference.same()),)
FROM_V = (Input("v", Reference.same()),)
GRAPH = Graph.of(
    [
        Table("s", "source", 60, "s1"),
        Table("v__helper", "view", 60, "h1", SAME, SAME, helper_of="v"),
        Table("v", "view", 60, "v1", FROM_HELPER, FROM_HELPER),
        Table("w", "view", 60, "w1", FROM_V, FROM_V),
    ]
)
#: The same, and another view that reads the same helper.
FROM_SHARED = (Input("s__shared", Reference.same()),)
SHARED = Graph.of(
    [
        Table("s", "source", 60, "s1"),
        Table("s__shared", "view", 60, "h1", SAME, SAME, helper_of="v", also=("x",)),
        Table("v", "view", 60, "v1", FROM_SHARED, FROM_SHARED),
        Table("w", "view", 60, "w1", FROM_V, FROM_V),
        Table("x", "view", 60, "x1", FROM_SHARED, FROM_SHARED),
    ]
)
T = 1_000.0
KEY = "1970-01-01T00:00"


def arrive(ledger: Ledger, part: int, digest: str, now: float = T) -> None:
    held = ledger.take("s", "ingest", 60, now)
    ledger.commit(held, Entry("s", 0, "s1", None, parts={part: Content(1, digest)}), None, now)


def build(ledger: Ledger, table: str, now: float = T) -> bool:
    held = ledger.take(table, "step", 60, now)
    pin = ledger.pin(held, now)
    if pin is None:
        ledger.release(held, now)
        return False
    ledger.commit(held, pin.entry({j: Content(1, f"{pin.seq}:{j}") for j in pin.walk()}), None, now)
    return True


@pytest.fixture
def ledger() -> Ledger:
    found = in_memory()
    found.define(GRAPH, T)
    arrive(found, 0, "a")
    return found


def start(ledger: Ledger, view: str, run: str, now: float = T) -> None:
    with ledger.database.writing(now) as w:
        begin(w, view, run)


def test_a_helper_is_announced_as_its_view_with_the_reason(ledger: Ledger) -> None:
    assert announce(ledger, T) == {"v": {KEY: "s[1970-01-01T00:00] arrived"}}


def test_a_shared_helper_is_announced_as_every_view_that_reads_it() -> None:
    """A view whose DAG is paused must not keep the others waiting."""
    ledger = in_memory()
    ledger.define(SHARED, T)
    arrive(ledger, 0, "a")
    assert announce(ledger, T) == {view: {KEY: "s[1970-01-01T00:00] arrived"} for view in "vx"}
    start(ledger, "v", "r1")
    build(ledger, "s__shared")
    build(ledger, "v")
    told_at_the_end = announce(ledger, T, only=concerned(SHARED, "v"), ended=("v", "r1"))
    assert list(told_at_the_end) == ["w"], "the run of x is on its way"
    start(ledger, "x", "r2")
    build(ledger, "x")
    assert ends_quietly(ledger, T, "x", "r2")
    assert concerned(SHARED, "v") == {"v", "w", "x"}, "what reads the helper may be ready after its run"


def test_a_run_says_which_version_of_a_forward_dimension_its_parts_read() -> None:
    ledger, rates = in_memory(), Table("rates", "dimension", 1, "r1", forward=True)
    read = (*SAME, Input("rates", None))
    dated = Table("w__dated", "view", 60, "d1", read, read, helper_of="w")
    from_dated = (Input("w__dated", Reference.same()),)
    tables = [Table("s", "source", 60, "s1"), rates, Table("v", "view", 60, "v1", read, read)]
    ledger.define(Graph.of([*tables, dated, Table("w", "view", 60, "w1", from_dated, from_dated)]), T)
    for number, digest in enumerate(("one", "two", "three")):
        held = ledger.take("rates", "ingest", 60, T)
        ledger.commit(held, Entry("rates", 0, "r1", None, parts={0: Content(1, digest)}), None, T)
        if number == 1:
            arrive(ledger, 0, "a")
    reason = "s[1970-01-01T00:00] arrived; rates: version 2 of 3, current when s[1970-01-01T00:00] came to exist"
    assert announce(ledger, T) == {"v": {KEY: reason}, "w": {KEY: reason}}


def test_nothing_is_told_twice_before_a_run_begins(ledger: Ledger) -> None:
    assert announce(ledger, T)
    arrive(ledger, 1, "b")
    assert announce(ledger, T + 1) == {}, "the run that is about to begin computes part 1 as well"


def test_what_becomes_due_lengtha_run_works_is_told(ledger: Ledger) -> None:
    announce(ledger, T)
    start(ledger, "v", "r1")
    assert announce(ledger, T) == {}, "that is what the run is working on"
    arrive(ledger, 7, "b")
    assert list(announce(ledger, T)["v"]) == ["1970-01-01T00:07"]


def test_the_end_of_a_run_tells_what_is_left_and_what_follows(ledger: Ledger) -> None:
    announce(ledger, T)
    start(ledger, "v", "r1")
    build(ledger, "v__helper")
    build(ledger, "v")
    assert announce(ledger, T, only={"v", "w"}, ended=("v", "r1")) == {"w": {KEY: "v[1970-01-01T00:00] built"}}
    with ledger.database.reading() as r:
        assert set(told(r)) == {"w"}


def test_a_run_with_nothing_to_tell_ends_by_itself_and_one_with_something_does_not(ledger: Ledger) -> None:
    announce(ledger, T)
    start(ledger, "v", "r1")
    build(ledger, "v__helper")
    build(ledger, "v")
    assert not ends_quietly(ledger, T, "v", "r1"), "w follows"
    with ledger.database.reading() as r:
        assert told(r)["v"].run == "r1", "the task that tells ends the run"
    announce(ledger, T, only={"v", "w"}, ended=("v", "r1"))
    start(ledger, "w", "r2")
    arrive(ledger, 1, "b")
    build(ledger, "w")
    assert ends_quietly(ledger, T, "w", "r2"), "nothing reads w, and what arrived is not for it"
    with ledger.database.reading() as r:
        assert "w" not in told(r)
    assert not ends_quietly(ledger, T, "v", "r3"), "something is left of v itself"


def test_a_run_that_leaves_something_tells_of_it_at_its_end(ledger: Ledger) -> None:
    announce(ledger, T)
    start(ledger, "v", "r1")
    build(ledger, "v__helper")
    assert announce(ledger, T) == {}
    assert set(announce(ledger, T, only={"v", "w"}, ended=("v", "r1"))) == {"v"}


def test_the_end_of_one_run_leaves_alone_what_is_told_for_the_next(ledger: Ledger) -> None:
    announce(ledger, T)
    start(ledger, "v", "r1")
    build(ledger, "v__helper")
    build(ledger, "v")
    arrive(ledger, 1, "b")
    assert "v" in announce(ledger, T)
    assert "v" not in announce(ledger, T, ended=("v", "r1")), "a run for part 1 is on its way"


def test_what_the_run_is_about_to_do_is_no_news(ledger: Ledger) -> None:
    announce(ledger, T)
    start(ledger, "v", "r1")
    build(ledger, "v__helper")
    arrive(ledger, 7, "b")
    assert announce(ledger, T)["v"] == {"1970-01-01T00:07": "s[1970-01-01T00:07] arrived"}


def test_late_rows_are_the_reason(ledger: Ledger) -> None:
    announce(ledger, T)
    start(ledger, "v", "r1")
    build(ledger, "v__helper")
    build(ledger, "v")
    announce(ledger, T, ended=("v", "r1"))
    arrive(ledger, 0, "corrected")
    assert announce(ledger, T)["v"] == {KEY: "late rows in s[1970-01-01T00:00]"}


def test_the_reconciler_waits_for_the_event_and_for_runs(ledger: Ledger) -> None:
    assert announce(ledger, T)
    quiet: dict[str, bool] = {}
    assert announce(ledger, T + GRACE - 1, live=quiet) == {}
    assert announce(ledger, T + GRACE + 1, live={"v": True}) == {}
    assert "v" in announce(ledger, T + GRACE + 1, live=quiet)
    assert announce(ledger, T + GRACE + 10, live=quiet) == {}


def test_what_a_refresh_policy_releases_by_time_is_announced() -> None:
    """The reconciler plans with the clock of now; what a run leaves behind for the policy is announced when it ends."""
    policy, length = Refresh(every=600.0), 600.0
    ledger = in_memory()
    ledger.define(Graph.of([GRAPH["s"], replace(GRAPH["w"], inputs=SAME, initial=SAME, refresh=policy)]), T)
    arrive(ledger, 0, "a")
    assert set(announce(ledger, T)) == {"w"}, "the first change after a quiet time goes at once"
    start(ledger, "w", "r1")
    assert build(ledger, "w")
    assert announce(ledger, T, ended=("w", "r1")) == {}
    arrive(ledger, 1, "b", T + 10)
    assert announce(ledger, T + 10) == {}
    assert announce(ledger, T + length - 60, live={}) == {}
    assert announce(ledger, T + length, live={}) == {
        "w": {"1970-01-01T00:01": "s[1970-01-01T00:01] arrived; refresh: every 10 minutes"}
    }
    start(ledger, "w", "r2", T + length)
    assert build(ledger, "w", T + length)
    arrive(ledger, 2, "c", T + length + 1)  # while the run works; the policy fires while it still does
    late = T + 2 * length
    assert announce(ledger, late, live={"w": True}) == {}
    assert set(announce(ledger, late, ended=("w", "r2"))) == {"w"}


def test_told_in_vain_is_told_less_and_less_often(ledger: Ledger) -> None:
    now, when = T, []
    announce(ledger, now)
    while now < T + 3600:
        now += 60
        if announce(ledger, now, live={}):
            when.append(now)
    gaps = [b - a for a, b in pairwise(when)]
    assert gaps == sorted(gaps)
    assert max(gaps) <= LONGEST_GRACE + 60
    assert len(when) < 16


def test_a_run_that_dies_is_replaced(ledger: Ledger) -> None:
    announce(ledger, T)
    start(ledger, "v", "r1", T + 1)
    assert announce(ledger, T + 30, live={"v": True}) == {}
    assert "v" in announce(ledger, T + GRACE + 10, live={})


def test_a_run_with_nothing_to_do_makes_room_for_the_next(ledger: Ledger) -> None:
    announce(ledger, T)
    build(ledger, "v__helper")
    build(ledger, "v")
    with ledger.database.writing(T) as w:
        forget(w, "v", None)
    arrive(ledger, 1, "b")
    assert "v" in announce(ledger, T)


def test_what_is_repaired_by_hand_is_announced_once_it_is_asked_for() -> None:
    ledger = in_memory()
    graph = Graph.of([GRAPH["s"], Table("v", "view", 60, "v1", SAME, SAME, repair="manual")])
    ledger.define(graph, T)
    arrive(ledger, 0, "a")
    assert "v" in announce(ledger, T), "its first content is not a repair"
    start(ledger, "v", "r1")
    build(ledger, "v")
    announce(ledger, T, ended=("v", "r1"))
    arrive(ledger, 0, "corrected")
    assert announce(ledger, T + 1) == {}
    assert announce(ledger, T + 1000, live={}) == {}, "nor does the reconciler"
    with ledger.database.writing(T + 1000) as w:
        request(w, graph, "v", Parts.single(0))
    assert announce(ledger, T + 1000) == {"v": {KEY: "requested"}}


def test_views_that_cannot_be_used_are_not_told_of(ledger: Ledger) -> None:
    assert announce(ledger, T, only={"w"}) == {}


@dataclass
class Scheduler:
    """Airflow as it can be: events and runs may be lost at any moment."""

    ledger: Ledger
    chance: random.Random
    losses: float
    queued: list[tuple[str, str]] = field(default_factory=list)
    count: int = 0
    most: int = 0

    def emit(self, keys: object) -> None:
        for view, of_view in dict(keys).items():  # type: ignore[call-overload]
            for _ in of_view:
                if self.chance.random() >= self.losses:
                    self.count += 1
                    self.queued.append((view, f"run{self.count}"))
        for view in ("v", "w", "x"):
            self.most = max(self.most, sum(name == view for name, _ in self.queued))

    def run_one(self, now: float) -> None:
        if not self.queued:
            return
        view, run = self.queued.pop(0)
        graph = self.ledger.graph()
        tables = [name for name in graph.order if view in graph[name].for_views]
        if self.chance.random() < self.losses:
            return  # died before it began
        start(self.ledger, view, run, now)
        for table in tables:
            if self.chance.random() < self.losses:
                return
            build(self.ledger, table, now)
        if self.chance.random() >= self.losses:
            self.emit(announce(self.ledger, now, only=concerned(self.ledger.graph(), view), ended=(view, run)))

    def reconcile(self, now: float) -> None:
        live = {view: True for view, _ in self.queued}
        self.emit(announce(self.ledger, now, live=live))


@pytest.mark.parametrize("graph", [GRAPH, SHARED], ids=["own", "shared"])
@pytest.mark.parametrize("seed", range(10))
def test_whatever_gets_lost_everything_is_computed_in_the_end_without_a_pile_of_runs(seed: int, graph: Graph) -> None:
    chance = random.Random(seed)
    ledger = in_memory()
    ledger.define(graph, T)
    world = Scheduler(ledger, chance, losses=chance.choice([0.0, 0.2, 0.5]))
    now = T
    for moment in range(40):
        now += chance.choice([0.5, 5, 30])
        for _ in range(chance.choice([0, 1, 3])):
            arrive(ledger, chance.randrange(12), str(moment), now)
            world.emit(announce(ledger, now, only={"v", "w", "x"}))
        if chance.random() < 0.5:
            world.run_one(now)
        if moment % 10 == 9:
            world.reconcile(now)
    assert world.most <= 6, "slow runs must not pile up"
    world.losses = 0.0
    for _ in range(12):
        now += 60
        world.reconcile(now)
        while world.queued:
            world.run_one(now)
    assert ledger.plan(now).steps == ()
    assert announce(ledger, now, live={}) == {}


def test_a_thousand_missing_parts_are_at_most_three_runs_even_with_holes(ledger: Ledger) -> None:
    def catch_up(parts: range) -> list[str]:
        held = ledger.take("s", "ingest", 60, T)
        entry = Entry("s", 0, "s1", None, parts={p: Content(1, f"{p}") for p in parts})
        ledger.commit(held, entry, None, T)
        keys = list(announce(ledger, T)["v"])
        start(ledger, "v", f"r{parts.start}")
        return keys

    assert catch_up(range(1000)) == ["1970-01-01T00:00..1970-01-01T16:39"]
    assert len(catch_up(range(2000, 4000, 2))) <= 3
