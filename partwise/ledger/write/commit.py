"""Recording what was computed. One transaction: revisions, as-of, what is due next, the version.

The same code records a step that has just committed its data and an orphan: a Delta commit whose
step died before it reached the ledger, described by the entry in the commit's metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from dataclasses import fields as fields_of
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select, update

from partwise.ledger.catalog import Catalog, Settled, settled
from partwise.ledger.database import Reading, Writing
from partwise.ledger.read.born import Born, borns, repinned_since, same_birth, stored, to_store, versions
from partwise.ledger.read.part_facts import LedgerParts
from partwise.ledger.read.validity import changed_since
from partwise.ledger.records.dimension_changes import Met, changes_since, note_change
from partwise.ledger.records.files import Delivery, take_in
from partwise.ledger.records.mixtures import lift, mark, to_text
from partwise.ledger.records.refreshes import count_rows
from partwise.ledger.runs import clear, due_rows, existing, paint, renew, set_existing
from partwise.ledger.schema import (
    arrival,
    catalog,
    checked,
    decision,
    due,
    failure,
    generation,
    lost,
    mixed,
    open_part,
    part,
    revision,
    version,
)
from partwise.ledger.write.define import begin_anew
from partwise.ledger.write.due_painting import frozen_below, look_at_readers, spread
from partwise.ledger.write.rebuilding import become_whole, found_again, lost_parts, rebuilt_since
from partwise.ledger.write.sample_starts import follow_start
from partwise.ledger.write.start_moves import move_on
from partwise.parts import FOREVER, Parts, Range
from partwise.plan.mixing import Read
from partwise.plan.model import Cause, parts_of_due
from partwise.plan.reach import EVERYTHING, buildable, inputs_exist
from partwise.tables import Graph, Input, Table

_OLD = select(part).where(part.c.table == bindparam("t"), part.c.part.between(bindparam("a"), bindparam("b")))
_LOST = select(lost).where(lost.c.table == bindparam("t"), lost.c.part.between(bindparam("a"), bindparam("b")))
_PART_ADD = insert(part)
_PART_SET = (
    update(part)
    .where(part.c.table == bindparam("t"), part.c.part == bindparam("p"))
    .values({name: bindparam(f"v_{name}") for name in (c.name for c in part.c) if name not in ("table", "part")})
)
_REVISION_ADD = insert(revision)
_VERSION_ADD = insert(version)
_VERSION = (
    select(version.c.version)
    .where(version.c.table == bindparam("t"), version.c.generation == bindparam("g"))
    .order_by(version.c.seq.desc())
    .limit(1)
)
FAILURE_DROP = delete(failure).where(failure.c.table == bindparam("t"), failure.c.part == bindparam("p"))
_ARRIVAL_ADD = insert(arrival)
_OPEN_DROP = delete(open_part).where(open_part.c.table == bindparam("t"), open_part.c.part == bindparam("p"))
_OPEN_ADD = insert(open_part)
_UPDATED = update(catalog).where(catalog.c.table == bindparam("t")).values(updated_at=bindparam("a"))
_START = update(catalog).where(catalog.c.table == bindparam("t")).values(start=bindparam("s"))
_FINGERPRINT = select(catalog.c.fingerprint).where(catalog.c.table == bindparam("t"))
#: A new generation is whole once nothing is due any more that was due when its first version was recorded.
_WHOLE = (
    update(generation)
    .where(
        generation.c.table == bindparam("t"),
        generation.c.generation == bindparam("g"),
        generation.c.whole_seq.is_(None),
        ~select(due.c.lo)
        .where(
            due.c.table == bindparam("t"),
            due.c.since_seq
            <= select(func.min(version.c.seq))
            .where(version.c.table == bindparam("t"), version.c.generation == bindparam("g"))
            .scalar_subquery(),
        )
        .exists(),
    )
    .values(whole_seq=bindparam("s"))
)
_NEWEST = select(func.max(part.c.changed_seq)).where(
    part.c.table == bindparam("t"), part.c.part.between(bindparam("a"), bindparam("b"))
)
_NEWEST_LOST = select(func.max(lost.c.changed_seq)).where(
    lost.c.table == bindparam("t"), lost.c.part.between(bindparam("a"), bindparam("b"))
)


class Gap(Exception):
    """A version that does not follow the last one the ledger knows: others must be adopted first."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a part holds, as far as the ledger cares."""

    rows: int
    digest: str


#: A part without rows; the digest is the one that engines compute for no rows.
EMPTY = Content(0, "0:" + 32 * "0")


@dataclass(frozen=True)
class Entry:
    """A step as recorded in the metadata of its Delta commit, and then in the ledger.

    `parts` holds every part that was computed, the unchanged ones too. `pin` is the sequence at
    which other tables were read; a source, which reads none, has None there.
    """

    table: str
    generation: int
    fingerprint: str
    pin: int | None
    start: int | None = None
    parts: Mapping[int, Content] = field(default_factory=dict)
    reason: str = ""
    arrived: Mapping[int, int] = field(default_factory=dict)  # rows that came in, for the lateness curve
    floor: int | None = None  # retention: parts below it are gone
    open: Mapping[int, Content] = field(default_factory=dict)  # source parts with rows that are not closed yet
    delivery: Delivery | None = None  # which files brought the rows of a source
    mixed: Mapping[int, tuple[Read, ...]] = field(default_factory=dict)  # inputs that were not up to date at the pin
    #: Of a dimension whose rows are valid for a time: from when to when what is valid changed; None: not known.
    times: tuple[Range, ...] | None = None
    met: tuple[Met, ...] = ()  # of a dimension: which parts of other tables hold keys that change
    base: int | None = None  # changes were merged into what this version holds; None: contents stand by themselves

    def follows(self, version: int) -> bool:
        """Whether it is right as this version: what was merged into another content than the one before is not."""
        return self.base is None or self.base == version - 1

    def refused(self) -> Entry:
        """What the ledger makes of it then: its parts hold nobody knows what, and are computed again."""
        unknown = {p: Content(content.rows, "unknown") for p, content in self.parts.items()}
        return replace(self, fingerprint="", parts=unknown, base=None)

    def to_json(self) -> dict[str, Any]:
        raw: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields_of(self)}
        raw["parts"] = [[p, c.rows, c.digest] for p, c in self.parts.items()]
        raw["arrived"] = [[p, n] for p, n in self.arrived.items()]
        raw["open"] = [[p, c.rows, c.digest] for p, c in self.open.items()]
        raw["delivery"] = self.delivery.to_json() if self.delivery else None
        raw["times"] = None if self.times is None else [list(time) for time in self.times]
        raw["met"] = [met.to_json() for met in self.met]
        raw["mixed"] = [[p, [list(read) for read in reads]] for p, reads in self.mixed.items()]
        return raw

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Entry:
        fields = dict(raw)
        fields["parts"] = {p: Content(rows, digest) for p, rows, digest in raw["parts"]}
        fields["arrived"] = dict(raw["arrived"])
        fields["open"] = {p: Content(rows, digest) for p, rows, digest in raw["open"]}
        fields["delivery"] = Delivery.from_json(raw["delivery"]) if raw.get("delivery") else None
        fields["times"] = None if raw.get("times") is None else tuple(Range(*time) for time in raw["times"])
        fields["mixed"] = {p: tuple((t, lo, hi) for t, lo, hi in reads) for p, reads in raw.get("mixed", ())}
        fields["met"] = tuple(Met.from_json(met) for met in raw.get("met", ()))
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a commit changed. `seq` is its sequence."""

    seq: int
    changed: Parts
    unchanged: Parts


def known_version(r: Reading, table: str, generation: int) -> int | None:
    """The last Delta version of a table that the ledger knows; None before the first."""
    found: int | None = r.on.execute(_VERSION, {"t": table, "g": generation}).scalar()
    return found


def record(w: Writing, store: Catalog, entry: Entry, new_version: int | None) -> Recorded:
    """Record computed parts. `new_version`: the Delta version that made them visible; None if all were unchanged."""
    graph = store.graph(w)
    if entry.table not in graph.tables:
        return Recorded(w.seq, Parts(), Parts())  # retired since; its commits are adopted if it comes back
    table, now = graph[entry.table], settled(w, entry.table)
    if now.generation != entry.generation:
        return Recorded(w.seq, Parts(), Parts())  # parts of a table that has been replaced since
    if table.kind == "view" and entry.parts and _is_foreign(w, table, now, entry):
        begin_anew(w, graph, table.name)
        return Recorded(w.seq, Parts(), Parts())
    if new_version is not None:
        _add_version(w, entry, new_version)
    if entry.floor is not None:
        _expire(w, store, entry.table, entry.floor)
    if table.kind == "source" and entry.open:
        entry = _closed_meanwhile(w, entry)
    computed = Parts.single(*entry.parts)
    _write_arrivals(w, entry)
    born = {}
    if table.name in graph.bearing and entry.parts:
        born = borns(w, table, _start_of(now, entry), entry.parts)
    changed, created, reborn, overtaken = _write_parts(w, entry, new_version, born, table)
    set_existing(w, table.name, add=created)
    began = False
    if table.kind == "source":
        _set_open(w, entry)
        if began := bool(created) and (now.start is None or created.first < now.start):
            w.on.execute(_START, {"t": table.name, "s": created.first})
    if entry.delivery is not None:
        take_in(w, entry.table, entry.delivery, swept=new_version is not None)
    if table.kind == "view":
        pin = -1 if entry.pin is None else entry.pin
        clear(w, table.name, computed, up_to=pin)
        renew(w, table.name, computed)
        if now.start is None and entry.start is not None:
            # Until now `due` followed a start that may have moved since the pin: look what is due by this one.
            _settle(w, table, entry.start)
            began = True
            clear(w, table.name, computed)
            overtaken = list(computed)
        if entry.start is not None:
            if created and rebuilt_since(w, [n for n in table.input_names if n != table.name], pin):
                # While its inputs were gone nobody could paint it, and when they came back it was painted as never
                # built: what it was made from decides.
                inputs = (
                    row for row in due_rows(w, table.name, created.first, created.last) if row.cause.kind == "input"
                )
                clear(w, table.name, created & Parts.of(*((row.lo, row.hi) for row in inputs)))
                overtaken = [*overtaken, *created]
            _look_again(w, graph, table, entry.start, pin, overtaken)
        if began and table.helper_of is None:
            follow_start(w, graph, table.name)
        if w.on.execute(_FINGERPRINT, {"t": table.name}).scalar() != entry.fingerprint:
            paint(w, table.name, computed, Cause("definition"))
        mark(w, table.name, computed, entry.mixed, pin)
    if table.rolling and computed:
        _forget_before(w, store, table.name, computed.last)
    if computed:
        w.on.execute(FAILURE_DROP, [{"t": table.name, "p": p} for p in computed])
    found_again(w, graph, table.name, created & lost_parts(w, table.name))
    if table.forward and not _is_first_version(w, table.name):
        touched = Parts()  # it counts for what comes to exist from now on
    else:
        touched = changed | reborn
        arrived = sum(entry.arrived.values()) or sum(c.rows for p, c in entry.parts.items() if p in changed)
        count_rows(w, graph, table.name, arrived)
    # Of one whose rows are valid for a time the times of a change say which parts it concerns.
    noted = table.kind == "dimension" and touched and not table.timed
    met = note_change(w, table.name, entry.met) if noted else {}
    spread(w, graph, table.name, touched, skip=computed, times=entry.times, met=met)
    if began:
        look_at_readers(w, graph, table.name)
    lift(w, graph, table.name)
    if now.generation and table.kind == "view" and entry.parts:
        w.on.execute(_WHOLE, {"t": table.name, "g": now.generation, "s": w.seq})
    if changed:
        w.on.execute(_UPDATED, {"t": table.name, "a": w.at})
    emptied = Parts.single(*(p for p in changed - created if not entry.parts[p].rows))
    if changed:
        move_on(w, graph, table.name, emptied)
    return Recorded(w.seq, changed, computed - changed)


def _closed_meanwhile(w: Writing, entry: Entry) -> Entry:
    """An orphan may bring rows for parts that were closed manually after its writer looked: they are late rows."""
    there = existing(w, entry.table, min(entry.open), max(entry.open))
    closed = {p: c for p, c in entry.open.items() if p in there}
    if not closed:
        return entry
    still = {p: c for p, c in entry.open.items() if p not in there}
    return replace(entry, parts={**entry.parts, **closed}, open=still)


def _set_open(w: Writing, entry: Entry) -> None:
    """Remember what open parts hold; closed ones are parts like any other."""
    gone = [{"t": entry.table, "p": p} for p in {*entry.parts, *entry.open}]
    if gone:
        w.on.execute(_OPEN_DROP, gone)
    # A part that lost its rows again is no longer open: it never was there for anyone.
    there = {p: c for p, c in entry.open.items() if c.rows}
    if there:
        rows = [{"table": entry.table, "part": p, "rows": c.rows, "digest": c.digest} for p, c in there.items()]
        w.on.execute(_OPEN_ADD, rows)


def _is_foreign(w: Writing, view: Table, now: Settled, entry: Entry) -> bool:
    """Whether the entry built parts by a definition replaced meanwhile, and by today's they would not exist.

    They cannot be made undone in place, since readers see them: the view begins again.
    """
    if w.on.execute(_FINGERPRINT, {"t": view.name}).scalar() == entry.fingerprint:
        return False
    if now.start is None:
        return True
    built = existing(w, view.name)
    new = Parts.single(*entry.parts) - built
    return bool(new - buildable(view, now.start, new, built, LedgerParts(w)))


def _add_version(w: Writing, entry: Entry, new_version: int) -> None:
    last = known_version(w, entry.table, entry.generation)
    if last is not None and new_version != last + 1:
        raise Gap(f"{entry.table}: version {new_version} after {last}")
    w.on.execute(
        _VERSION_ADD,
        {"table": entry.table, "seq": w.seq, "generation": entry.generation, "version": new_version, "at": w.at},
    )


def _write_parts(
    w: Writing, entry: Entry, new_version: int | None, born: Mapping[int, Born], table: Table
) -> tuple[Parts, Parts, Parts, list[int]]:
    """Upsert the part rows; a revision only where the content differs. `born`: of parts of views where it matters.
    New versions of a dimension that changes forward are no change for what there is.

    Returns what changed, what is new, what kept its content but was born at another time than was thought, and what was
    overtaken: parts that another step has found unchanged, and no longer due, from newer inputs than these (it made no
    commit of its own, so it did not keep this one, a zombie's, from being made).
    """
    if not entry.parts:
        return Parts(), Parts(), Parts(), []
    span = {"t": entry.table, "a": min(entry.parts), "b": max(entry.parts)}
    superseded = _superseded(w, entry)
    old = {row.part: row for row in w.on.execute(_OLD, span)}
    was = {row.part: row for row in w.on.execute(_LOST, span)}  # of a table that is being made again
    add: list[dict[str, Any]] = []
    alter: list[tuple[int, dict[str, Any]]] = []
    history: list[dict[str, Any]] = []
    reborn: list[int] = []
    for p, content in sorted(entry.parts.items()):
        before = old.get(p)
        known = before or was.get(p)
        values: dict[str, Any] = {
            "revision": 1,
            "changed_seq": w.seq,
            "as_of": w.seq if entry.pin is None else entry.pin,
            "self_as_of": w.seq,
            "fingerprint": entry.fingerprint,
            "rows": content.rows,
            "digest": content.digest,
            "version": new_version,
            "updated_at": w.at,
            **to_store(born.get(p)),
        }
        if entry.pin is None:  # a source part is born once
            values |= {"born": w.seq if known is None else known.born, "born_at": p * table.length}
            if table.forward and known is not None:
                values["changed_seq"] = known.changed_seq
        elif p in born and known is not None and known.digest == content.digest:
            birth = None if known.born is None else stored(known.born, known.born_at)
            if not same_birth(birth, born[p]):
                reborn.append(p)
        if before is None and p in was:
            values["revision"] = was[p].revision + 1
            if was[p].digest == content.digest:
                values |= {name: getattr(was[p], name) for name in ("revision", "changed_seq", "updated_at")}
                values |= {"changed_seq": w.seq} if p in reborn[-1:] else {}
            add.append({"table": entry.table, "part": p, **values})
            if was[p].digest == content.digest:
                continue
        elif before is None:
            add.append({"table": entry.table, "part": p, **values})
        elif before.digest == content.digest:
            keep = {name: getattr(before, name) for name in ("revision", "changed_seq", "version", "updated_at")}
            keep |= {"changed_seq": w.seq} if p in reborn[-1:] else {}
            alter.append((p, values | keep))
            continue
        else:
            values["revision"] = before.revision + 1
            alter.append((p, values))
        change = {"table": entry.table, "part": p, "seq": w.seq, "at": w.at, "reason": entry.reason}
        if entry.pin is not None:
            mixed = to_text(entry.mixed[p]) if p in entry.mixed else None
            change |= {"as_of": entry.pin, "mixed": mixed, "superseded": p in superseded}
        history.append(change | {name: values[name] for name in ("revision", "rows", "digest")})
    if add:
        w.on.execute(_PART_ADD, add)
    if alter:
        w.on.execute(
            _PART_SET, [{"t": entry.table, "p": p} | {f"v_{k}": v for k, v in new.items()} for p, new in alter]
        )
    if history:
        w.on.execute(_REVISION_ADD, history)
    changed, created = Parts.single(*(row["part"] for row in history)), Parts.single(*(row["part"] for row in add))
    overtaken = [p for p in entry.parts if p in old and entry.pin is not None and old[p].as_of > entry.pin]
    return changed, created, Parts.single(*reborn), overtaken


def _start_of(now: Settled, entry: Entry) -> int:
    return next((start for start in (now.start, entry.start) if start is not None), -FOREVER)


def _is_first_version(w: Writing, dimension: str) -> bool:
    return len(versions(w, dimension).contents) <= 1


def _superseded(w: Writing, entry: Entry) -> Parts:
    """Parts of which an input changed after the pin: they are published, though not the latest at their commit."""
    if entry.pin is None:
        return Parts()
    rows = due_rows(w, entry.table, min(entry.parts), max(entry.parts))
    return Parts.of(*((row.lo, row.hi) for row in rows if row.seq > entry.pin and row.cause.kind == "input"))


def _write_arrivals(w: Writing, entry: Entry) -> None:
    """Rows came in, for parts that exist (late) or not yet: the lateness curve of a source."""
    if entry.arrived:
        stamp = {"table": entry.table, "seq": w.seq, "at": w.now}  # how late they are goes by a clock
        there = existing(w, entry.table, min(entry.arrived), max(entry.arrived))
        w.on.execute(
            _ARRIVAL_ADD, [{**stamp, "part": p, "rows": n, "late": p in there} for p, n in entry.arrived.items()]
        )


def _settle(w: Writing, view: Table, start: int) -> None:
    """The view's first part is built, so its start is fixed, whatever the rule would say by now."""
    w.on.execute(_START, {"t": view.name, "s": start})
    built = existing(w, view.name)
    wanted = inputs_exist(view, start, EVERYTHING, LedgerParts(w)) - built
    already = parts_of_due(due_rows(w, view.name))
    clear(w, view.name, (already - wanted - built) | Parts.of((-FOREVER, start - 1)))
    paint(w, view.name, wanted - already, Cause("start"))


def _look_again(w: Writing, graph: Graph, view: Table, start: int, pin: int, parts: Iterable[int]) -> None:
    """Paint those of `parts` whose inputs changed after the pin, though nobody painted them then."""
    for j in parts:
        for item in view.initial if j == start else view.inputs:
            if item.table == view.name:
                continue
            if item.reference is None and repinned_since(w, item.table, view.name, j, pin):
                paint(w, view.name, Parts.single(j), Cause("repin", item.table))
                break
            if item.table in graph.timed:
                if changed_since(w, graph, item.table, view, start, j, pin) > pin:
                    paint(w, view.name, Parts.single(j), Cause("input", item.table))
                    break
                continue
            if _changed_since(w, view, item, j, pin):
                paint(w, view.name, Parts.single(j), Cause("input", item.table))
                break


def _changed_since(r: Reading, view: Table, item: Input, j: int, seq: int) -> bool:
    if item.reference is None:
        return changes_since(r, view, item.table, seq).newest(j) > seq
    lo, hi = item.reference.requires(j)
    span = {"t": item.table, "a": lo, "b": hi}
    newest = [n for query in (_NEWEST, _NEWEST_LOST) if (n := r.on.execute(query, span).scalar()) is not None]
    return any(n > seq for n in newest)


def _forget_before(w: Writing, store: Catalog, table: str, newest: int) -> None:
    """A rolling table holds its newest part alone: those before it are gone, built or not."""
    w.on.execute(delete(mixed).where(mixed.c.table == table, mixed.c.part < newest))
    _expire(w, store, table, newest)


def _expire(w: Writing, store: Catalog, table: str, floor: int) -> None:
    """Parts below the floor are expired, which is neither missing nor a revision. Nothing that needs them is due."""
    set_existing(w, table, remove=Parts.of((-FOREVER, floor - 1)))
    for rows in (part, lost, checked, decision):
        w.on.execute(delete(rows).where(rows.c.table == table, rows.c.part < floor))
    w.on.execute(update(catalog).where(catalog.c.table == table).values(floor=floor))
    become_whole(w, table)
    graph = store.graph(w)
    for name in (table, *graph.consumers.get(table, ())):
        below = floor if name == table else -FOREVER
        if graph[name].kind == "view":
            below = frozen_below(w, graph[name], settled(w, name))
            clear(w, name, Parts.of((-FOREVER, below - 1)))
        w.on.execute(delete(failure).where(failure.c.table == name, failure.c.part < below))
