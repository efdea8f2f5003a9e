"""What the processes of the tests do: an ingester, runners, readers as of a time, readers of settled content.

Each has a clock of its own; some are seconds apart.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import timedelta
from multiprocessing.synchronize import Event
from pathlib import Path

from partwise import storage
from partwise.ledger.read.as_of import readable
from partwise.ledger.read.newest_settled import newest_settled
from partwise.ledger.records.readers import reading
from partwise.ledger.write.leases import Busy, Fenced
from partwise.parts import Parts
from partwise.upkeep import clean
from partwise.upkeep.retain import clean_up, give_up
from tests.reading.small import FIRST, Rows, Small, recomputed

PARTS = 4
TABLES = ("s", "a", "b", "c", "w")
#: A part of every table, and the time as of which it was read.
Answer = tuple[float, int, dict[str, Rows]]


def _until(over: Event, seconds: float) -> Iterator[None]:
    """Until all others are over, or for so long at most; once in any case."""
    end = time.monotonic() + seconds
    while True:
        yield
        if over.is_set() or time.monotonic() > end:
            return


def ingester(folder: Path, ahead: float, over: Event, seconds: float, rounds: int) -> int:
    """Late rows for random parts, without a pause."""
    small, chance = Small(folder, ahead=ahead), random.Random(1)
    done = 0
    for _ in _until(over, seconds):
        try:
            small.ingest({FIRST + chance.randrange(PARTS): {"k": chance.randrange(1000), "m": done}})
            done += 1
        except (Busy, Fenced, storage.Conflict):
            continue
        if done >= rounds:
            break
        time.sleep(0.02)
    over.set()
    small.close()
    return done


def runner(folder: Path, ahead: float, over: Event, seconds: float) -> int:
    small, steps = Small(folder, ahead=ahead), 0
    for _ in _until(over, seconds):
        for name in dict.fromkeys(step.table for step in small.ledger.plan(small.now()).steps):
            try:
                steps += bool(small.step(name))
            except (Busy, Fenced, storage.Conflict):
                continue
    small.close()
    return steps


def reader_as_of(folder: Path, ahead: float, over: Event, seconds: float) -> list[Answer]:
    """Reads what was a moment ago, when writers that took the time before may still be waiting."""
    small, chance, found = Small(folder, ahead=ahead), random.Random(2), list[Answer]()
    for _ in _until(over, seconds):
        moment = small.now() - chance.choice((0.0, 0.001, 0.01, 0.1))
        found.append(read_at(small, moment, FIRST + chance.randrange(PARTS)))
    small.close()
    return found


def read_at(small: Small, moment: float, p: int) -> Answer:
    with reading(small.ledger.database, small.now, "a reader", moment=moment) as at:
        return moment, p, contents(small, at.seq, p)


def contents(small: Small, seq: int, p: int) -> dict[str, Rows]:
    """A part of every table as of a sequence; of the source what the window reads, too."""
    found = readable(small.ledger.database, TABLES, TABLES, seq)
    shown = {name: small.part(name, at.version, p) for name, at in found.items()}
    exists = found["s"].parts if "s" in found else None
    for q in (p - 2, p - 1, p):
        shown[f"s{q - p}"] = small.part("s", found["s"].version, q) if exists is not None and q in exists else {}
    return shown


def reader_of_settled(folder: Path, ahead: float, over: Event, seconds: float) -> tuple[int, int, list[object]]:
    """How many reads, how many of them were not of the present, and those that are not what the sources gave."""
    small, chance = Small(folder, ahead=ahead), random.Random(3)
    reads = past = 0
    wrong: list[object] = []
    for _ in _until(over, seconds):
        p = FIRST + chance.randrange(PARTS)
        with small.ledger.database.reading() as r:
            found = newest_settled(r, small.ledger.graph_at(r), dict.fromkeys(TABLES, Parts.single(p)))
        if found.seq is None:
            continue
        with reading(small.ledger.database, small.now, "an analyst", seq=found.seq) as at:
            shown = contents(small, at.seq, p)
        reads, past = reads + 1, past + bool(found.in_the_way)
        source = {q: shown[f"s{q - p}"] for q in (p - 2, p - 1, p) if shown[f"s{q - p}"] or q >= FIRST}
        for view in ("a", "b", "c", *(["w"] if p - 2 >= FIRST else [])):
            if shown[view] != recomputed(view, p, source):
                wrong.append((found.seq, p, view, shown))
    small.close()
    return reads, past, wrong


def slow_reader(folder: Path, over: Event, seconds: float) -> tuple[int, list[object]]:
    """Reads the same snapshot again and again while upkeep removes all that nobody reads; what became different or gone."""
    small, chance = Small(folder), random.Random(5)
    reads, wrong = 0, list[object]()
    for _ in _until(over, seconds):
        p = FIRST + chance.randrange(PARTS)
        with reading(small.ledger.database, small.now, "a slow reader") as at:
            before = contents(small, at.seq, p)
            for _ in range(3):
                time.sleep(0.2)
                try:
                    again = contents(small, at.seq, p)
                except Exception as why:
                    wrong.append(f"@{at.seq}: {why!r}")
                    break
                wrong += [(at.seq, p)] if again != before else []
        reads += 1
    small.close()
    return reads, wrong


def upkeep(folder: Path, over: Event, seconds: float, enough: int) -> int:
    """No history at all is kept, and no file is too young to be removed. Goes on until enough of them are."""
    clean._YOUNG = timedelta(0)  # of this process
    small, removed = Small(folder), 0
    for _ in _until(over, seconds):
        give_up(small.ledger, 0.0, small.now())
        for name in TABLES:
            try:
                removed += clean_up(small.ledger, small.warehouse, name, small.now).files
            except (Busy, Fenced, storage.Conflict):
                continue
        if removed >= enough:
            over.set()
    small.close()
    return removed


def torn_reads(folder: Path, over: Event, seconds: float) -> tuple[int, int]:
    """What an analyst gets who reads the newest moment: how often s, a and b disagree."""
    small, chance = Small(folder), random.Random(4)
    reads = torn = 0
    for _ in _until(over, seconds):
        p = FIRST + chance.randrange(PARTS)
        with reading(small.ledger.database, small.now, "an analyst") as at:
            shown = contents(small, at.seq, p)
        reads += 1
        torn += shown["a"] != recomputed("a", p, {p: shown["s"]}) or shown["b"] != recomputed("b", p, {p: shown["s"]})
    small.close()
    return reads, torn
