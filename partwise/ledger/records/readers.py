"""Reads that are under way: each pins one sequence, and upkeep keeps what it may ask for until it is done.

    enter -> (read tables at the versions of the sequence, as long as it takes) -> leave

A reader that dies leaves its row; the row expires. What is pinned is decided while nobody else writes, so that
upkeep either sees the reader or has finished giving up what the reader can then not ask for any more.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import bindparam, delete, insert, update
from sqlalchemy.exc import DBAPIError

from partwise.ledger.database import Database, Reading
from partwise.ledger.heartbeat import heartbeat
from partwise.ledger.read.as_of import sequence_at, time_of
from partwise.ledger.read.promise import Promise, promised
from partwise.ledger.schema import reader

#: Seconds. A reader that dies holds up upkeep for so long; one that lives renews three times as often.
SECONDS = 60.0
_RENEW = update(reader).where(reader.c.id == bindparam("i")).values(expires=bindparam("e"))
_LEAVE = delete(reader).where(reader.c.id == bindparam("i"))


class TooOld(Exception):
    """What was requested is older than what is kept."""

    def __init__(self, given: Promise) -> None:
        super().__init__(f"reads reach back to sequence {given.seq}")
        self.given = given


class NotYet(Exception):
    """What was requested lies ahead: nobody can know it yet."""

    def __init__(self, seq: int, at: float) -> None:
        super().__init__(f"the ledger is at sequence {seq}")
        self.seq, self.at = seq, at


@dataclass(frozen=True, slots=True)
class Moment:
    """One sequence and its time; of an as-of read by time that time."""

    seq: int
    at: float


def pinned(database: Database, now: float, seq: int | None = None, moment: float | None = None) -> Moment:
    """The sequence that is meant, without registering. By default the newest one. Raises TooOld, NotYet."""
    if moment is not None and moment > now:
        with database.reading() as r:
            raise NotYet(r.seq, r.at)
    with database.reading() as r:
        if moment is None or moment <= r.at:
            return _meant(r, seq, moment)
    # Nothing may be recorded as of that moment any more, or the next one to ask would see it.
    with database.passing(moment) as r:
        return _meant(r, seq, moment)


def enter(
    database: Database,
    now: float,
    who: str,
    seq: int | None = None,
    moment: float | None = None,
    seconds: float = SECONDS,
) -> tuple[str, Moment]:
    """Register a reader of a sequence (the newest by default). Raises TooOld, NotYet."""
    if moment is not None and moment > now:
        with database.reading() as r:
            raise NotYet(r.seq, r.at)
    name = uuid.uuid4().hex
    with database.passing(0.0 if moment is None else moment) as r:
        found = _meant(r, seq, moment)
        row = {"id": name, "seq": found.seq, "who": who[:255], "at": now, "expires": now + seconds}
        r.on.execute(insert(reader), row)
    return name, found


def _meant(r: Reading, seq: int | None, moment: float | None) -> Moment:
    given = promised(r)
    if moment is not None:
        if given is not None and moment < given.at:
            raise TooOld(given)
        return Moment(sequence_at(r, moment), moment)
    if seq is None:
        return Moment(r.seq, r.at)
    if seq > r.seq or seq < 0:
        raise NotYet(r.seq, r.at)
    if given is not None and seq < given.seq:
        raise TooOld(given)
    return Moment(seq, time_of(r, seq))


def leave(database: Database, name: str) -> None:
    with database.passing(0.0) as r:
        r.on.execute(_LEAVE, {"i": name})


def renew(database: Database, name: str, now: float, seconds: float = SECONDS) -> None:
    with database.passing(0.0) as r:
        r.on.execute(_RENEW, {"i": name, "e": now + seconds})


@contextmanager
def reading(
    database: Database,
    now: Callable[[], float],
    who: str,
    seq: int | None = None,
    moment: float | None = None,
    seconds: float = SECONDS,
) -> Iterator[Moment]:
    """A registered read, renewed for as long as it takes. Raises TooOld, NotYet."""
    name, found = enter(database, now(), who, seq, moment, seconds)

    def renewed() -> bool:
        try:
            renew(database, name, now(), seconds)
        except DBAPIError:
            pass  # the ledger is out of reach for now; the row lasts for two more tries
        return True

    try:
        with heartbeat(seconds / 3, renewed):
            yield found
    finally:
        leave(database, name)
