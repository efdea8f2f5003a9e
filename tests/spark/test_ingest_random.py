"""Random deliveries, corrections, retractions, lateness and crashes against an oracle in plain Python."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from pyspark.sql import SparkSession

from spark_jobs.ingest.api import NotDone
from tests.spark.landing import DAY, Crash, World, text

pytestmark = pytest.mark.spark

HISTORIES = 25
#: Several histories share a workspace, one source each: an ingest of all of them is one step of every history.
TOGETHER = 5
STEPS = 4
ACCEPT = 30
POINTS = ["staged", "digested", "quarantined", "kept", "ready", "committed", "recorded"]
SOURCE = """
source: {name}
part: 1 minute
time: event_time
columns: {{event_time: timestamp, src: string, n: int}}
files: landing/{name}/*.csv
close: {{delay: {delay}}}
late: {{accept: 30 minutes}}
"""
Row = tuple[int, int, str, int]  # minute, second, src, n


@dataclass
class Oracle:
    """What a source must hold, by the words of the documentation alone."""

    delay: int
    landing: dict[str, list[Row]] = field(default_factory=dict)
    taken: dict[str, list[Row]] = field(default_factory=dict)  # as loaded: the content of the file
    kept: dict[str, list[Row]] = field(default_factory=dict)
    aside: dict[str, list[Row]] = field(default_factory=dict)
    watermark: int | None = None
    closed: set[int] = field(default_factory=set)

    def ingest(self) -> None:
        news = [rows for name, rows in self.landing.items() if self.taken.get(name) != rows]
        times = sorted(row[0] * 60 + row[1] for rows in news for row in rows if row[2] != "?")
        newest = times[-1:]
        if times and times[len(times) // 2] < times[-1] - ACCEPT * 60:
            newest = [times[len(times) // 2]]  # more than half of the load would be too old
        known = [*newest, *([] if self.watermark is None else [self.watermark])]
        limit = max(known) - ACCEPT * 60 if known else None
        for name, rows in self.landing.items():
            if self.taken.get(name) == rows:
                continue
            self.taken[name] = rows
            ok = [row for row in rows if row[2] != "?" and (limit is None or row[0] * 60 + row[1] >= limit)]
            self.kept[name] = ok
            self.aside[name] = [row for row in rows if row not in ok]
        seen = [row[0] * 60 + row[1] for rows in self.kept.values() for row in rows]
        self.watermark = max([*seen, *([] if self.watermark is None else [self.watermark])], default=None)
        self.close()

    def close(self) -> None:
        there = {row[0] for rows in self.kept.values() for row in rows} | self.closed
        if there and self.watermark is not None:
            done = {p for p in range(min(there), 200) if self.watermark >= (p + 1) * 60 + self.delay * 60}
            self.closed |= done

    def retract(self, name: str) -> None:
        self.kept[name], self.aside[name] = [], []
        self.close()

    def release(self) -> None:
        for name, rows in self.aside.items():
            self.kept[name] = self.kept[name] + [row for row in rows if row[2] != "?"]
            self.aside[name] = [row for row in rows if row[2] == "?"]
        self.close()

    def rows(self) -> list[tuple[int, str, int]]:
        return sorted((row[0], row[2], row[3]) for rows in self.kept.values() for row in rows)


def lines(rows: list[Row]) -> str:
    """A row whose src is `?` cannot be placed."""
    body = [f"{text(m, s) if src != '?' else 'soon'},{src},{n}" for m, s, src, n in rows]
    return "\n".join(["event_time,src,n", *body]) + "\n"


def delivery(rng: random.Random, around: int) -> list[Row]:
    count = rng.choice([0, 1, 2, 5])
    # Each row once: the oracle takes rows of one file for a set.
    return list({
        (max(0, around + rng.choice([-45, -12, -3, -1, 0, 0, 1, 2])), rng.randrange(60), rng.choice("aab?"), rng.randrange(1000)): None
        for _ in range(count)
    })  # fmt: skip


@pytest.mark.parametrize("group", range(HISTORIES // TOGETHER))
def test_random_histories_equal_the_oracle(spark: SparkSession, world: World, group: int) -> None:
    rng = random.Random(f"ingest {group}")
    names = [f"s{at}" for at in range(TOGETHER)]
    delays = {name: rng.choice([0, 0, 1, 5]) for name in names}
    world.define("---\n".join(SOURCE.format(name=name, delay=60 * delays[name]) for name in names))
    oracles = {name: Oracle(delays[name]) for name in names}
    for step in range(STEPS):
        for name, oracle in oracles.items():
            for _ in range(rng.choice([0, 1, 1, 2])):
                file = rng.choice(["a.csv", "b c.csv", "d:e.csv", f"n{step}.csv"])
                oracle.landing[file] = delivery(rng, 10 + 20 * step)
                world.put(f"{name}/{file}", lines(oracle.landing[file]))
        if rng.random() < 0.6:
            world.crash_at(rng.choice(POINTS))
            try:
                world.ingest()
            except Crash:
                pass
            world.go_on()
        world.ingest()
        for oracle in oracles.values():
            oracle.ingest()
        name = rng.choice(names)
        if rng.random() < 0.5 and oracles[name].landing:
            file = rng.choice(sorted(oracles[name].landing))
            try:
                world.retract(f"landing/{name}/{file}", name)
            except NotDone:
                assert oracles[name].kept[file] == []  # retracted before
            oracles[name].retract(file)
        elif rng.random() < 0.5:
            world.release(name)
            oracles[name].release()
    for name, oracle in oracles.items():
        assert sorted((p - DAY, src, n) for p, src, n in world.rows(name, "part, src, n")) == oracle.rows()
        assert set(world.closed(name)) == oracle.closed
        assert len(world.aside(name)) == sum(map(len, oracle.aside.values()))
        world.check(name)
