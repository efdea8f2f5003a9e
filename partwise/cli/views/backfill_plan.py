"""What a backfill would do, before anything is done: tables, parts, reasons, rows, time. No JVM is needed for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from partwise.backfill import Asked, Estimate, about, closure, estimate
from partwise.cli.views.show import heading, plural, say, table
from partwise.ledger.facts import LedgerFacts
from partwise.ledger.ledger import Ledger
from partwise.ledger.records.backfills import Done, mark, rows_of, times
from partwise.parts import FOREVER, Parts, part_text, range_text
from partwise.plan.model import Step, parts_of_due
from partwise.plan.next import parts_text
from partwise.plan.planner import Look, look_around, steps_of, waits_for
from partwise.tables import Graph


@dataclass(frozen=True)
class BackfillPlan:
    """`follows`: parts that are computed again as well if what they read changes. `waits`: what cannot run now."""

    graph: Graph
    asked: Asked
    steps: tuple[Step, ...]
    waits: tuple[str, ...]
    follows: Mapping[str, Parts]
    estimates: Mapping[str, Estimate]
    more: Mapping[str, Estimate]

    @property
    def seconds(self) -> float | None:
        return _total(self.estimates)


def preview(ledger: Ledger, asked: Asked, downstream: bool, now: float, at_once: int) -> BackfillPlan:
    """What would happen, tried in a transaction that is rolled back. `at_once`: parts of a step, at most."""
    graph, scope = ledger.graph(), asked.scope
    with ledger.database.trying(now) as w:
        mark(w, graph, asked)
        facts = LedgerFacts(w)
        looks = look_around(graph, facts, now)
        steps: list[Step] = []
        waits: list[str] = []
        for name in (n for n in graph.order if n in scope):
            look = looks.get(name)
            due = parts_of_due(look.due) & scope[name] if look else Parts()
            steps += steps_of(graph, facts, looks, look, due) if look else []
            steps += [Step(name, span, "missing", "when what it reads is built") for span in (scope[name] - due).ranges]
            waits += _waits(graph, facts, look, looks, due, scope) if look else []
        follows = closure(graph, facts.start, facts.existing, scope, downstream)

        def guess(name: str, parts: Parts) -> Estimate:
            return estimate(times(w, name), parts.count, rows_of(w, name, parts), at_once)

        estimates = {name: guess(name, parts) for name, parts in scope.items()}
        more = {name: guess(name, parts) for name, parts in follows.items() if parts.last < FOREVER}
    return BackfillPlan(graph, asked, tuple(steps), tuple(waits), follows, estimates, more)


def _waits(
    graph: Graph, facts: LedgerFacts, look: Look, looks: Mapping[str, Look], due: Parts, scope: Mapping[str, Parts]
) -> list[str]:
    """Parts that wait for something that the backfill itself does not do."""
    found = []
    for span in (due - look.ready - look.manual).ranges:
        for other in waits_for(facts, look, looks, span.lo):
            if other.state == "stale" or scope.get(other.table, Parts()).within(*other.parts):
                continue  # what is stale and needed is done first
            length = graph[other.table].length
            where = "" if graph[other.table].kind == "dimension" else f"[{range_text(other.parts, length)}]"
            mine = f"{look.table.name}[{range_text(span, look.table.length)}]"
            found.append(f"{mine} waits: {other.table}{where} is {other.state}")
    return found


def show(found: BackfillPlan) -> None:
    graph, asked = found.graph, found.asked
    length = graph[asked.table].length
    heading(f"Backfill of {asked.table}[{range_text(asked.span, length)}]")
    rows = []
    for step in found.steps:
        whole = found.asked.scope[step.table].count
        part = step.parts.size / whole if whole else 1
        guess = found.estimates[step.table]
        rows.append(
            (
                f"{step.table}[{range_text(step.parts, graph[step.table].length)}]",
                plural(step.parts.size, "part"),
                step.kind,
                step.reason,
                f"{round(guess.rows * part):,}",
                "" if guess.seconds is None else about(guess.seconds * part),
            )
        )
    table(("step", "", "kind", "reason", "rows", "time"), rows)
    for note in (*asked.notes, *found.waits):
        say(note, "yellow")
    if found.follows:
        heading("Then, only where content changes")
        for name, parts in found.follows.items():
            say(f"  {name}[{parts_text(parts, graph[name].length)}]: up to {plural(parts.count, 'part')}")
    count = sum(parts.count for parts in asked.scope.values())
    known = _total(found.estimates)
    rows_text = plural(sum(guess.rows for guess in found.estimates.values()), "row")
    say(
        f"\n{plural(count, 'part')}, {rows_text}, {'time unknown: no step has run yet' if known is None else about(known)}."
        + _at_most(found)
    )


def _at_most(found: BackfillPlan) -> str:
    if not found.follows:
        return ""
    more = _total(found.more)
    count = plural(sum(parts.count for parts in found.follows.values()), "part")
    return f" At most {count} more{'' if more is None else f', {about(more)}'}."


def _total(guesses: Mapping[str, Estimate]) -> float | None:
    known = [guess.seconds for guess in guesses.values() if guess.seconds is not None]
    return sum(known) if known else None


def as_json(found: BackfillPlan) -> dict[str, Any]:
    graph = found.graph

    def spans(name: str, parts: Parts) -> list[str]:
        return [range_text(span, graph[name].length) for span in parts.ranges]

    return {
        "table": found.asked.table,
        "range": range_text(found.asked.span, graph[found.asked.table].length),
        "steps": [
            {
                "table": step.table,
                "parts": [part_text(p, graph[step.table].length) for p in range(step.parts.lo, step.parts.hi + 1)],
                "kind": step.kind,
                "reason": step.reason,
            }
            for step in found.steps
        ],
        "starts": {name: part_text(p, graph[name].length) for name, p in found.asked.starts.items()},
        "may_follow": {name: spans(name, parts) for name, parts in found.follows.items()},
        "waits": list(found.waits),
        "notes": list(found.asked.notes),
        "rows": sum(guess.rows for guess in found.estimates.values()),
        "seconds": None if found.seconds is None else round(found.seconds, 3),
    }


def report(graph: Graph, done: Mapping[str, Done]) -> None:
    """What came of it, by table."""
    rows = [
        (name, *(f"{parts.count:,}" for parts in (d.recomputed, d.changed, d.unchanged, d.left)))
        for name, d in done.items()
        if d.recomputed or d.left
    ]
    if rows:
        table(("table", "recomputed", "changed", "unchanged", "left"), rows)


def report_json(graph: Graph, done: Mapping[str, Done]) -> dict[str, Any]:
    return {
        name: {
            "recomputed": d.recomputed.count,
            "changed": d.changed.count,
            "unchanged": d.unchanged.count,
            "left": [range_text(span, graph[name].length) for span in d.left.ranges],
        }
        for name, d in done.items()
    }
