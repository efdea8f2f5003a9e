"""Where views of windows begin, with their helpers, in a real ledger whose steps are only recorded."""

from __future__ import annotations

import pytest

from partwise.compile.load import load_texts
from partwise.ledger.catalog import settled
from partwise.ledger.ledger import Ledger
from partwise.ledger.open import in_memory
from partwise.ledger.runs import existing
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Parts, parse_part

TEXT = """
source: m
part: 1 minute
time: t
columns: {{t: timestamp, g: string, x: int}}
files: landing/*.csv
---
view: v
share: false
part: {part}
start: {start}
partial: {partial}
strategy: {strategy}
query: SELECT g, SUM(x) AS s FROM m [WINDOW {window}] GROUP BY g
"""


def minute(clock: str, length: int = 60) -> int:
    return parse_part(f"2026-10-03T{clock}", length)


def built(first: str, last: str, **given: str) -> tuple[Ledger, dict[str, Parts]]:
    """Everything that can be built when the source has the parts first..last."""
    settings = {"part": "1 minute", "start": "earliest", "partial": "false", "window": "10 minutes"} | given
    definitions = load_texts({"all.yaml": TEXT.format(**settings).encode()})
    assert definitions.ok, definitions.problems
    ledger = in_memory()
    graph = definitions.graph()
    ledger.define(graph, 0.0)
    contents = {p: Content(1, str(p)) for p in range(minute(first), minute(last) + 1)}
    ledger.commit(ledger.take("m", "t", 9, 0.0), Entry("m", 0, graph["m"].fingerprint, None, None, contents), 0, 0.0)
    for turn in range(1, 50):
        steps = ledger.plan(turn * 10.0).steps
        if not steps:
            break
        held = ledger.take(steps[0].table, "t", 9, turn * 10.0)
        pin = ledger.pin(held, turn * 10.0)
        assert pin is not None
        ledger.commit(
            held, pin.entry({p: Content(1, str(p)) for p in pin.due}), (pin.own.version or 0) + 1, turn * 10.0
        )
    with ledger.database.reading() as r:
        return ledger, {name: existing(r, name) for name in graph.tables}


@pytest.mark.parametrize("strategy", ["recompute", "merge", "subtract"])
@pytest.mark.parametrize("partial", ["true", "false"])
class TestGivenStart:
    def test_the_first_window_is_whole_if_its_rows_are_there(self, strategy: str, partial: str) -> None:
        parts = built("09:40", "10:10", start="2026-10-03T10:05", strategy=strategy, partial=partial)[1]
        assert parts["v"] == Parts.of((minute("10:05"), minute("10:10")))
        if strategy != "recompute":
            assert parts["v__panes"].first == minute("09:56")  # nothing more than what the first window reads
        assert "v__age" not in parts or parts["v__age"].first <= minute("09:56")

    def test_what_lies_before_the_source_is_left_out_or_waited_for(self, strategy: str, partial: str) -> None:
        parts = built("10:00", "10:16", start="2026-10-03T10:05", strategy=strategy, partial=partial)[1]
        first = "10:05" if partial == "true" else "10:09"
        assert parts["v"] == Parts.of((minute(first), minute("10:16")))

    def test_panes_count_in_their_own_length(self, strategy: str, partial: str) -> None:
        parts = built(
            "09:00",
            "12:59",
            part="1 hour",
            start="2026-10-03T10:00",
            window="90 minutes",
            strategy=strategy,
            partial=partial,
        )[1]
        assert parts["v"] == Parts.of((minute("10:00", 3600), minute("12:00", 3600)))
        if strategy != "recompute":
            assert parts["v__panes"].first == minute("09:30", 1800)


@pytest.mark.parametrize("strategy", ["recompute", "merge", "subtract"])
def test_earliest(strategy: str) -> None:
    assert built("10:00", "10:16", strategy=strategy)[1]["v"].first == minute("10:09")
    ledger, parts = built("10:00", "10:16", strategy=strategy, partial="true")
    assert parts["v"] == Parts.of((minute("10:00"), minute("10:16")))
    with ledger.database.reading() as r:
        assert settled(r, "v").start == settled(r, "m").start == minute("10:00")
