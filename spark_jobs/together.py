"""Small steps of several tables in one job of Spark.

    leases in the order of names -> one pin for all -> one job -> for each table: stage, check, commit, ledger

Queries over the same rows become one query, where their texts allow it (`spark_jobs.fused`). Of the others Spark computes
the union: each row says whose it is, and columns of the same type share one of the union's. What comes back as Arrow is
taken apart again. From there on each table goes the way of its own step, with its own commit: a crash in between leaves
some done and the others due.

Whatever is out of the ordinary is left to the step of that table alone, which knows what to say. What fails is tried again
in halves, so that one bad query keeps nobody else from being computed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import pyarrow.compute as pc  # type: ignore[import-untyped]
from deltalake.exceptions import DeltaError
from pyspark.sql import DataFrame

from partwise import storage
from partwise.choose.together import Room, job_of_its_own
from partwise.ledger.facts import LedgerFacts
from partwise.ledger.read.pin import Pin
from partwise.ledger.write.leases import Fenced, Lease
from partwise.parts import Parts
from partwise.storage import schema as schemas
from spark_jobs.engine import Engine
from spark_jobs.fused import PartQuery, compute, groups, query_of
from spark_jobs.retry import SPARK_ERRORS, is_infrastructure, message_of
from spark_jobs.step import small
from spark_jobs.step.by_keys import Repairs
from spark_jobs.step.compute import PART_COLUMNS, Computing, QueryFailed, SharedInputs
from spark_jobs.step.many import Many, NotTogether
from spark_jobs.step.run_step import Report, carry_out, has_its_table
from spark_jobs.step.settle import settle

log = logging.getLogger("partwise.step")

_OF = "__of"
#: What concerns one table, and is told by its own step.
_ITS_OWN = (storage.StorageError, DeltaError, Fenced, OSError)


@dataclass(frozen=True)
class Selected:
    """The `rows` of a result, of one part alone or with the part columns, and `columns` to be selected from them, hashes
    included."""

    rows: DataFrame
    columns: Mapping[str, str]
    fields: tuple[tuple[str, Any], ...]


@dataclass
class Member:
    """One table's step. Without a `query` that can be part of another one it is looked at before the job."""

    held: Lease
    computing: Computing
    many: Many
    parts: list[int]
    quick: bool
    query: PartQuery | None
    fits: bool | None = None

    @property
    def table(self) -> str:
        return self.held.table

    @property
    def part(self) -> int | None:
        return self.parts[0] if len(self.parts) == 1 else None

    def has_its_table(self) -> bool:
        """Looked up once: the query is analysed for it. Raises QueryFailed and BadSchema each time."""
        if self.fits is None:
            self.fits = has_its_table(self.computing, self.held)
        return self.fits

    def selected(self) -> Selected:
        handle, part = self.computing.own, self.part
        assert handle is not None
        result = self.many.rows(self.parts) if part is None else self.computing.result(part)
        rows, columns = small.to_select(result, handle.schema, self.computing.view.sketches, part)
        schema = handle.schema if part is None else schemas.without(handle.schema, PART_COLUMNS)
        return Selected(rows, columns, (*schemas.fields(schema), *((name, "long") for name in small.HASHES)))

    def goes_alone(self) -> None:
        """What is left of halves is computed in the way of a step of its own, quick ways included."""
        if self.quick:
            self.computing.careful.discard("fast")


def may_share(engine: Engine, table: str) -> bool:
    """Whether steps of a table may be computed together with others."""
    return not job_of_its_own(engine.definitions, table)


def run_together(
    engine: Engine, tables: Collection[str], asked: Mapping[str, Parts] | None = None, guests: Collection[str] = ()
) -> Iterator[Report]:
    """Compute what is due and ready of these tables (of `asked`, if given) in one job, and tell of each that is done.

    Others were left alone. What fails of `guests` is left alone, too: a run of their own computes them and tells.
    """
    for table in tables:
        settle(engine, table)
    graph = engine.definitions.graph()
    names = [table for table in tables if table in graph.tables]
    marks = {name: graph[name].fingerprint for name in names}
    with engine.leased_together(names) as held, ExitStack() as closing:
        leases = {lease.table: lease for lease in held}
        pins = engine.ledger.pin_each(held, engine.now(), asked, marks, engine.most_parts)
        engine.passed("pinned")
        members = _members(engine, [(leases[name], pins[name]) for name in names if name in pins], closing)
        began = time.monotonic()
        found = _computed(members)
        engine.passed("together")
        share = (time.monotonic() - began) / max(1, len(found))
        for member in members:
            since = time.monotonic()
            if member.table in found:
                member.many.given = found[member.table]
                since -= share
            else:
                member.goes_alone()
            own = member.table not in guests
            try:
                if member.table not in found and not member.has_its_table():
                    continue
                report = carry_out(member.computing, member.held, since, member.many, failures=own)
            except (*_ITS_OWN, QueryFailed, storage.BadSchema) as why:
                if is_infrastructure(why):
                    raise
                log.info("%s is left to a step of its own: %s", member.table, why)
                continue
            if report is not None:
                yield report


def _members(engine: Engine, steps: list[tuple[Lease, Pin]], closing: ExitStack) -> list[Member]:
    with engine.ledger.database.reading() as r:
        failing = LedgerFacts(r).failures()
    room, found, shared = Room(engine.batch), [], SharedInputs()
    for held, pin in steps:
        if failing.get(held.table):
            continue  # it would fail again, and take the others with it
        try:
            member = _member(engine, held, pin, room, closing, shared)
        except (*_ITS_OWN, *SPARK_ERRORS, QueryFailed, NotTogether, storage.BadSchema) as why:
            if is_infrastructure(why):
                raise
            continue
        if member is not None:
            found.append(member)
    return found


def _member(
    engine: Engine, held: Lease, pin: Pin, room: Room, closing: ExitStack, shared: SharedInputs
) -> Member | None:
    """None if this step is to be computed alone."""
    # One sequence, so the same versions of inputs, but for those that were superseded for some parts.
    inputs = SharedInputs() if pin.superseded else shared
    computing = Computing(engine, pin, engine.open(held.table, pin.own), inputs=inputs)
    closing.callback(computing.close)
    # The quick way is tried, and given up when it fails: that is nothing to try with others.
    quick = "fast" not in computing.careful
    computing.careful.add("fast")
    many = Many(computing)
    parts = many.take(pin.walk())
    alone = many.alone or len(parts) < pin.due.count or not many.is_small(parts)
    if alone:
        return None
    repairs = Repairs(computing)
    if repairs.repairable and repairs.touching(list(repairs.repairable)) is not None:
        return None
    if not room.takes(many.expected(parts), many.read_for(parts)):
        return None
    query = query_of(computing, parts[0]) if len(parts) == 1 and not pin.superseded else None
    member = Member(held, computing, many, parts, quick, query)
    return member if query is not None or member.has_its_table() else None


def _computed(members: list[Member]) -> dict[str, small.Collected]:
    """The results of these tables: queries that are one, and the union of all others. What is alone in the end is left
    out."""
    by_table = {member.table: member for member in members}
    found: dict[str, small.Collected] = {}
    for tables in groups({table: member.query for table, member in by_table.items() if member.query is not None}):
        found |= _in_halves([by_table[table] for table in tables], _as_one)
    rest = []
    for member in members:
        try:
            if member.table not in found and member.has_its_table():
                rest.append(member)
        except (*_ITS_OWN, *SPARK_ERRORS, QueryFailed, storage.BadSchema) as why:
            if is_infrastructure(why):
                raise
    return found | _in_halves(rest, _union)


def _in_halves(
    members: list[Member], job: Callable[[list[Member]], dict[str, small.Collected]]
) -> dict[str, small.Collected]:
    if len(members) < 2:
        return {}
    try:
        return job(members)
    except (*SPARK_ERRORS, QueryFailed) as why:
        if is_infrastructure(why):
            raise
        names = ", ".join(member.table for member in members)
        log.info("%s fail together and are tried in halves: %s", names, message_of(why).partition("\n")[0])
    half = len(members) // 2
    return _in_halves(members[:half], job) | _in_halves(members[half:], job)


def _as_one(members: list[Member]) -> dict[str, small.Collected]:
    """Nothing if they cannot be one: then they are part of the union."""
    found = compute([member.query for member in members if member.query is not None])
    return {} if found is None else dict(zip((member.table for member in members), found, strict=True))


def _union(members: list[Member]) -> dict[str, small.Collected]:
    slots: dict[tuple[str, int], tuple[str, Any]] = {}  # a column of the union by type and count of that type
    selected = [member.selected() for member in members]
    places = [_places(each, slots) for each in selected]
    numbers = _numbers([member.table for member in members])
    frames = []
    for each, place, number in zip(selected, places, numbers, strict=True):
        column_of = {slot: name for name, slot in place.items()}
        columns = [
            f"{each.columns[column_of[slot]] if slot in column_of else f'CAST(NULL AS {schemas.sql_type(kind)})'} AS {slot}"
            for slot, kind in slots.values()
        ]
        frames.append(each.rows.selectExpr(f"{number}L AS {_OF}", *columns))
    rows = _all(frames).toArrow()
    found = {}
    for member, place, number in zip(members, places, numbers, strict=True):
        own = rows.filter(pc.equal(rows[_OF], number)).select(list(place.values())).rename_columns(list(place))
        computing = member.computing
        assert computing.own is not None
        length = computing.pin.table.length
        found[member.table] = small.collected(own, computing.own.schema, member.part, length)
    return found


def _all(frames: list[DataFrame]) -> DataFrame:
    """Their union, put together in halves: each query that is put around another one is looked through by Spark."""
    if len(frames) == 1:
        return frames[0]
    half = len(frames) // 2
    return _all(frames[:half]).unionAll(_all(frames[half:]))


def _places(selected: Selected, slots: dict[tuple[str, int], tuple[str, Any]]) -> dict[str, str]:
    """Which column of the union each column of a table is; of every type there are as many as any table needs."""
    used: dict[str, int] = {}
    found = {}
    for name, kind in selected.fields:
        text = repr(kind)
        at = used[text] = used.get(text, -1) + 1
        found[name] = slots.setdefault((text, at), (f"c{len(slots)}", kind))[0]
    return found


def _numbers(tables: list[str]) -> list[int]:
    """A number for each table, by its name: Spark compiles a query again whenever a literal in it is another."""
    found: dict[int, str] = {}
    for table in tables:
        number = crc32(table.encode())
        while number in found:
            number += 1
        found[number] = table
    return list(found)
