"""One wrong event time does not freeze a view that reads its own past."""

from __future__ import annotations

import pytest

from partwise.cli.views.part_state import stuck
from partwise.ledger.catalog import settled
from partwise.ledger.ledger import Ledger
from partwise.ledger.read import reports
from partwise.ledger.read.snapshot import as_defined
from partwise.ledger.runs import existing
from partwise.ledger.write.commit import EMPTY, Content, Entry
from partwise.parts import Reference
from partwise.plan.reach import FAR
from partwise.tables import Graph, Input, Table
from tests.ledger.test_steps import SAME, T, arrive, build

TOTAL = Table("total", "view", 60, "t1", (*SAME, Input("total", Reference.same(-1))), SAME)
AFTER = Table("after", "view", 60, "a1", *[(Input("total", Reference.same()),)] * 2)
PLAIN = Table("plain", "view", 60, "p1", SAME, SAME)
GRAPH = Graph.of([Table("s", "source", 60, "s1"), TOTAL, AFTER, PLAIN])
WRONG, TODAY = 0, 10 * FAR


@pytest.fixture
def frozen(ledger: Ledger) -> Ledger:
    """A row of long ago came with those of today; the total began with it, and waits for the part after it."""
    ledger.define(GRAPH, T)
    arrive(ledger, {WRONG: "a", TODAY: "b", TODAY + 1: "c"})
    for name in ("total", "after", "plain"):
        build(ledger, name)
    assert parts(ledger, "total") == [WRONG]
    return ledger


def parts(ledger: Ledger, table: str) -> list[int]:
    with ledger.database.reading() as r:
        return list(existing(r, table))


def start(ledger: Ledger, table: str) -> int | None:
    with ledger.database.reading() as r:
        return settled(r, table).start


def corrected(ledger: Ledger, *emptied: int) -> None:
    held = ledger.take("s", "ingest", 60, T)
    ledger.commit(held, Entry("s", 0, "s1", None, parts=dict.fromkeys(emptied, EMPTY)), None, T)


def test_the_start_moves_on_when_the_wrong_row_is_gone(frozen: Ledger) -> None:
    corrected(frozen, WRONG)
    assert start(frozen, "total") == TODAY
    for name in ("total", "after", "plain"):
        build(frozen, name)
    assert parts(frozen, "total") == parts(frozen, "after") == [TODAY, TODAY + 1]
    assert parts(frozen, "plain") == [WRONG, TODAY, TODAY + 1], "who does not read his own past was never stuck"
    assert not frozen.audit()


def test_a_view_that_reached_the_rows_keeps_its_start(ledger: Ledger) -> None:
    ledger.define(GRAPH, T)
    arrive(ledger, dict.fromkeys(range(WRONG, FAR + 10), ""))
    build(ledger, "total")
    build(ledger, "total")  # a step computes so many parts at most
    corrected(ledger, *range(WRONG, FAR + 5))
    assert start(ledger, "total") == WRONG


def test_quiet_times_at_the_beginning_are_no_mistake(ledger: Ledger) -> None:
    ledger.define(GRAPH, T)
    arrive(ledger, {0: "a"})
    build(ledger, "total")
    arrive(ledger, {5: "b"})
    corrected(ledger, 0)
    assert start(ledger, "total") == 0


def test_status_and_why_say_what_to_do(frozen: Ledger) -> None:
    with as_defined(frozen, GRAPH, T) as snapshot:
        row = next(row for row in reports.tables(snapshot) if row.table.name == "total")
        assert row.could_go_on == TODAY
        said = stuck(snapshot, snapshot.graph["total"], "waiting")
    assert "partwise retract" in said
    assert "`start: 1970-01-07T22:40`" in said
    assert all(row.could_go_on is None for row in [row] if row.table.name != "total")


def test_views_between_the_row_and_the_total_do_not_hold_it(ledger: Ledger) -> None:
    """The total of a view, not of the source itself; the view has no rows where the wrong one was."""
    plain = Table("plain", "view", 60, "p1", SAME, SAME)
    of_plain = Input("plain", Reference.same())
    total = Table("total", "view", 60, "t1", (of_plain, Input("total", Reference.same(-1))), (of_plain,))
    ledger.define(Graph.of([Table("s", "source", 60, "s1"), plain, total]), T)
    arrive(ledger, {WRONG: "a", TODAY: "b", TODAY + 1: "c"})
    build(ledger, "plain")
    build(ledger, "total")
    assert parts(ledger, "total") == [WRONG]
    corrected(ledger, WRONG)
    assert start(ledger, "total") == TODAY
    build(ledger, "plain")
    build(ledger, "total")
    assert parts(ledger, "total") == [TODAY, TODAY + 1]
    assert not ledger.audit()


def test_the_start_moves_on_when_what_lies_between_is_built_later(ledger: Ledger) -> None:
    """When the row was corrected, the view between had no other parts yet."""
    plain = Table("plain", "view", 60, "p1", SAME, SAME)
    of_plain = Input("plain", Reference.same())
    total = Table("total", "view", 60, "t1", (of_plain, Input("total", Reference.same(-1))), (of_plain,))
    ledger.define(Graph.of([Table("s", "source", 60, "s1"), plain, total]), T)
    arrive(ledger, {WRONG: "a"})
    build(ledger, "plain")
    build(ledger, "total")
    corrected(ledger, WRONG)
    arrive(ledger, {TODAY: "b", TODAY + 1: "c"})
    held = ledger.take("plain", "test", 60, T)
    pin = ledger.pin(held, T)
    assert pin is not None
    contents = {p: EMPTY if p == WRONG else Content(1, str(p)) for p in pin.due}
    ledger.commit(held, pin.entry(contents), 2, T)
    assert start(ledger, "total") == TODAY
    build(ledger, "total")
    assert parts(ledger, "total") == [TODAY, TODAY + 1]
    assert not ledger.audit()
