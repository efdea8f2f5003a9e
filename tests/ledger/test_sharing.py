"""Shared helpers in the ledger: who comes, changes or goes leaves the others untouched, and what was built stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from partwise.choose.settled import settled
from partwise.ledger.catalog import settled as catalogued
from partwise.ledger.ledger import Ledger
from partwise.ledger.records.strategies import settlements
from partwise.ledger.runs import existing
from partwise.ledger.write.commit import Entry
from partwise.parts import FOREVER, Parts
from tests.ledger.test_steps import T, arrive, build, steps
from tests.ledger.test_strategies import Place


def window(name: str, minutes: int, *lines: str, where: str = "") -> str:
    query = f"SELECT g, SUM(x) AS a FROM s [WINDOW {minutes} minutes]{where} GROUP BY g"
    return "\n".join(["---", f"view: {name}", "part: 1 minute", "strategy: merge", *lines, f"query: {query}", ""])


@pytest.fixture
def place(ledger: Ledger, tmp_path: Path) -> Place:
    return Place(tmp_path, ledger)


def everything(place: Place) -> None:
    while found := place.ledger.plan(T).steps:
        build(place.ledger, found[0].table, version=None)


def panes(place: Place) -> str:
    (name,) = (n for n, t in place.ledger.graph().tables.items() if t.helper_of and n.startswith("s__"))
    return name


def parts(place: Place, name: str) -> Parts:
    with place.ledger.database.reading() as r:
        return existing(r, name)


def serves(place: Place, name: str) -> tuple[str, ...]:
    return place.ledger.graph()[name].serves


def revisions(place: Place, *tables: str) -> list[tuple[object, ...]]:
    from sqlalchemy import select

    from partwise.ledger.schema import part

    with place.ledger.database.reading() as r:
        wanted = select(part).where(part.c.table.in_(tables)).order_by(part.c.table, part.c.part)
        return [tuple(row) for row in r.on.execute(wanted)]


def test_who_comes_later_reads_what_is_there(place: Place) -> None:
    place.write(window("a", 2))
    place.take_over()
    arrive(place.ledger, dict.fromkeys(range(6), "x"))
    everything(place)
    shared = panes(place)
    before = revisions(place, "a", shared)
    place.write(window("a", 2) + window("b", 3))
    place.take_over()
    assert serves(place, shared) == ("a", "b")
    assert steps(place.ledger.plan(T)) == {"b": Parts.of((2, 5))}, "only its own parts"
    everything(place)
    assert revisions(place, "a", shared) == before
    place.write(window("b", 3))
    place.take_over()
    assert place.tables() == {"s", "b", shared}
    assert not place.ledger.plan(T).steps
    assert revisions(place, "a", shared) == before, "what the one that is gone had stays on record"
    place.write("")
    place.take_over()
    assert place.tables() == {"s"}


def test_who_changes_leaves_the_others_alone(place: Place) -> None:
    place.write(window("a", 2) + window("b", 3))
    place.take_over()
    arrive(place.ledger, dict.fromkeys(range(6), "x"))
    everything(place)
    shared = panes(place)
    before = revisions(place, "b", shared)
    place.write(window("a", 2, where=" WHERE x > 1") + window("b", 3))
    place.take_over()
    assert serves(place, shared) == ("b",)
    everything(place)
    assert revisions(place, "b", shared) == before
    place.write(window("a", 2) + window("b", 3))
    place.take_over()
    everything(place)
    assert revisions(place, "b", shared) == before
    assert serves(place, shared) == ("a", "b")


def test_what_earlier_releases_built_stays(place: Place) -> None:
    place.write(window("a", 2) + window("b", 3))
    place.ledger.define(place.load().with_own(["a", "b"]).graph(), T)
    arrive(place.ledger, dict.fromkeys(range(6), "x"))
    everything(place)
    before = place.ledger.graph()
    assert set(before.tables) == {"s", "a", "b", "a__panes", "b__panes"}
    assert place.take_over().graph() == before
    assert place.ledger.graph() == before
    assert not place.ledger.plan(T).steps
    again = settled(place.load(), place.ledger.strategies())
    assert again.graph() == before, "every process sees it so"

    place.write(window("a", 2) + window("b", 3) + window("c", 4) + window("d", 5))
    place.take_over()
    shared = panes(place)
    assert serves(place, shared) == ("c", "d")
    assert steps(place.ledger.plan(T)) == {shared: Parts.of((0, 5))}
    everything(place)

    place.write(window("a", 4) + window("b", 3) + window("c", 4) + window("d", 5))
    place.take_over()
    assert place.tables() == {"s", "a", "b", "b__panes", "c", "d", shared}
    assert serves(place, shared) == ("a", "c", "d")
    assert steps(place.ledger.plan(T)) == {"a": Parts.of((3, 5))}, "what it means has changed: it joins the others"


def test_who_would_begin_elsewhere_by_itself_keeps_its_own(place: Place) -> None:
    place.write(window("a", 2))
    place.take_over()
    arrive(place.ledger, dict.fromkeys(range(4, 8), "x"))
    everything(place)
    shared = panes(place)
    arrive(place.ledger, dict.fromkeys(range(4), "x"))  # earlier than where the helper began
    place.write(window("a", 2) + window("b", 3))
    place.take_over()
    assert place.tables() == {"s", "a", shared, "b", "b__panes"}
    everything(place)
    assert parts(place, "b") == Parts.of((2, 7))
    assert place.take_over().graph() == place.ledger.graph(), "and it stays so"
    place.write(window("a", 2) + window("b", 3) + window("c", 3))
    place.take_over()
    assert {"b__panes", "c__panes"} < place.tables()


def test_nobody_joins_what_has_lost_parts(place: Place) -> None:
    place.write(window("a", 2))
    place.take_over()
    arrive(place.ledger, dict.fromkeys(range(8), "x"))
    everything(place)
    shared = panes(place)
    held = place.ledger.take(shared, "retention", 60, T)
    place.ledger.commit(held, Entry(shared, 0, "", None, reason="expired", floor=3), None, T)
    with place.ledger.database.reading() as r:
        assert catalogued(r, shared).floor == 3
    place.write(window("a", 2) + window("b", 3))
    place.take_over()
    assert "b__panes" in place.tables()
    everything(place)
    assert parts(place, "b") == Parts.of((2, 7))
    assert parts(place, shared).within(-FOREVER, 2) == Parts()


def test_settling_one_leaves_the_helper_to_the_other(place: Place) -> None:
    free = window("w", 2).replace("strategy: merge\n", "")
    place.write(free + window("b", 3))
    first = place.take_over()
    shared = panes(place)
    assert serves(place, shared) == ("w", "b")
    after = place.settle(first, "recompute")
    assert after is not None
    assert serves(place, shared) == ("b",)
    assert place.tables() == {"s", "w", "b", shared}
    back = place.settle(after, "merge")
    assert back is not None
    assert serves(place, shared) == ("w", "b")


def test_a_reader_that_is_left_alone_while_its_file_is_broken(place: Place) -> None:
    place.write(window("a", 2) + window("b", 3))
    place.take_over()
    shared = panes(place)
    place.write(window("a", 2, "checks: [{expect_nothing: {}}]") + window("b", 3))
    place.take_over()
    assert place.tables() == {"s", "a", "b", shared}


def test_whatever_earlier_releases_built_stays(place: Place) -> None:
    """Patterns, rolling sums and partial windows as well, and strategies that were settled."""
    pattern = "---\nview: p\npart: 1 minute\nquery: SELECT g, COUNT(*) AS n FROM s PATTERN [a, b+] WHERE a.x > 1 AND b.x > 1 GROUP BY g\n"
    free = window("w", 3).replace("strategy: merge\n", "")
    rolls, partial = window("rolls", 3).replace("merge", "subtract"), window("part", 3, "partial: true")
    distinct = window("many", 3).replace("SUM(x)", "COUNT(DISTINCT x)")
    place.write(pattern + free + rolls + partial + distinct)
    before = place.load()
    before = before.with_own(before.views)
    place.ledger.define(before.graph(), T)
    arrive(place.ledger, dict.fromkeys(range(6), "x"))
    assert place.settle(before, "subtract") is not None
    everything(place)
    known = place.ledger.graph()
    assert not any(name.startswith("s__") for name in known.tables)
    assert {"p__helper", "w__rolling", "rolls__rolling", "part__age", "many__values"} < set(known.tables)
    assert place.take_over().graph() == known
    assert place.ledger.graph() == known
    assert not place.ledger.plan(T).steps


def total(name: str, minutes: int, *lines: str, where: str = "") -> str:
    """Reads panes by g, which hold more than it needs, where there are any."""
    return (
        window(name, minutes, *lines, where=where)
        .replace("SELECT g, SUM(x)", "SELECT SUM(x)")
        .replace(" GROUP BY g", "")
    )


def test_who_needs_less_reads_what_is_there_and_keeps_it(place: Place) -> None:
    place.write(window("a", 2))
    place.take_over()
    arrive(place.ledger, dict.fromkeys(range(6), "x"))
    everything(place)
    shared = panes(place)
    before = revisions(place, "a", shared)
    both = window("a", 2) + total("b", 3) + total("c", 4, where=" WHERE g = 'k'")
    place.write(both)
    taken = place.take_over()
    assert place.tables() == {"s", "a", "b", "c", shared}
    assert serves(place, shared) == ("a", "b", "c")
    assert steps(place.ledger.plan(T)) == {"b": Parts.of((2, 5)), "c": Parts.of((3, 5))}, "only their own parts"
    everything(place)
    assert revisions(place, "a", shared) == before
    assert settled(place.load(), place.ledger.strategies()).graph() == taken.graph() == place.ledger.graph()

    after = revisions(place, "b", "c", shared)
    place.write(total("b", 3) + total("c", 4, where=" WHERE g = 'k'"))
    place.take_over()
    assert place.tables() == {"s", "b", "c", shared}, "whoever made it first is gone"
    assert not place.ledger.plan(T).steps
    assert place.take_over().graph() == place.ledger.graph()
    arrive(place.ledger, {3: "late"})
    assert {step.table for step in place.ledger.plan(T).steps} == {shared}
    everything(place)
    assert revisions(place, "b", "c", shared) != after

    after = revisions(place, "b", "c", shared)
    place.write(both)
    place.take_over()
    assert steps(place.ledger.plan(T)) == {"a": Parts.of((1, 5))}
    assert revisions(place, "b", "c", shared) == after


def test_what_was_built_reads_its_own_panes_whatever_covers_it_later(place: Place) -> None:
    place.write(total("b", 3))
    place.take_over()
    arrive(place.ledger, dict.fromkeys(range(6), "x"))
    everything(place)
    own = panes(place)
    place.write(total("b", 3) + window("a", 2) + total("c", 4))
    place.take_over()
    assert serves(place, own) == ("b", "c"), "who comes later joins the same panes"
    assert {step.table for step in place.ledger.plan(T).steps} == {"c", *place.tables() - {"s", "a", "b", "c", own}}
    place.write(total("b", 5) + window("a", 2) + total("c", 4))
    place.take_over()
    assert serves(place, own) == ("b", "c"), "while it is there"


def test_who_means_something_else_by_now_looks_again(place: Place) -> None:
    place.write(window("a", 2) + total("b", 3))
    place.take_over()
    arrive(place.ledger, dict.fromkeys(range(6), "x"))
    everything(place)
    shared = panes(place)
    before = revisions(place, "a", shared)
    place.write(window("a", 2) + total("b", 3, where=" WHERE x > 1"))
    place.take_over()
    assert serves(place, shared) == ("a",)
    everything(place)
    place.write(window("a", 2) + total("b", 3, where=" WHERE g = 'k'"))
    place.take_over()
    assert serves(place, shared) == ("a", "b")
    everything(place)
    assert revisions(place, "a", shared) == before
    place.write(window("a", 2))
    place.take_over()
    with place.ledger.database.reading() as r:
        assert settlements(r).covers == {}, "of those that are gone nothing is known"


def test_nobody_is_covered_by_what_has_lost_parts(place: Place) -> None:
    place.write(window("a", 2))
    place.take_over()
    arrive(place.ledger, dict.fromkeys(range(8), "x"))
    everything(place)
    held = place.ledger.take(panes(place), "retention", 60, T)
    place.ledger.commit(held, Entry(held.table, 0, "", None, reason="expired", floor=3), None, T)
    place.write(window("a", 2) + total("b", 3))
    place.take_over()
    assert "b__panes" in place.tables()
    everything(place)
    assert parts(place, "b") == Parts.of((2, 7))


def test_settling_what_is_covered(place: Place) -> None:
    place.write(window("a", 2) + total("w", 3).replace("strategy: merge\n", ""))
    first = place.take_over()
    shared = panes(place)
    assert serves(place, shared) == ("a", "w")
    after = place.settle(first, "recompute")
    assert after is not None
    assert serves(place, shared) == ("a",)
    assert place.take_over().graph() == place.ledger.graph()
    back = place.settle(after, "merge")
    assert back is not None
    assert serves(place, shared) == ("a", "w")
    arrive(place.ledger, dict.fromkeys(range(4), "x"))
    everything(place)
    assert parts(place, "w") == Parts.of((2, 3))
