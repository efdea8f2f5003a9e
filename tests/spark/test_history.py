"""Random histories on real Spark and Delta: whatever happens, in whatever order, every part is what it should be.

Rows arrive in any order, late and corrected, in some histories as files; parts become empty; dimensions and definitions change; steps crash at
any point. What every view should hold is computed by `models.py`, in plain Python; in every third history `verify` must
agree. Stale parts are repaired in ways chosen at random, and at the end of each history in one that its views allow. One history a template by default, `--spark-histories N` runs more of them; `tests/simulation` runs a thousand
histories of the same ledger without Spark.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from partwise.choose import repair
from partwise.ledger.read.born import versions
from partwise.parts import Range
from partwise.settings import Batch
from spark_jobs.step.run_step import Report
from spark_jobs.verify.verify import verify

from .landed import Landing
from .models import SOURCES, TEMPLATES, Model, Row, counted
from .samples import compare_samples, with_samples
from .workspace import Workspace, assert_same

pytestmark = pytest.mark.spark
BASE = 9_000_000  # a multiple of three


class Crash(Exception):
    """Thrown at a point of a step; everything that the step held is lost."""


class World:
    """The sources, and what follows from them."""

    def __init__(self, models: list[Model]) -> None:
        self.models = models
        self.tables: dict[str, dict[int, list[Row]]] = {"m": {}, "n": {}, "d": {}}
        self.start: dict[str, int] = {}
        self.arrivals: list[tuple[str, int]] = []  # parts of sources and versions of `d`, in order
        self.versions: list[tuple[int, list[Row]]] = []  # of `d`: after how many arrivals it came
        self.said: list[tuple[int, int, int | None]] = []  # from part to part: which of them counts, or as without it
        self.forward = False

    def came(self, table: str, parts: list[int]) -> None:
        self.arrivals += [(table, p) for p in parts if (table, p) not in self.arrivals]

    def version(self, model: Model, j: int) -> list[Row]:
        """What counts of `d` for a part: the version when the last of its source parts came to exist."""
        read = [(t, p) for t, lo, hi in model.needs(j) if t != "d" for p in range(lo, hi + 1)]
        born = max(self.arrivals.index(item) for item in read)
        natural = [rows for at, rows in self.versions if at <= born] or [self.versions[0][1]]
        told = [n for lo, hi, n in self.said if lo <= self.arrivals[born][1] <= hi]
        return natural[-1] if not told or told[-1] is None else self.versions[told[-1]][1]

    def get(self, table: str, lo: int, hi: int) -> list[Row]:
        if table == "start":
            return [{"p": self.start["rising"]}]
        return [row for p in range(lo, hi + 1) for row in self.tables[table][p]]

    def settle(self) -> None:
        """Compute everything that can be, from scratch; a view's start stays where it was once settled."""
        for model in self.models:
            self.tables[model.name] = {}
            indexes = [*range(BASE // 3, BASE // 3 + 5), *range(BASE, BASE + 10)]  # of three minutes, of one
            ready = [j for j in indexes if self._ready(model, j)]
            if not ready:
                continue
            start = self.start.setdefault(model.name, ready[0])
            if model.rolling:
                self.tables[model.name] = {ready[-1]: model.rows(ready[-1], self.get, False)}
                continue
            built = self.tables[model.name]
            for j in ready:
                if j == start or (j > start and (not model.itself or j - 1 in built)):
                    built[j] = model.rows(j, self.getting(model, j), j == start)

    def getting(self, model: Model, j: int) -> Callable[[str, int, int], list[Row]]:
        if not self.forward:
            return self.get
        return lambda table, lo, hi: self.version(model, j) if table == "d" else self.get(table, lo, hi)

    def _ready(self, model: Model, j: int) -> bool:
        return all(p in self.tables[t] for t, lo, hi in model.needs(j) for p in range(lo, hi + 1))


class History:
    def __init__(self, seed: int, spark: SparkSession, at: Path) -> None:
        self.rng, self.seed = random.Random(seed), seed
        chosen = [TEMPLATES[seed % len(TEMPLATES)]]
        if self.rng.random() < 0.3:
            chosen.append(self.rng.choice([t for t in TEMPLATES if t is not chosen[0]]))
        self.factors = {template: self.rng.randint(1, 3) for template in chosen}
        self.world = World(self.models())
        merges = chosen[0] is counted and seed // len(TEMPLATES) % 2 == 0
        self.world.forward = random.Random(f"forward {seed}").random() < 0.5 and not merges
        self.world.forward = self.world.forward or seed % len(TEMPLATES) == 5
        self.space = Workspace(spark, at, self.text())
        self.verifying = seed % 3 == 0
        self.counter = 0
        self.repairs: Counter[str] = Counter()
        self.log: list[str] = []

    def models(self) -> list[Model]:
        return [model for template, k in self.factors.items() for model in template(k)]

    def text(self) -> str:
        text = "---".join([SOURCES, *with_samples(SOURCES, self.models(), self.seed)])
        if not self.world.forward:
            return text
        # Joins with a dimension whose versions differ from part to part are not kept.
        return text.replace("dimension: d\n", "dimension: d\nchange: forward\n").replace("state: {join: [b, d]}\n", "")

    # -- what happens

    def row(self, p: int) -> Row:
        self.counter += 1
        g = self.rng.choice(["a", "a", "b", None])
        x = None if self.rng.random() < 0.1 else self.rng.randint(-2, 5)
        second = self.rng.randrange(0, 60, 20)
        return {"t": datetime.fromtimestamp(60 * p + second, UTC), "u": self.counter, "g": g, "x": x}

    def arrive(self, table: str, parts: list[int]) -> None:
        new = {p: [self.row(p) for _ in range(self.rng.choice([0, 1, 2, 3]))] for p in parts}
        self.log.append(f"{table} {new}")
        self.space.replace(table, new)
        self.world.tables[table].update(new)
        self.world.came(table, parts)

    def change(self) -> None:
        """Late rows, a correction, or an emptied part."""
        table = (
            self.rng.choice(["m", "m", "n"]) if any(m.name in ("near", "matched") for m in self.world.models) else "m"
        )
        p = self.rng.choice(sorted(self.world.tables[table]))
        rows = list(self.world.tables[table][p])
        kind = self.rng.choice(["late", "late", "corrected", "emptied", "same"])
        if kind == "late":
            rows.append(self.row(p))
        elif kind == "corrected":
            rows = [self.row(p), *rows[1:]]
        elif kind == "emptied":
            rows = []
        self.log.append(f"{kind} {table}[{p}] {rows}")
        self.space.replace(table, {p: rows})
        self.world.tables[table][p] = rows

    def dimension(self) -> None:
        rows = [{"g": g, "name": self.rng.choice("pqr")} for g in "ab" if self.rng.random() < 0.8]
        self.log.append(f"d {rows}")
        changed = self.space.dimension("d", rows)
        self.world.tables["d"] = {0: rows}
        if changed:
            self.world.versions.append((len(self.world.arrivals), rows))

    def repin(self) -> None:
        """Somebody says which version counts for some minutes."""
        lo = BASE + self.rng.randrange(4)
        hi, n = lo + self.rng.randrange(3), self.rng.choice([None, *range(len(self.world.versions))])
        self.log.append(f"version {n} counts for {lo}..{hi}")
        with self.space.ledger.database.reading() as r:
            known = versions(r, "d").contents
        assert len(known) == len(self.world.versions)
        seq = None if n is None else known[n].seq
        self.space.ledger.repin("d", Range(60 * lo, 60 * hi), seq, "somebody", time.time())
        self.world.said.append((lo, hi, n))

    def define(self) -> None:
        template = self.rng.choice(list(self.factors))
        self.factors[template] += 1
        self.log.append(f"definition of {template.__name__}")
        self.world.models = self.models()
        self.space.define(self.text())

    def crash(self) -> Callable[[str], None]:
        """Stops the work at some point, a few points from now."""
        left = self.rng.randint(1, 12)

        def passed(point: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                self.log.append(f"crash at {point}")
                raise Crash(point)

        return passed

    def run(self) -> None:
        # Whatever repairs stale parts, and whoever shares a job, their content is the same.
        ways = ["auto", "auto", "recompute", "keys", "keys", "merge"]
        # Few queries can be merged: where one can, it mostly is.
        way = self.rng.choice(["auto", "keys", *["merge"] * 4] if counted in self.factors else ways)
        batch = Batch(views=self.rng.choice([1, 2, 20]))
        self.log.append(f"repair by {way}, {batch.views} tables in a job")
        # By the rule for costs these parts are small, and are computed again: here it chooses as if their rows were many.
        with patch.multiple(repair, FIXED={"recompute": 10**8, "keys": 0.01, "merge": 0.01}, MOST_CHANGED=10):
            self._run(way, batch)

    def _run(self, way: str, batch: Batch) -> None:
        if self.rng.random() < 0.4:
            try:
                self.count(self.space.run(passed=self.crash(), repair_by=way, batch=batch))
            except Crash:
                if self.rng.random() < 0.5:
                    return  # the next arrivals come before anybody tries again
            self.space.load()
        self.count(self.space.run(repair_by=way, batch=batch))
        self.world.settle()
        self.compare()

    def count(self, reports: list[Report]) -> None:
        self.repairs.update(report.repair.by for report in reports if report.repair is not None)

    def repair(self) -> None:
        """A late row alone, for a part that all views have built: what the definition asks for is what is done."""
        self.space.run()
        by = "merge" if counted in self.factors else "keys"
        p = max(self.world.tables["m"])
        expected = {m.name for m in self.world.models if by in m.repairs and not self._reads_versions(m)}
        self.late(p, {**self.row(p), "g": "a", "x": 1})
        reports = self.space.run(repair_by=by, batch=Batch(views=self.rng.choice([1, 20])))
        self.count(reports)
        done = {report.table: report.repair.by for report in reports if report.repair is not None}
        assert {name: done.get(name) for name in expected} == dict.fromkeys(expected, by)
        self.world.settle()

    def _reads_versions(self, model: Model) -> bool:
        """What reads a dimension whose versions count from part to part is always computed again."""
        return self.world.forward and any(table == "d" for table, _, _ in model.needs(BASE))

    def late(self, p: int, row: Row) -> None:
        rows = [*self.world.tables["m"][p], row]
        self.log.append(f"late m[{p}] {row}")
        self.space.replace("m", {p: rows})
        self.world.tables["m"][p] = rows

    # -- what must hold

    def compare(self) -> None:
        for model in self.world.models:
            assert_same(self.space.rows(model.name), self.world.tables[model.name], model.name)
        compare_samples(self.space, self.world.tables)
        assert self.space.ledger.audit() == {}
        assert self.space.run() == []  # nothing is left to do

    def happen(self) -> None:
        uses = {table for model in self.world.models for table, _, _ in model.needs(BASE)}
        if "d" in uses:
            self.dimension()
        parts = list(range(BASE, BASE + self.rng.choice([4, 6])))
        self.arrive("m", parts[:3])
        if "n" in uses:
            self.arrive("n", parts[:3])
        rest = parts[3:]
        self.rng.shuffle(rest)
        events: list[Callable[[], Any]] = [lambda p=p: self.arrive("m", [p]) for p in rest]  # type: ignore[misc]
        events += [self.change for _ in range(2)] + [self.define] * (self.rng.random() < 0.4)
        if "d" in uses:
            events.append(self.dimension)
            events += [self.repin] * self.world.forward
        self.rng.shuffle(events)
        if "n" in uses:
            events.insert(0, lambda: self.arrive("n", parts[3:]))
        self.run()
        rounds = 2
        for at in range(rounds):
            for event in events[at::rounds]:
                event()
            self.run()
        self.repair()
        self.compare()
        if not self.verifying:
            return
        result = verify(self.space.engine)
        assert (result.different, result.stale, result.beyond) == ((), 0, 0)
        assert result.checked == sum(len(self.world.tables[m.name]) for m in self.world.models)


class OfFiles(History):
    """The same, but the rows of sources come as files: `ingest` finds out what is late and what has changed."""

    def __init__(self, seed: int, spark: SparkSession, at: Path) -> None:
        super().__init__(seed, spark, at)
        self.landing = Landing(self.space, self.rng, self.crash)

    def text(self) -> str:
        return super().text().replace("*.csv\n---", "*.csv\nclose: manual\n---")

    def arrive(self, table: str, parts: list[int]) -> None:
        """One file for all of these parts, with a late row for an older one now and then."""
        known = sorted(self.world.tables[table])
        rows = [self.row(p) for p in parts for _ in range(self.rng.choice([0, 1, 2, 3]))]
        rows += [self.row(self.rng.choice(known))] if known and self.rng.random() < 0.4 else []
        self.log.append(f"{table} {parts} {rows}")
        self.landing.put(table, f"{table}{parts[0]}.csv", rows)
        for p in parts:
            self.landing.close(table, p)
            self.world.tables[table][p] = []
            self.world.came(table, [p])
        self.settle_sources(table)

    def change(self) -> None:
        table = (
            self.rng.choice(["m", "m", "n"]) if any(m.name in ("near", "matched") for m in self.world.models) else "m"
        )
        p, name = self.rng.choice(sorted(self.world.tables[table])), self.landing.some_file(table)
        kind = self.rng.choice(["late", "corrected", "retracted", "same"]) if name else "late"
        self.log.append(f"{kind} {table}[{p}] {name}")
        if kind == "late" or name is None:
            self.landing.put(table, f"late{self.counter}.csv", [self.row(p)])
        elif kind == "corrected":
            self.landing.put(table, name, [*self.landing.files[table, name][1:], self.row(p)])
        elif kind == "same":
            self.landing.put(table, name, self.landing.files[table, name])
        else:
            self.landing.retract(table, name)
        self.settle_sources(table)

    def late(self, p: int, row: Row) -> None:
        self.log.append(f"late m[{p}] {row}")
        self.landing.put("m", "late.csv", [row])
        self.settle_sources("m")

    def settle_sources(self, table: str) -> None:
        self.world.tables[table] = {p: self.landing.holds(table, p) for p in self.world.tables[table]}


def test_history(spark: SparkSession, tmp_path: Path, history: int) -> None:
    kind = OfFiles if history % 5 == 2 else History
    found = kind(history, spark, tmp_path / "w")
    try:
        found.happen()
    except BaseException as why:
        why.add_note("\n".join([f"history {history}", found.text(), *found.log]))
        raise
    assert found.repairs, "something was late in every history"
    print(f"repairs: {dict(found.repairs)}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "history" in metafunc.fixturenames:
        metafunc.parametrize("history", range(metafunc.config.getoption("--spark-histories")))
