"""The state of a part in a sentence or two."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from partwise.cli.views.show import moment_text, plural
from partwise.ledger.read.forward_why import version_text
from partwise.parts import Range, part_text, range_text
from partwise.plan.next import Need, Next, next_text

if TYPE_CHECKING:
    from partwise.ledger.read.history import PartHistory
    from partwise.ledger.read.snapshot import Snapshot
    from partwise.plan.model import WaitsFor
    from partwise.tables import Graph, Table


def sentence(graph: Graph, known: PartHistory, zone: str) -> str:
    table, length = known.table, known.table.length
    name = table.name if table.kind == "dimension" else f"{table.name}[{part_text(known.part, length)}]"
    if known.state == "expired" and table.helper_of is not None:
        return f"{name} is expired: no part of {' or '.join(table.serves)} that may still change reads it."
    if known.state == "expired" and table.rolling:
        return f"{name} is not shown any more: {table.name} is rolling and holds its newest part alone."
    if known.state in _SIMPLE:
        return _SIMPLE[known.state].format(name=name, table=table.name)
    if known.state == "open":
        rows = plural(known.rows or 0, "row")
        close = f"`partwise close {table.name} {part_text(known.part, length)}` closes it"
        return f"{name} is open: {rows} arrived, but it is not closed yet. {close}."
    if known.state == "absent":
        if table.kind == "dimension":
            return f"{name} was never loaded."
        return f"{name} does not exist: nothing has arrived for it, or later parts have not been seen yet."
    if known.state == "before-start":
        assert known.start is not None
        start = part_text(known.start, length)
        first = part_text(known.part, length)
        return (
            f"{name} lies before the start of the view, {start}. "
            f"`partwise backfill {table.name} {first}..{start}` lets it start earlier, if what it requires exists."
        )
    if known.state == "waiting":
        return f"{name} was never built. {_waits(graph, known)}"
    if known.state == "failed":
        return _failed(name, known, zone)
    if known.state == "fresh":
        return _fresh(name, known, zone)
    return _due(graph, name, known, zone)


def behind(snapshot: Snapshot, lacks: Iterable[Need]) -> str:
    """The end of such an answer: which of the missing parts are missing because they failed their checks."""
    from partwise.ledger.records import checks

    said = []
    for need in lacks:
        table = snapshot.graph[need.table]
        failed = sorted(p for p in checks.failed_parts(snapshot.r, need.table) if p in need.missing)
        if failed:
            more = f" (and {plural(len(failed) - 1, 'more part')})" if len(failed) > 1 else ""
            where = "" if table.kind == "dimension" else f"[{part_text(failed[0], table.length)}]"
            said.append(f" {need.table}{where}{more} failed its checks.")
    return "".join(said)


def too_early(table: Table, start: int, begins: int) -> str:
    """What to do about a view that began at a wrong event time and waits for ever at the gap behind it."""
    first, then = part_text(start, table.length), part_text(begins, table.length)
    return (
        f"{table.helper_of or table.name} starts at {first}, and nothing fills the gap from there to {then}: an event time "
        "is probably wrong. Correct the file that brought it, or take it out with `partwise retract`: then the start "
        f"moves on by itself. Or write `start: {then}` into the definition."
    )


def stuck(snapshot: Snapshot, table: Table, state: str) -> str:
    """The end of such an answer, for a part that its view cannot get to."""
    from partwise.ledger.read.reports import could_go_on

    if state not in ("waiting", "blocked", "missing"):
        return ""
    for each in snapshot.graph.tables.values():
        if table.name in each.for_views:
            start, begins = snapshot.facts.settled(each.name).start, could_go_on(snapshot, each)
            if start is not None and begins is not None:
                return f" {too_early(each, start, begins)}"
    return ""


def as_it_was(graph: Graph, held: Iterable[WaitsFor]) -> str:
    """The end of such an answer: what the part reads that is not what it should be, and why."""
    why = {"failed": "failed", "manual": "is repaired manually"}
    return "".join(
        f" {w.table}[{range_text(w.parts, graph[w.table].length)}] {why[w.state]} and is read at its earlier revision."
        for w in held
    )


def mixture_text(graph: Graph, known: PartHistory) -> str:
    """The end of such an answer: of a mixed part what it read that was not up to date."""
    if known.mixture is None:
        return ""
    read = [
        f"{name}[{range_text(Range(lo, hi), graph[name].length)}]" if name in graph.tables else name
        for name, lo, hi in known.mixture.reads
    ]
    shown = ", ".join(read[:3]) + (f" and {len(read) - 3} more" if len(read) > 3 else "")
    return f" It is mixed: computed as of sequence {known.mixture.as_of}, when {shown} was not up to date."


def versions_text(graph: Graph, known: PartHistory) -> str:
    """The end of such an answer: which versions of forward dimensions the part reads, and why."""
    told = "".join(f" {version_text(graph, item)}." for item in (*known.versions, *known.window_versions))
    return f"{told} Rows of earlier parts of a window keep the version of theirs." if known.window_versions else told


_SIMPLE = {
    "expired": "{name} is expired: it was removed by the rule `keep` of {table}.",
}


def _fresh(name: str, known: PartHistory, zone: str) -> str:
    number = known.revisions[0].revision if known.revisions else 1
    rows, when = plural(known.rows or 0, "row"), moment_text(known.last_updated, zone)
    if known.table.kind == "view":
        return f"{name} is up to date: {rows}, revision {number}, changed last at {when}."
    late = "" if number == 1 else f", changed {plural(number - 1, 'time')} since it was {_first(known)}"
    return f"{name} is {_first(known)}: {rows}, revision {number}{late}, last at {when}."


def _first(known: PartHistory) -> str:
    return "loaded" if known.table.kind == "dimension" else "closed"


def _failed(name: str, known: PartHistory, zone: str) -> str:
    failure = known.failure
    assert failure is not None
    if failure.kind == "check":
        return _held(name, known, zone)
    often = "once" if failure.attempts == 1 else f"{failure.attempts} times"
    again = (
        "It is tried again when one of its inputs or its definition changes, or on request (`partwise backfill`)."
        if failure.retry_at is None
        else f"It is tried again at {moment_text(failure.retry_at, zone)}."
    )
    kept = " Its previous content is still there." if known.exists else ""
    return f"{name} failed {often}, last at {moment_text(failure.at, zone)}. {again}{kept}"


def _held(name: str, known: PartHistory, zone: str) -> str:
    """A part that did not pass its checks."""
    failure, table = known.failure, known.table
    assert failure is not None
    part = "" if table.kind == "dimension" else f" {part_text(known.part, table.length)}"
    after = (
        "one of its inputs or its checks change, or on request (`partwise backfill`)"
        if table.kind == "view"
        else "its files are corrected or its checks change"
    )
    kept = "Its previous content is still there." if known.exists else "It is not readable."
    if table.kind == "source" and not known.exists and known.rows:
        kept = f"It is not readable; its {plural(known.rows, 'row')} are kept."
    accept = f"`partwise run --accept {table.name}{part or ' all'}` publishes it as it is."
    at = moment_text(failure.at, zone)
    return f"{name} failed its checks at {at}. {kept} It is checked again when {after}; {accept}"


def _due(graph: Graph, name: str, known: PartHistory, zone: str) -> str:
    """Stale, missing, blocked or left to people: all of them are due for a cause."""
    cause = known.cause.text(graph, not known.exists) if known.cause else "unknown"
    since = moment_text(known.since, zone)
    head = (
        f"{name} is stale since {since}: {cause}." if known.exists else f"{name} was never built: {cause} at {since}."
    )
    if known.state == "manual":
        first = part_text(known.part, known.table.length)
        return f"{head} Its view is repaired manually: `partwise backfill {known.table.name} {first}`."
    if (late := known.deferred) is not None:
        until = f" Its view refreshes by {moment_text(late.fires_at, zone)}"
        soon = f" or sooner ({'; '.join(late.waits_for)})" if late.waits_for else ""
        kept = f"; what is published is exact as of {moment_text(known.last_updated, zone)}" if known.exists else ""
        return f"{head[:-1]}; deferred.{until}{soon}{kept}. `partwise run --now` does not wait."
    if known.state != "blocked":
        after = ", after the parts before it" if known.lacks else ""
        return f"{head} Everything it requires is there and fresh, so the next run computes it{after}."
    waits = [
        f"{w.table}{'' if graph[w.table].kind == 'dimension' else f'[{range_text(w.parts, graph[w.table].length)}]'}"
        f" is {w.state}"
        for w in known.waits_for
    ]
    return f"{head} It waits: {'; '.join(waits) or 'something further upstream is about to change'}."


def _waits(graph: Graph, known: PartHistory) -> str:
    text = next_text(graph, Next(known.table.name, known.part, known.lacks))
    return f"It{text[text.index('] ') + 1 :]}."
