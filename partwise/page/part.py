"""Everything about one part, and the summary of a cell of many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from partwise.cli.views.part_state import as_it_was, behind, mixture_text, sentence, versions_text
from partwise.ledger.read.history import history
from partwise.ledger.read.snapshot import Snapshot
from partwise.ledger.records import checks
from partwise.ledger.records.writers import Writer, writer_at
from partwise.page import queries
from partwise.page.ask import BadAsk, HeatWindow
from partwise.page.cells import states_of
from partwise.page.checked import CheckLine, lines_of
from partwise.page.heat import MARKED, facts_of
from partwise.page.linked import LinkedParts, computed_from, downstream, linked, texts, upstream
from partwise.page.states import Word
from partwise.parts import Parts, Range, part_text, range_text
from partwise.tables import DIMENSION_PART, Table

#: Of more parts than this in one cell the rows are not added up.
ADDED = 20_000
#: The server does not know the reader's zone, so its sentences name theirs; plain "UTC" would go without saying.
ZONE = "Etc/UTC"


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A cell of the heat-map. `part` if it is one; `rows`, `revision` and `updated` are of what exists. `counts` as in
    the heat-map: what is repaired or empty is counted once more under these words."""

    table: str
    parts: str
    count: int
    part: str | None
    begin: int
    end: int
    counts: Mapping[Word, int]
    rows: int | None
    revision: int | None
    updated: float | None


@dataclass(frozen=True, slots=True)
class RevisionLine:
    revision: int
    rows: int
    at: float
    reason: str
    writer: Writer | None


@dataclass(frozen=True, slots=True)
class FailureLine:
    kind: str
    message: str
    attempts: int
    at: float
    retry_at: float | None
    writer: Writer | None


@dataclass(frozen=True, slots=True)
class PartDetails:
    """`why` is a sentence for people, with times in UTC, and says more exactly than `state` what is the matter; other
    times are seconds since 1970. `dag`: the DAG that computes the table,
    `run`: its run that is at work. `upstream` and `downstream`: what it requires and feeds, generated helpers looked
    through. `sampled`: whether `/estimate` knows more."""

    table: str
    kind: str
    helper_of: str | None
    part: str | None
    begin: int
    end: int
    state: Word
    why: str
    reason: str | None
    since: float | None
    rows: int | None
    revision: int | None
    updated: float | None
    requires: tuple[LinkedParts, ...]
    computed_from: tuple[LinkedParts, ...]
    feeds: tuple[LinkedParts, ...]
    upstream: tuple[LinkedParts, ...]
    downstream: tuple[LinkedParts, ...]
    revisions: tuple[RevisionLine, ...]
    failure: FailureLine | None
    checks: tuple[CheckLine, ...]
    mixed: bool
    sampled: bool
    writer: str | None
    dag: str
    run: str | None


def cell(snapshot: Snapshot, table: Table, begin: int, end: int, within: int = MARKED) -> HeatCell:
    """The parts of a table that begin between two moments."""
    if begin >= end:
        raise BadAsk(f"from ({begin}) must be before to ({end}).")
    length = table.length
    span = Range(-(-begin // length), -(-end // length) - 1)
    if table.kind == "dimension":
        span, length = Range(DIMENSION_PART, DIMENSION_PART), 1
    if span.lo > span.hi:
        span = Range(begin // length, begin // length)  # a moment inside a part means that part
    counts: dict[Word, int] = {word: parts.count for word, parts in _states(snapshot, table, span).items()}
    rows = revision = updated = None
    if span.size <= ADDED:
        rows, revision, updated = queries.summary(snapshot.r, table.name, span)
        if revision is None:
            rows = None
        again: dict[Word, Parts] = {
            "repaired": queries.changed_parts(snapshot.r, table.name, span, snapshot.now - within),
            "empty": queries.empty_parts(snapshot.r, table.name, span),
        }
        counts |= {word: parts.count for word, parts in again.items() if parts}
    one = span.lo == span.hi
    text = "all of it" if table.kind == "dimension" else range_text(span, length)
    part = part_text(span.lo, length) if one and table.kind != "dimension" else None
    return HeatCell(
        table.name, text, span.size, part, span.lo * length, (span.hi + 1) * length, counts, rows, revision, updated
    )


def _states(snapshot: Snapshot, table: Table, span: Range) -> dict[Word, Parts]:
    """As the heat-map has it."""
    length = 1 if table.kind == "dimension" else table.length
    shown = HeatWindow(span.lo * length, (span.hi + 1) * length, length)
    facts = facts_of(snapshot, shown, {table.name: span})[table.name]
    found = {word: kept.within(*span) for word, kept in states_of(table, facts).items()}
    return {word: parts for word, parts in found.items() if parts}


def _word(snapshot: Snapshot, table: Table, p: int, since: float) -> Word:
    """The state of one part, by the word and colour that its cell has in the heat-map."""
    span = Range(p, p)
    word = next(iter(_states(snapshot, table, span)), None)
    if word != "fresh":
        return word or "none"
    if queries.changed_parts(snapshot.r, table.name, span, since):
        return "repaired"
    return "empty" if queries.empty_parts(snapshot.r, table.name, span) else "fresh"


def details(snapshot: Snapshot, table: Table, p: int, within: int = MARKED) -> PartDetails:
    """`within`: repairs of so many last seconds make a fresh part a repaired one."""
    known = history(snapshot, table.name, p)
    graph, failed = snapshot.graph, known.failure
    dimension = table.kind == "dimension"
    newest = known.revisions[0].revision if known.revisions else None
    writer = queries.writers(snapshot.r, snapshot.now).get(table.name)
    checked = checks.kept(snapshot.r, table.name, p)
    return PartDetails(
        table=table.name,
        kind=table.kind,
        helper_of=table.helper_of,
        part=None if dimension else part_text(p, table.length),
        begin=0 if dimension else p * table.length,
        end=0 if dimension else (p + 1) * table.length,
        state=_word(snapshot, table, p, snapshot.now - within),
        why=sentence(graph, known, ZONE)
        + behind(snapshot, known.lacks)
        + as_it_was(graph, known.held)
        + mixture_text(graph, known)
        + versions_text(graph, known),
        reason=known.cause.text(graph, not known.exists) if known.cause else None,
        since=known.since,
        rows=known.rows,
        revision=newest if known.exists else None,
        updated=known.last_updated,
        requires=tuple(
            linked(graph, need.table, need.needed, texts(graph[need.table], need.missing)) for need in known.needs
        ),
        computed_from=tuple(computed_from(graph, known)),
        feeds=tuple(linked(graph, item.table, item.parts) for item in known.feeds),
        upstream=tuple(upstream(snapshot, known)),
        downstream=tuple(downstream(snapshot, known)),
        revisions=tuple(
            RevisionLine(item.revision, item.rows, item.at, item.reason, item.writer) for item in known.revisions
        ),
        failure=None
        if failed is None
        else FailureLine(
            failed.kind,
            failed.message,
            failed.attempts,
            failed.at,
            failed.retry_at,
            writer_at(snapshot.r, table.name, failed.at),
        ),
        checks=() if checked is None else tuple(lines_of(table, checked)),
        mixed=known.mixture is not None,
        sampled=f"{table.name}__sample" in graph.tables,
        writer=writer,
        dag=table.helper_of or table.name,
        run=queries.runs(snapshot.r).get(table.helper_of or table.name),
    )
