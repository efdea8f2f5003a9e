"""A step's transactions, one behaviour at a time, on both databases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from partwise.ledger.ledger import Ledger
from partwise.ledger.read.pin import DefinitionChanged, Version
from partwise.ledger.read.snapshot import as_defined
from partwise.ledger.runs import clear, due_rows, paint
from partwise.ledger.write.commit import Content, Entry, Gap
from partwise.ledger.write.leases import Busy, Fenced
from partwise.parts import Parts, Range, Reference
from partwise.plan.model import Cause, Plan
from partwise.plan.planner import make_plan
from partwise.tables import Graph, Input, Table

T = 1_000.0
SAME = (Input("s", Reference.same()),)
V = Table("v", "view", 60, "v1", SAME, SAME)
W = Table("w", "view", 60, "w1", (Input("v", Reference.same()),), (Input("v", Reference.same()),))
GRAPH = Graph.of([Table("s", "source", 60, "s1"), V, W])


@pytest.fixture
def chain(ledger: Ledger) -> Ledger:
    """s -> v -> w, with s[0..2] there."""
    ledger.define(GRAPH, T)
    arrive(ledger, {0: "a", 1: "b", 2: "c"})
    return ledger


def arrive(ledger: Ledger, parts: dict[int, str], table: str = "s", version: int | None = None, now: float = T) -> int:
    held = ledger.take(table, "ingest", 60, now)
    contents = {p: Content(1, digest) for p, digest in parts.items()}
    entry = Entry(table, 0, "s1", None, parts=contents, arrived=dict.fromkeys(parts, 1))
    return ledger.commit(held, entry, version, now).seq


def build(ledger: Ledger, table: str, digest: str = "x", version: int | None = None, now: float = T) -> Parts:
    """Compute everything that is ready; returns what changed."""
    held = ledger.take(table, "step", 60, now)
    pin = ledger.pin(held, now)
    if pin is None:
        ledger.release(held, now)
        return Parts()
    return ledger.commit(held, pin.entry({j: Content(1, f"{digest}{j}") for j in pin.walk()}), version, now).changed


def fail(ledger: Ledger, table: str, part: int, kind: str = "check", now: float = T) -> None:
    held = ledger.take(table, "step", 60, now)
    pin = ledger.pin(held, now, Parts.single(part))
    assert pin is not None
    ledger.fail(held, pin, part, kind, "it broke", now)
    ledger.release(held, now)


def steps(plan: Plan) -> dict[str, Parts]:
    found: dict[str, Parts] = {}
    for step in plan.steps:
        found[step.table] = found.get(step.table, Parts()) | Parts.of(step.parts)
    return found


def test_leases(chain: Ledger) -> None:
    held = chain.take("v", "one", 60, T)
    with pytest.raises(Busy, match="v is being written by one"):
        chain.take("v", "two", 60, T + 59)
    chain.renew(held, 60, T + 50)
    with pytest.raises(Busy):
        chain.take("v", "two", 60, T + 100)
    later = chain.take("v", "two", 60, T + 111)
    assert later.fence == held.fence + 1
    for refused in (lambda: chain.renew(held, 60, T), lambda: chain.release(held, T), lambda: chain.pin(held, T)):
        with pytest.raises(Fenced):
            refused()
    chain.release(later, T)
    assert chain.take("v", "three", 60, T).fence == later.fence + 1


def test_leases_together(chain: Ledger) -> None:
    """Those that others have are left out, lost ones are neither renewed nor given back, and one pin is for all."""
    chain.define(Graph.of([*GRAPH.tables.values(), replace(V, name="u", fingerprint="u1")]), T)
    other = chain.take("w", "other", 60, T)
    held = chain.take_free(["w", "v", "u"], "one", 60, T, lambda holder: False)
    assert [lease.table for lease in held] == ["u", "v"]
    pins = chain.pin_each(held, T, None, {"u": "u1", "v": "v1"})
    assert {name: pin.due for name, pin in pins.items()} == {"u": Parts.of((0, 2)), "v": Parts.of((0, 2))}
    assert len({pin.seq for pin in pins.values()}) == 1
    assert chain.pin_each(held, T, {"v": Parts.single(1)}, {"u": "u1", "v": "v1"})["v"].due == Parts.single(1)
    assert not chain.pin_each(held, T, {"v": Parts.single(1)}, {"u": "u1", "v": "another"})
    chain.renew_each(held, 60, T + 50)
    with pytest.raises(Busy):
        chain.take("v", "two", 60, T + 100)
    lost = chain.take("v", "two", 60, T + 111)
    chain.renew_each(held, 60, T + 111)
    chain.release_each(held, T + 112)
    assert chain.take("u", "two", 60, T + 113).holder == "two"
    chain.renew(lost, 60, T + 113)
    assert [lease.table for lease in chain.take_free(["w"], "one", 60, T, lambda holder: holder == "other")] == ["w"]
    with pytest.raises(Fenced):
        chain.release(other, T)


def test_refused_transactions_take_no_sequence(chain: Ledger) -> None:
    held = chain.take("v", "one", 60, T)
    with chain.database.reading() as r:
        before = r.seq
    with pytest.raises(Busy):
        chain.take("v", "two", 60, T)
    with pytest.raises(Fenced):
        chain.commit(replace(held, fence=99), Entry("v", 0, "v1", 0), None, T)
    with chain.database.reading() as r:
        assert r.seq == before


def test_a_change_goes_on_only_where_content_changes(chain: Ledger) -> None:
    assert steps(chain.plan(T)) == {"v": Parts.of((0, 2))}
    assert build(chain, "v") == Parts.of((0, 2))
    assert steps(chain.plan(T)) == {"w": Parts.of((0, 2))}
    build(chain, "w")
    assert chain.plan(T).steps == ()
    arrive(chain, {1: "late"})
    assert steps(chain.plan(T)) == {"v": Parts.single(1)}
    assert build(chain, "v") == Parts()  # the same content again
    assert chain.plan(T).steps == ()
    assert chain.audit() == {}


def test_an_input_that_changes_during_a_step_stays_due(chain: Ledger) -> None:
    held = chain.take("v", "step", 60, T)
    pin = chain.pin(held, T)
    assert pin is not None
    arrive(chain, {1: "late"})
    chain.commit(held, pin.entry({j: Content(1, "x") for j in pin.walk()}), None, T)
    assert steps(chain.plan(T)) == {"v": Parts.single(1), "w": Parts.single(0, 2)}


def test_pins_are_limited_to_what_was_asked_and_is_ready(chain: Ledger) -> None:
    held = chain.take("v", "step", 60, T)
    for asked, limit, due in ((Parts.of((1, 9)), 10, Parts.of((1, 2))), (None, 2, Parts.of((0, 1)))):
        pin = chain.pin(held, T, asked, "v1", limit)
        assert pin is not None
        assert pin.due == due
    assert chain.pin(held, T, Parts.single(7)) is None
    with pytest.raises(DefinitionChanged):
        chain.pin(held, T, None, "an old fingerprint")


def test_a_sparse_self_reference_goes_on_past_a_hole(ledger: Ledger) -> None:
    """s[10] never comes: v[13], v[16], ... wait for it, every other part is built, and so are its readers."""
    inputs = (*SAME, Input("v", Reference.same(-3)))
    ledger.define(Graph.of([Table("s", "source", 60, "s1"), replace(V, inputs=inputs), W]), T)
    there = Parts.of((0, 9)) | Parts.of((11, 799))
    arrive(ledger, dict.fromkeys(there, "a"))
    waiting = Parts.single(*range(13, 800, 3))
    for view in ("v", "w"):
        assert steps(ledger.plan(T)) == {view: there - waiting}
        assert build(ledger, view) == there - waiting
    arrive(ledger, {801: "a", 802: "a"})  # 802 is behind the hole, too
    assert steps(ledger.plan(T)) == {"v": Parts.single(801)}


def test_a_merge_into_another_version_than_the_one_before_is_not_believed(chain: Ledger) -> None:
    """Storage must not let it happen. If it did, nobody would know what the parts hold: they are computed again."""
    build(chain, "v", version=0)
    arrive(chain, {0: "new"})
    held = chain.take("v", "dies", 60, T)
    pin = chain.pin(held, T)
    assert pin is not None
    orphan = replace(Entry.from_json(pin.entry({0: Content(1, "y0")}).to_json()), base=0)
    held = chain.take("v", "next", 60, T + 100)
    chain.adopt(held, [(0, None), (1, orphan)], T + 100)
    assert "v" not in steps(chain.plan(T)), "as version 1 it is right"
    other = Entry.from_json(replace(orphan, base=0).to_json())
    chain.adopt(held, [(2, other)], T + 100)
    assert chain.current("v") == Version(0, 2)
    assert steps(chain.plan(T))["v"] == Parts.single(0)
    again = chain.pin(held, T)
    assert again is not None
    assert again.past == (), "no repair starts from it"
    assert not again.same(0, Content(1, "y0")), "whatever comes out is a change"
    assert chain.audit() == {}


def test_orphans_are_adopted_in_order_once(chain: Ledger) -> None:
    build(chain, "v", version=0)
    arrive(chain, {0: "new", 1: "new"})
    held = chain.take("v", "dies", 60, T)
    pin = chain.pin(held, T)
    assert pin is not None
    orphan = Entry.from_json(pin.entry({0: Content(1, "y0"), 1: Content(1, "y1")}).to_json())
    arrive(chain, {1: "newer"})
    held = chain.take("v", "next", 60, T + 100)
    with pytest.raises(Gap):
        chain.commit(held, orphan, 2, T + 100, keep=True)
    done = chain.adopt(held, [(0, None), (1, orphan), (2, None)], T + 100)
    assert [d.changed for d in done] == [Parts.of((0, 1)), Parts()]
    assert chain.adopt(held, [(1, orphan), (2, None)], T + 100) == []
    assert chain.current("v") == Version(0, 2)
    assert steps(chain.plan(T)) == {"v": Parts.single(1), "w": Parts.of((0, 0)) | Parts.single(2)}
    assert chain.audit() == {}


def test_failures_are_tried_again_a_few_times_then_held(chain: Ledger) -> None:
    fail(chain, "v", 1, "query", T)
    assert steps(chain.plan(T + 4)) == {"v": Parts.single(0, 2)}
    assert chain.plan(T + 4).blocked[0].waits_for[0].state == "failed"
    fail(chain, "v", 1, "query", T + 6)
    assert 1 not in steps(chain.plan(T + 20))["v"]
    fail(chain, "v", 1, "query", T + 40)
    assert 1 not in steps(chain.plan(T + 10**6))["v"]
    arrive(chain, {1: "late"})  # a newer cause is a new chance, with as many tries
    fail(chain, "v", 1, "query", T + 50)
    assert 1 in steps(chain.plan(T + 60))["v"]
    fail(chain, "v", 1, "check", T + 60)  # a check is not tried again by itself
    assert 1 not in steps(chain.plan(T + 10**6))["v"]
    assert chain.request("v", Parts.of((0, 9)), T + 70) == Parts.of((0, 2))
    assert steps(chain.plan(T + 70)) == {"v": Parts.of((0, 2))}


def test_readers_go_on_with_what_a_failed_part_held_before(chain: Ledger) -> None:
    build(chain, "v")
    build(chain, "w")
    arrive(chain, {1: "late", 3: "d"})
    fail(chain, "v", 1)
    fail(chain, "v", 3)
    chain.request("w", Parts.single(1), T)
    plan = chain.plan(T)
    assert [(step.parts, step.reason) for step in plan.steps] == [
        (Range(1, 1), "requested; reads v[1970-01-01T00:01] at an earlier revision")
    ]
    assert {b.parts: [w.state for w in b.waits_for] for b in plan.blocked} == {
        Range(1, 1): ["failed"],
        Range(3, 3): ["failed"],
    }
    assert build(chain, "w", digest="z") == Parts.single(1)  # but nobody reads v[3], which never was
    assert chain.may_expire("s", T) == 1  # v[1] is to be computed again one day
    arrive(chain, {1: "corrected"})  # a new chance, and its readers wait for it again
    chain.request("w", Parts.single(1), T)
    assert steps(chain.plan(T)) == {"v": Parts.single(1)}
    build(chain, "v", digest="y")
    assert steps(chain.plan(T)) == {"w": Parts.single(1)}
    assert chain.audit() == {}


def test_readers_wait_for_a_failed_part_that_is_tried_again(chain: Ledger) -> None:
    build(chain, "v")
    build(chain, "w")
    arrive(chain, {1: "late"})
    fail(chain, "v", 1, "query")
    chain.request("w", Parts.single(1), T)
    assert steps(chain.plan(T + 1)) == {}
    assert steps(chain.plan(T + 10)) == {"v": Parts.single(1)}
    fail(chain, "v", 1, "query", T + 10)
    fail(chain, "v", 1, "query", T + 60)  # for the last time
    assert steps(chain.plan(T + 60)) == {"w": Parts.single(1)}


def test_a_view_of_itself_goes_on_behind_a_failed_part_with_content(ledger: Ledger) -> None:
    inputs = (*SAME, Input("v", Reference.same(-1)))
    ledger.define(Graph.of([Table("s", "source", 60, "s1"), replace(V, inputs=inputs)]), T)
    arrive(ledger, dict.fromkeys(range(5), "a"))
    build(ledger, "v")
    arrive(ledger, {2: "late"})
    fail(ledger, "v", 2)
    arrive(ledger, {5: "a"})
    assert steps(ledger.plan(T)) == {"v": Parts.single(5)}
    assert build(ledger, "v") == Parts.single(5)
    arrive(ledger, {2: "corrected"})
    assert build(ledger, "v", digest="y") == Parts.single(2)
    assert steps(ledger.plan(T)) == {"v": Parts.single(3)}
    assert ledger.audit() == {}


def test_definitions(chain: Ledger) -> None:
    build(chain, "v")
    build(chain, "w")
    with chain.database.reading() as r:
        before = r.seq
    assert not chain.define(GRAPH, T)
    with chain.database.reading() as r:
        assert r.seq == before

    def changed(**what: object) -> Graph:
        return Graph({**GRAPH.tables, "v": replace(V, **what)})  # type: ignore[arg-type]

    assert chain.define(changed(fingerprint="v2"), T).changed == ("v",)
    assert steps(chain.plan(T)) == {"v": Parts.of((0, 2))}
    assert chain.define(GRAPH, T).changed == ("v",)  # a revert counts as a change
    assert steps(chain.plan(T)) == {"v": Parts.of((0, 2))}
    build(chain, "v")
    assert chain.define(changed(patience=5.0), T).settings == ("v",)
    assert chain.plan(T).steps == ()
    assert not chain.define(Graph.of([GRAPH["s"], replace(V, patience=5.0)]), T, broken=["w"])
    assert chain.define(Graph.of([GRAPH["s"], replace(V, patience=5.0)]), T).retired == ("w",)
    assert chain.define(GRAPH, T).changed == ("w",)
    reread = (Input("s", Reference.same(5)),)  # its parts could not be built any more
    found = chain.define(changed(inputs=reread, initial=reread, fingerprint="v3"), T)
    assert found.restarted == ("v", "w")
    assert chain.current("v") == Version(1, None)
    assert chain.audit() == {}


def test_what_would_be_leaves_no_trace(chain: Ledger) -> None:
    build(chain, "v")
    build(chain, "w")
    with chain.database.reading() as r:
        before = r.seq
    other = Graph({**GRAPH.tables, "w": replace(W, fingerprint="w2")})
    with as_defined(chain, other, T) as snapshot:
        assert steps(make_plan(snapshot.graph, snapshot.facts, T)) == {"w": Parts.of((0, 2))}
    assert chain.plan(T).steps == ()
    assert chain.graph()["w"].fingerprint == "w1"
    with chain.database.reading() as r:
        assert r.seq == before


def test_a_definition_that_could_not_be_written_is_forgotten(chain: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sequence is free again, and another process may use it for other definitions."""
    other = Graph({**GRAPH.tables, "w": replace(W, fingerprint="w2")})
    monkeypatch.setattr("partwise.ledger.write.define._begin", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        chain.define(other, T)
    monkeypatch.undo()
    elsewhere = Ledger(chain.database)  # another process, as far as its memory is concerned
    elsewhere.define(Graph({**GRAPH.tables, "w": replace(W, fingerprint="w3")}), T)
    assert chain.graph()["w"].fingerprint == "w3"


def test_a_start_can_only_be_moved_back(chain: Ledger) -> None:
    late = replace(V, start=replace(V.start, rule="latest"))
    chain.define(Graph({**GRAPH.tables, "v": replace(late, fingerprint="v2")}), T)
    assert build(chain, "v") == Parts.single(2)
    with pytest.raises(ValueError, match="v starts at 2"):
        chain.move_start("v", 3, T)
    chain.move_start("v", 0, T)
    assert steps(chain.plan(T))["v"] == Parts.of((0, 2))


def test_repairing_what_is_due_keeps_what_people_asked_for(chain: Ledger) -> None:
    """A due row is lost and one too many is there: only those are set right."""
    chain.define(Graph({**GRAPH.tables, "v": replace(V, start=replace(V.start, rule="latest"), fingerprint="v2")}), T)
    build(chain, "v")
    chain.move_start("v", 1, T)  # v[1] is new, v[2] was the first part
    build(chain, "w")
    arrive(chain, {3: "d", 4: "e"})
    chain.request("v", Parts.single(3), T + 5)
    with chain.database.writing(T + 6) as w:
        clear(w, "v", Parts.of((4, 4)))
        paint(w, "w", Parts.single(0), Cause("input", "v", Range(0, 0)))
    assert chain.audit() == {"v": (Parts.single(4), Parts()), "w": (Parts(), Parts.single(0))}
    assert set(chain.audit(repair=True, now=T + 7)) == {"v", "w"}
    assert chain.audit() == {}
    with chain.database.reading() as r:
        after = due_rows(r, "v")
    causes = {j: row.cause.kind for row in after for j in range(row.lo, row.hi + 1)}
    assert causes == {1: "start", 2: "start", 3: "requested", 4: "input"}
    assert steps(chain.plan(T + 7))["v"] == Parts.of((1, 4))


def test_moments_and_versions(chain: Ledger) -> None:
    first = arrive(chain, {3: "x"}, version=0, now=T + 10)
    second = arrive(chain, {4: "x"}, version=1, now=T + 20)
    assert [chain.sequence_at(T + t) for t in (5, 11, 19, 21)] == [first - 2, first, first, second]
    assert chain.versions_at(first) == {"s": Version(0, 0)}
    assert chain.versions_at(second) == {"s": Version(0, 1)}
    assert chain.versions_at(first - 1) == {}


def test_expired_parts_are_neither_missing_nor_due(chain: Ledger) -> None:
    assert chain.may_expire("s", T) <= 0  # v has not been built
    build(chain, "v")
    build(chain, "w")
    assert chain.may_expire("s", T) == 2
    held = chain.take("s", "retention", 60, T)
    chain.commit(held, Entry("s", 0, "", None, floor=2), None, T)
    assert chain.plan(T).steps == ()
    arrive(chain, {2: "late"})
    assert steps(chain.plan(T)) == {"v": Parts.single(2)}
    assert chain.request("v", Parts.of((0, 2)), T) == Parts.single(2)
    assert chain.audit() == {}


def test_manual_repair_waits_for_people(chain: Ledger) -> None:
    build(chain, "v")
    chain.define(Graph({**GRAPH.tables, "v": replace(V, repair="manual")}), T)
    arrive(chain, {1: "late", 3: "new"})
    plan = chain.plan(T)
    assert steps(plan)["v"] == Parts.single(3)  # new parts are built
    assert [step.parts for step in plan.manual] == [Range(1, 1)]
    chain.request("v", Parts.single(1), T)
    assert steps(chain.plan(T))["v"] == Parts.single(1, 3)


def test_patience_ends(chain: Ledger) -> None:
    build(chain, "v")
    build(chain, "w")
    chain.define(Graph({**GRAPH.tables, "w": replace(W, patience=100.0)}), T)
    arrive(chain, {1: "late"})
    build(chain, "v", digest="y")
    arrive(chain, {1: "later"})  # v[1] is pending again, w[1] is due since T
    assert "w" not in steps(chain.plan(T + 99))
    assert steps(chain.plan(T + 100))["w"] == Parts.single(1)


def pasts(ledger: Ledger, table: str) -> list[tuple[list[int], int | None, list[int]]]:
    """Which due parts may be repaired from what they hold, at which version s was read for them, what changed since."""
    held = ledger.take(table, "step", 60, T)
    pin = ledger.pin(held, T)
    ledger.release(held, T)
    return (
        []
        if pin is None
        else [(list(past.parts), past.inputs["s"].version, list(past.changed["s"])) for past in pin.past]
    )


def test_a_pin_knows_from_what_late_parts_were_computed(ledger: Ledger) -> None:
    ledger.define(GRAPH, T)
    arrive(ledger, {0: "a", 1: "b"}, version=0)
    assert pasts(ledger, "v") == []  # new parts have no past
    build(ledger, "v", version=0)
    arrive(ledger, {0: "A"}, version=1)
    arrive(ledger, {0: "AA", 1: "BB"}, version=2)
    assert pasts(ledger, "v") == [([0, 1], 0, [0, 1])]
    build(ledger, "v", digest="y", version=1)
    arrive(ledger, {1: "BBB"}, version=3)
    assert pasts(ledger, "v") == [([1], 2, [1])]


def test_late_parts_that_were_computed_one_after_the_other_share_a_past(ledger: Ledger) -> None:
    """As they do in a view that follows its source: what is late was late for all of them."""
    window = (Input("s", Reference.window(-9, 0)),)
    ledger.define(Graph.of([Table("s", "source", 60, "s1"), replace(V, inputs=window, initial=window)]), T)
    for p in range(20):
        arrive(ledger, {p: "a"}, version=p)
        build(ledger, "v", version=p)
    arrive(ledger, {10: "late"}, version=20)
    assert pasts(ledger, "v") == [([*range(10, 20)], 19, [10])]
    # One of them is repaired; then another row comes for the same part, and one for an older part.
    held = ledger.take("v", "step", 60, T)
    pin = ledger.pin(held, T, Parts.single(12))
    assert pin is not None
    ledger.commit(held, pin.entry({12: Content(1, "y12")}), 20, T)
    arrive(ledger, {10: "later"}, version=21)
    arrive(ledger, {4: "late"}, version=22)
    assert pasts(ledger, "v") == [([9, 10, 11, *range(13, 20)], 19, [4, 10]), ([12], 20, [4, 10])]


def test_what_people_or_definitions_made_due_has_no_past(ledger: Ledger) -> None:
    ledger.define(GRAPH, T)
    arrive(ledger, {0: "a", 1: "b"}, version=0)
    build(ledger, "v", version=0)
    with ledger.database.writing(T) as w:
        paint(w, "v", Parts.single(0), Cause("requested"))
    assert pasts(ledger, "v") == []
    build(ledger, "v", version=1)
    arrive(ledger, {0: "A"}, version=1)
    ledger.define(Graph.of([Table("s", "source", 60, "s1"), replace(V, fingerprint="v2"), W]), T)
    arrive(ledger, {0: "AA"}, version=2)
    assert pasts(ledger, "v") == []
