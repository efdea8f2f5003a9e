"""The two commits of an ingest: the data with the entry in their metadata, then the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from partwise import storage
from partwise.definitions import Source
from partwise.ledger.records.files import Delivery
from partwise.ledger.write.commit import EMPTY, Content, Entry
from partwise.parts import Parts, range_text
from partwise.sources.closing import MOST_EMPTY, Closing
from partwise.storage import File
from spark_jobs.checks.source import checked_source, tell, warnings_of
from spark_jobs.ingest.closing import complete_parts
from spark_jobs.ingest.job import Job


@dataclass(frozen=True)
class TableChange:
    """What happens to a table: files, what parts hold afterwards, and what came in."""

    adds: Sequence[File] = ()
    removes: Sequence[File] = ()
    touched: Mapping[int, Content] = field(default_factory=dict)
    arrived: Mapping[int, int] = field(default_factory=dict)
    delivery: Delivery | None = None
    reason: str = ""
    asked: bool = False  # somebody wants rows out: no brake stops it


@dataclass(frozen=True)
class Published:
    closed: Parts = field(default_factory=Parts)
    changed: Parts = field(default_factory=Parts)
    late_rows: int = 0
    notes: tuple[str, ...] = ()
    failed: Mapping[int, str] = field(default_factory=dict)
    warned: Mapping[int, str] = field(default_factory=dict)


def publish(work: Job, change: TableChange, close: bool = True) -> Published:
    """Commit a change of a source, and close what is complete by now. Does nothing if there is nothing to do.

    Parts that fail their checks are not closed. Raises HeldBack if one that exists would fail.
    """
    state, source = work.state, work.table
    assert isinstance(source, Source)
    opened = {p: c for p, c in {**state.opened, **change.touched}.items() if p not in state.existing and c.rows}
    closing = Closing(Parts())
    if close:
        seen = change.delivery.watermark if change.delivery else None
        closing = complete_parts(work.engine.ledger, work.workspace, source, state, Parts.single(*opened), seen)
    before = work.contents(change.touched)
    late = {p: c for p, c in change.touched.items() if p in state.existing}
    differs = {p: c for p, c in late.items() if before[p].digest != c.digest}
    names = {f.id: f.name for f in (*state.files.values(), *(change.delivery.files if change.delivery else ()))}
    complete = {p: opened.get(p, EMPTY) for p in closing.parts}
    checked, not_closed = checked_source(work, change.adds, change.removes, differs, complete, names, change.asked)
    bad = {p: found.message() for p, found in checked.items() if not found.published}
    closed = closing.parts - not_closed
    parts = {**late, **{p: complete[p] for p in closed}}
    warned = warnings_of(checked)
    tell(work, checked.values(), fine=late.keys() - differs.keys())
    still = {p: c for p, c in change.touched.items() if p not in parts}
    changed = Parts.single(*differs)
    notes = tuple(
        f"{range_text(gap, source.part)}: {gap.size} parts without rows are too many to be a gap (more than {MOST_EMPTY}); "
        "an event time is probably wrong. They are not closed; bound event times with `late`, or retract the file."
        for gap in closing.left
    )
    if not (change.adds or change.removes or parts or still or change.delivery):
        return Published(notes=notes, failed=bad)
    entry = Entry(
        table=work.name,
        generation=state.generation,
        fingerprint=work.fingerprint,
        pin=None,
        parts=parts,
        reason=change.reason or "closed",
        arrived=change.arrived,
        open=still,
        delivery=change.delivery,
    )
    record(work, entry, change.adds, change.removes)
    late_rows = sum(n for p, n in change.arrived.items() if p in state.existing)
    return Published(closed, changed, late_rows, notes, bad, warned)


def record(work: Job, entry: Entry, adds: Sequence[File], removes: Sequence[File], schema: str | None = None) -> None:
    """One compare-and-swap commit of the data, if they change, then the ledger."""
    engine, version = work.engine, None
    stored = {"kind": "ingest", "entry": entry.to_json()}
    engine.passed("ready")
    if schema is not None:
        version = storage.replace(work.handle, schema, adds, stored)
    elif adds or removes:
        version = storage.commit(work.handle, adds, removes, stored)
    engine.passed("committed")
    engine.ledger.commit(work.held, entry, version, engine.now(), keep=True)
    engine.passed("recorded")
    work.settle(committed=version is not None)
