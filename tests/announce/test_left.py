"""What a manual run has to say of requested parts that it did not compute."""

from __future__ import annotations

from partwise.announce import not_computed
from partwise.ledger.facts import LedgerFacts
from partwise.ledger.ledger import Ledger
from partwise.ledger.open import in_memory
from partwise.ledger.write.define import request
from partwise.parts import Parts, Range
from tests.ledger.test_steps import GRAPH, T, arrive, build, fail


def asked(*parts: int) -> Ledger:
    """s -> v -> w, all built; these parts of w are requested."""
    ledger = in_memory()
    ledger.define(GRAPH, T)
    arrive(ledger, {0: "a", 1: "b", 2: "c"})
    build(ledger, "v")
    build(ledger, "w")
    with ledger.database.writing(T) as w:
        request(w, GRAPH, "w", Parts.single(*parts))
    return ledger


def left(ledger: Ledger, lo: int = 0, hi: int = 2) -> str | None:
    with ledger.database.reading() as r:
        return not_computed(GRAPH, LedgerFacts(r), "w", Range(lo, hi), T)


def test_what_waits_for_an_input_that_is_about_to_change_is_told() -> None:
    ledger = asked(0, 1)
    arrive(ledger, {1: "late"})
    build(ledger, "w")
    why = "w[1970-01-01T00:01] was requested and waits: v[1970-01-01T00:01] is stale"
    assert left(ledger) == why, "part 0 was computed"
    assert left(ledger, 2, 2) is None, "nobody requested it"
    build(ledger, "v")
    assert left(ledger) is None, "it is ready: the next run computes it"
    build(ledger, "w")
    assert left(ledger) is None


def test_what_failed_says_so_itself_and_what_was_not_asked_for_is_left_alone() -> None:
    ledger = asked(0)
    fail(ledger, "w", 0)
    assert left(ledger) is None
    arrive(ledger, {2: "late"})
    assert left(ledger) is None
