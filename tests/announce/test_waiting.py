"""The sentence of the sensor."""

from __future__ import annotations

from partwise.announce import waiting_for
from partwise.ledger.facts import LedgerFacts
from partwise.ledger.ledger import Ledger
from partwise.ledger.open import in_memory
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Range, Reference, parse_part
from partwise.tables import Graph, Input, Table

WINDOW = (Input("measurements", Reference.window(-3, 0)),)
CHAIN = (Input("high_loss", Reference.same()), Input("chain", Reference.same(-1)), Input("nodes", None))
FIRST = (Input("high_loss", Reference.same()),)
GRAPH = Graph.of(
    [
        Table("measurements", "source", 60, "m"),
        Table("nodes", "dimension", 1, "n"),
        Table("high_loss", "view", 60, "h", WINDOW, WINDOW),
        Table("chain", "view", 60, "c", CHAIN, FIRST),
    ]
)


def at(text: str) -> int:
    return parse_part(f"2026-10-03T{text}", 60)


def ledger_with(*parts: str) -> Ledger:
    ledger = in_memory()
    ledger.define(GRAPH, 0.0)
    held = ledger.take("measurements", "test", 60, 0.0)
    contents = {at(text): Content(1, text) for text in parts}
    ledger.commit(held, Entry("measurements", 0, "m", None, parts=contents), None, 0.0)
    return ledger


def said(ledger: Ledger, table: str, parts: str, own: bool = False) -> str:
    low, _, high = parts.partition("..")
    with ledger.database.reading() as r:
        return waiting_for(GRAPH, LedgerFacts(r), table, Range(at(low), at(high or low)), own).text


def test_it_names_what_is_missing() -> None:
    ledger = ledger_with("10:02", "10:03", "10:04")
    assert said(ledger, "high_loss", "10:05") == "high_loss[2026-10-03T10:05] waits: measurements 3/4, missing 10:05"


def test_everything_is_there() -> None:
    ledger = ledger_with("10:02", "10:03", "10:04", "10:05")
    assert said(ledger, "high_loss", "10:05") == "high_loss[2026-10-03T10:05] has everything it needs"
    with ledger.database.reading() as r:
        assert not waiting_for(GRAPH, LedgerFacts(r), "high_loss", Range(at("10:05"), at("10:05"))).missing


def test_a_range_needs_what_its_parts_need_together() -> None:
    ledger = ledger_with("10:02", "10:03", "10:04")
    assert said(ledger, "high_loss", "10:05..10:07") == (
        "high_loss[2026-10-03T10:05..2026-10-03T10:07] waits: measurements 3/6, missing 10:05..10:07"
    )


def test_the_view_itself_is_never_waited_for_but_its_inputs_are() -> None:
    ledger = ledger_with("10:02", "10:03", "10:04", "10:05")
    assert said(ledger, "chain", "10:05") == (
        "chain[2026-10-03T10:05] waits: high_loss 0/1, missing 10:05; nodes is not loaded"
    )


def test_parts_themselves() -> None:
    ledger = ledger_with("10:02", "10:04")
    assert said(ledger, "measurements", "10:02..10:04", own=True) == (
        "measurements[2026-10-03T10:02..2026-10-03T10:04] waits: measurements 2/3, missing 10:03"
    )
    assert said(ledger, "measurements", "10:02", own=True) == "measurements[2026-10-03T10:02] exists"
    assert said(ledger, "high_loss", "10:05", own=True).endswith("waits: high_loss 0/1, missing 10:05")
