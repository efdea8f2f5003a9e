"""The pin: one snapshot that fixes what a step computes and what it reads.

A plan or an event is a hint. What a step really computes is decided here, under the table's lease,
after orphans have been adopted: the asked parts that are due and ready now. Nothing left to do is
an ordinary outcome.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from sqlalchemy import bindparam, select, union_all

from partwise.ledger.catalog import Catalog, settled
from partwise.ledger.database import Reading
from partwise.ledger.facts import LedgerFacts
from partwise.ledger.read.born import Born, borns, read_versions, same_birth, stored
from partwise.ledger.read.born import versions as versions_of
from partwise.ledger.runs import due_rows, existing
from partwise.ledger.schema import part, promise, revision, version
from partwise.ledger.write.commit import Content, Entry, known_version
from partwise.ledger.write.leases import Lease, check
from partwise.parts import FOREVER, Parts, Range
from partwise.plan.mixing import Read, mixed_reads
from partwise.plan.moments import common_moments
from partwise.plan.planner import Look, look_around, steps_of
from partwise.plan.reach import inputs_exist, self_closure
from partwise.plan.walk import Walk
from partwise.tables import DIMENSION_PART, Table

_DIGESTS = select(
    part.c.part, part.c.rows, part.c.digest, part.c.as_of, part.c.fingerprint, part.c.born, part.c.born_at
).where(part.c.table == bindparam("t"), part.c.part.between(bindparam("a"), bindparam("b")))

_CHANGED = select(part.c.part).where(
    part.c.table == bindparam("t"),
    part.c.part.between(bindparam("a"), bindparam("b")),
    part.c.changed_seq > bindparam("s"),
)
#: Of parts that changed after a sequence, when they did: those without a revision of their own changed for readers, too.
_CHANGES = union_all(
    *(
        select(of.c.part, seq.label("seq")).where(
            of.c.table == bindparam("t"), of.c.part.between(bindparam("a"), bindparam("b")), seq > bindparam("s")
        )
        for of, seq in ((revision, revision.c.seq), (part, part.c.changed_seq))
    )
)
_VERSION_THEN = (
    select(version.c.generation, version.c.version)
    .where(version.c.table == bindparam("t"), version.c.seq <= bindparam("s"))
    .order_by(version.c.seq.desc())
    .limit(1)
)
#: Parts that no fewer versions of the inputs can stand for are not repaired.
_MOST_PASTS = 8


class DefinitionChanged(Exception):
    """The worker's definition of the table is not the ledger's: it must load its files again."""


@dataclass(frozen=True)
class Version:
    """Where a table's content is: its generation (a path) and Delta version; None before the first commit."""

    generation: int
    version: int | None


@dataclass(frozen=True, slots=True)
class Superseded:
    """A version of a forward dimension that another one has taken the place of. `at`: where the dimension had it."""

    seq: int
    rows: int
    loaded: float
    at: Version


@dataclass(frozen=True)
class Past:
    """Parts whose content is what today's query gave for these versions of its inputs.

    `changed` are the parts of inputs that have other content since then; files may be others for other reasons.
    """

    parts: Parts
    inputs: Mapping[str, Version]
    changed: Mapping[str, Parts] = field(default_factory=dict)


@dataclass(frozen=True)
class KeptParts:
    """Parts of a helper beside the table that hold what recomputation from this pin would give, and where they are."""

    at: Version
    rows: Mapping[int, int]


@dataclass(frozen=True)
class Pin:
    """What a step is to compute, and everything it may read, as of one sequence.

    `mixed`: of the parts that read inputs which are not up to date, those inputs.
    `past` has the due parts that may be repaired from what they hold: changed inputs are why they are due, and what
    these held before can still be read.
    """

    seq: int
    table: Table
    start: int
    due: Parts
    reach: Parts
    own: Version
    inputs: Mapping[str, Version]
    before: Mapping[int, Content]
    reason: str
    mixed: Mapping[int, tuple[Read, ...]] = field(default_factory=dict)
    past: tuple[Past, ...] = ()
    #: Of a rolling table what it holds now, if today's query made it: `changed` reaches over what the new part reads.
    shown: Past | None = None
    #: Of views whose parts have to know: when each is born, by all that it requires, and what the ledger knew before.
    born: Mapping[int, Born] = field(default_factory=dict)
    born_before: Mapping[int, Born | None] = field(default_factory=dict)
    #: Versions of forward dimensions that all parts of the step read, by dimension; each is named by its sequence.
    forward: Mapping[str, int] = field(default_factory=dict)
    #: Those of them that are no longer what the dimension holds.
    superseded: Mapping[str, Superseded] = field(default_factory=dict)
    #: Kept joins that the step may read in place of inputs, by helper.
    kept: Mapping[str, KeptParts] = field(default_factory=dict)

    def walk(self) -> Walk:
        return Walk(self.table, self.due, self.reach)

    def same(self, j: int, content: Content) -> bool:
        """Whether this is what the part holds already, born at the same time."""
        known = j in self.before and self.before[j].digest == content.digest
        return known and same_birth(self.born_before.get(j), self.born.get(j))

    def entry(self, parts: Mapping[int, Content]) -> Entry:
        return Entry(
            self.table.name,
            self.own.generation,
            self.table.fingerprint,
            self.seq,
            self.start,
            parts,
            self.reason,
            mixed={j: reads for j, reads in self.mixed.items() if j in parts},
        )


def pin(
    r: Reading,
    store: Catalog,
    held: Lease,
    now: float,
    asked: Parts | None,
    fingerprint: str | None,
    limit: int,
    beside: Collection[str] = (),
    facts: LedgerFacts | None = None,
    looks: Mapping[str, Look] | None = None,
) -> Pin | None:
    """Pin a step of at most `limit` parts, or None if nothing that was requested is due and ready.

    `beside` are helpers that the step may read if they are up to date; `facts` and `looks`: what is known of the same
    snapshot already.
    """
    check(r, held)
    graph = store.graph(r)
    if held.table not in graph.tables or fingerprint not in (None, graph[held.table].fingerprint):
        raise DefinitionChanged(held.table)
    table, facts = graph[held.table], facts or LedgerFacts(r)
    looks = look_around(graph, facts, now, {table.name}) if looks is None else looks
    look = looks.get(table.name)
    if look is None:
        return None
    ready = look.ready
    if asked is not None and table.rolling:
        # Newer parts may have come since: whoever asks for one gets the newest, or else nobody might ever.
        ready = ready if asked and ready and asked.first <= ready.last else Parts()
    elif asked is not None:
        # A part that reads earlier parts of its own table brings along those that are ready as well.
        ready = ready.within(-FOREVER, asked.last) if table.self_references and asked else ready & asked
    due = Parts.single(*(p for p, _ in zip(ready, range(limit), strict=False)))
    if not due:
        return None
    reach = Parts()
    if table.self_references:
        reach = existing(r, table.name, due.first + 1, due.first + limit) - due - look.barred
        if reach and any(facts.lost(name) for name in table.input_names):
            # What it reads of a table that is being made again may not be there: such parts are due when it is.
            absent = reach - inputs_exist(table, look.start, reach, facts)
            reach -= absent | self_closure(table, absent, reach.last) if absent else absent
    born = borns(r, table, look.start, due | reach) if table.name in graph.bearing else {}
    read = read_versions(r, graph, table, look.start, born)
    if read:
        due, reach = _of_one_version(table, due, reach, read)
    window = due | reach
    first = -FOREVER if table.rolling else window.first  # a rolling table has one part, which may be an earlier one
    rows = r.on.execute(_DIGESTS, {"t": table.name, "a": first, "b": window.last}).all()
    before = {row.part: Content(row.rows, row.digest) for row in rows}
    computed = {row.part: row.as_of for row in rows if row.fingerprint == table.fingerprint}
    reason = steps_of(graph, facts, looks, look, due)[0].reason
    versions = {name: version_of(r, name) for name in table.input_names}
    mixed = mixed_reads(graph, facts, table, look.start, due, reach)
    past = () if read else _pasts(r, table, due, computed)
    pinned = Pin(r.seq, table, look.start, due, reach, version_of(r, table.name), versions, before, reason, mixed, past)
    pinned = replace(pinned, kept={name: _kept(r, facts, graph[name], due) for name in beside if name in graph.tables})
    if table.rolling:
        pinned = replace(pinned, shown=_shown(r, table, due.last, computed))
    if not born:
        return pinned
    known = {row.part: None if row.born is None else stored(row.born, row.born_at) for row in rows}
    forward = read[due.first] if read else {}
    old = {name: found for name, seq in forward.items() if (found := superseded(r, name, seq)) is not None}
    return replace(pinned, born=born, born_before=known, forward=forward, superseded=old)


def _kept(r: Reading, facts: LedgerFacts, helper: Table, due: Parts) -> KeptParts:
    """Parts of a helper that are not due: since they were computed, nothing that they read has changed.

    That holds for what is pinned here and for nothing else: it is found in the same snapshot.
    """
    stale = Parts.of(*((row.lo, row.hi) for row in due_rows(r, helper.name, due.first, due.last)))
    rows = r.on.execute(_DIGESTS, {"t": helper.name, "a": due.first, "b": due.last})
    good = {row.part: row.rows for row in rows if row.fingerprint == helper.fingerprint}
    fresh = existing(r, helper.name, due.first, due.last) - stale - facts.lost(helper.name)
    return KeptParts(version_of(r, helper.name), {j: good[j] for j in fresh & due if j in good})


def superseded(r: Reading, dimension: str, seq: int) -> Superseded | None:
    """A version by its sequence; None if it is what the dimension holds."""
    *older, newest = versions_of(r, dimension).contents
    found = next((content for content in older if content.seq == seq), None)
    assert found is not None or newest.seq == seq
    return None if found is None else Superseded(seq, found.rows, found.at, version_then(r, dimension, seq))


def _of_one_version(
    table: Table, due: Parts, reach: Parts, read: Mapping[int, Mapping[str, int]]
) -> tuple[Parts, Parts]:
    """What of a step reads the same versions of forward dimensions as its first part: the rest is for other steps.

    A view that reads its own parts goes upwards, so all that follows the first other part has to wait.
    """
    other = Parts.single(*(j for j in due | reach if read[j] != read[due.first]))
    if other and table.self_references:
        other = Parts.of((other.first, FOREVER))
    return due - other, reach - other


def _pasts(r: Reading, table: Table, due: Parts, computed: Mapping[int, int]) -> tuple[Past, ...]:
    """Due parts by a sequence at which they were what the inputs say, and what was read then."""
    spans = [(row.lo, row.hi) for row in due_rows(r, table.name, due.first, due.last) if row.cause.kind == "input"]
    late = Parts.of(*spans) & due
    oldest = r.on.execute(select(promise.c.seq)).scalar() or 0
    since = {j: computed[j] for j in late if computed.get(j, -1) >= oldest}
    if not since:
        return ()
    if len(set(since.values())) == 1:
        by_sequence = {min(since.values()): list(since)}
    else:
        changes = _changes_of_inputs(r, table, since)
        by_sequence = common_moments(since, lambda j: _unchanged_until(table, j, since[j], changes, r.seq))
    if len(by_sequence) > _MOST_PASTS:
        return ()
    return tuple(
        Past(
            Parts.single(*parts),
            {name: version_then(r, name, seq) for name in table.input_names},
            {name: _changed_since(r, name, seq, table, parts) for name in table.input_names},
        )
        for seq, parts in by_sequence.items()
    )


def _changes_of_inputs(r: Reading, table: Table, since: Mapping[int, int]) -> dict[str, dict[int, list[int]]]:
    """When parts of inputs changed after the first of these parts was computed, by input and part."""
    found: dict[str, dict[int, list[int]]] = {}
    first, parts = min(since.values()), Parts.single(*since)
    for name in table.input_names:
        lo, hi = _read_by(table, name, parts)
        given = {"t": name, "a": lo, "b": hi, "s": first}
        by_part = found[name] = dict[int, list[int]]()
        for row in r.on.execute(_CHANGES, given):
            by_part.setdefault(row.part, []).append(row.seq)
    return found


def _unchanged_until(table: Table, j: int, since: int, changes: Mapping[str, Mapping[int, list[int]]], now: int) -> int:
    """The last sequence before something that part j reads changed."""
    first = now + 1
    for item in table.inputs:
        span = Range(DIMENSION_PART, DIMENSION_PART) if item.reference is None else item.reference.requires(j)
        there = changes.get(item.table, {})  # the table itself aside
        every = there if len(there) < span.size else range(span.lo, span.hi + 1)
        first = min([first, *(seq for p in every if p in span for seq in there.get(p, ()) if seq > since)])
    return first - 1


def _shown(r: Reading, table: Table, position: int, computed: Mapping[int, int]) -> Past | None:
    """What a rolling table holds, and which parts of its inputs have changed since, as far as this position reads them."""
    if not computed:
        return None
    held = max(computed)
    changed = {name: _changed_since(r, name, computed[held], table, [position]) for name in table.input_names}
    return Past(Parts.single(held), {}, changed)


def _changed_since(r: Reading, name: str, seq: int, table: Table, parts: list[int]) -> Parts:
    """Parts of an input, among those that these parts require, whose content changed after a sequence."""
    lo, hi = _read_by(table, name, Parts.single(*parts))
    found = r.on.execute(_CHANGED, {"t": name, "a": lo, "b": hi, "s": seq}).scalars()
    return Parts.single(*found)


def _read_by(table: Table, name: str, parts: Parts) -> tuple[int, int]:
    """The first and the last part of an input that these parts may read."""
    spans = [item.reference for item in table.inputs if item.table == name]
    if None in spans:
        return DIMENSION_PART, DIMENSION_PART
    known = [span for span in spans if span is not None]
    lo = min((span.lo.at(parts.first) for span in known), default=0)
    hi = max((span.hi.at(parts.last) for span in known), default=-1)
    return lo, hi


def version_then(r: Reading, table: str, seq: int) -> Version:
    row = r.on.execute(_VERSION_THEN, {"t": table, "s": seq}).one_or_none()
    return Version(-1, None) if row is None else Version(row.generation, row.version)


def version_of(r: Reading, table: str) -> Version:
    generation = settled(r, table).generation
    return Version(generation, known_version(r, table, generation))
