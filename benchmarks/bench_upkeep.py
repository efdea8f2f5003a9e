"""Does a table get slower as it grows older? Two measurements.

One: the cost of a new part of a view that has 500 parts, against one that has 50,000. Both had their small files merged
last night, so that 500 of them are there. Turn by turn in one warm session; the goal is a ratio of at most 1.3.

Two: days of arrivals with upkeep every night. Files, log entries and ledger rows must stop growing.

    python benchmarks/bench_upkeep.py [ROUNDS]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import func, select

from partwise import storage
from partwise.compile.load import load
from partwise.ledger.ledger import Ledger
from partwise.ledger.open import open_ledger
from partwise.ledger.schema import complete
from partwise.ledger.write.commit import Content, Entry
from partwise.ledger.write.lease_holding import holding
from partwise.parts import Parts
from partwise.storage import schema as schemas
from partwise.storage.paths import table_path
from partwise.upkeep.compact import compact
from partwise.upkeep.retain import clean_up, floors, give_up, retain
from spark_jobs.engine import Engine
from spark_jobs.session.session import session
from spark_jobs.step.run_step import run_step

DEFINITIONS = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, g: bigint, x: double}
files: landing/*.csv
keep: 1000 days
---
view: v
part: 1 minute
keep: 1000 days
update: SELECT g, COUNT(*) AS n, SUM(x) AS s FROM m[j] GROUP BY g
"""
OF_VIEW = {"g": "bigint", "n": "bigint", "s": "double"}
OF_SOURCE = {"t": "timestamp", "g": "bigint", "x": "double"}
ROWS, SMALL, GOAL, WARM = 10, 500, 1.3, 5


class Made:
    """A workspace whose tables are filled without an engine."""

    def __init__(self, at: Path, text: str = DEFINITIONS) -> None:
        (at / "view_defs").mkdir(parents=True)
        (at / "view_defs" / "all.yaml").write_text(text)
        self.definitions = load(str(at / "view_defs"))
        assert self.definitions.ok, self.definitions.problems
        self.time = time.time()
        self.ledger: Ledger = open_ledger(f"sqlite:///{at / 'ledger.db'}", self.time)
        self.ledger.define(self.definitions.graph(), self.time)
        self.at, self.warehouse = at, str(at / "warehouse")

    def now(self) -> float:
        return self.time

    def path(self, name: str) -> str:
        return table_path(self.warehouse, name, 0)

    def put(self, name: str, files: Iterable[range], columns: dict[str, str]) -> None:
        """One commit; every range of parts becomes a file."""
        with holding(self.ledger, self.warehouse, name, self.now) as held:
            if not storage.exists(self.path(name)):
                storage.create(self.path(name), schemas.of(columns))
                self.ledger.adopt(held, [(0, None)], self.time)
            handle, step = storage.open_at(self.path(name)), uuid.uuid4().hex[:12]
            folder = Path(storage.begin(handle, step))
            folder.mkdir()
            kinds = pa.schema(handle.table.schema().to_arrow())
            contents = {}
            for number, parts in enumerate(files):
                pq.write_table(rows(parts, kinds), folder / f"part-{number:05d}.parquet", row_group_size=10_000)
                contents |= {p: Content(ROWS, f"{ROWS}:{p:032x}") for p in parts}
            with self.ledger.database.reading() as r:
                seq = r.seq
            table = self.ledger.graph()[name]
            pin, start = (None, None) if table.kind == "source" else (seq, 0)
            entry = Entry(name, 0, table.fingerprint, pin, start, contents, "made")
            stored = {"kind": "step", "entry": entry.to_json()}
            version = storage.commit(handle, storage.staged(self.path(name), step), (), stored)
            self.ledger.commit(held, entry, version, self.time, keep=True, seconds=0.1)
            storage.finish(self.path(name), step)


def rows(parts: range, kinds: pa.Schema) -> pa.Table:
    numbers = [(p, n) for p in parts for n in range(ROWS)]
    values = {
        "part": [p for p, _ in numbers],
        "part_timestamp": [p * 60_000_000 for p, _ in numbers],
        "t": [p * 60_000_000 + n for p, n in numbers],
        "g": [n for _, n in numbers],
        "n": [1] * len(numbers),
        "x": [float(n) for _, n in numbers],
        "s": [float(n) for _, n in numbers],
    }
    return pa.Table.from_arrays([pa.array(values[f.name], type=f.type) for f in kinds], schema=kinds)


def view_of(at: Path, parts: int, more: int) -> Made:
    """A view with so many parts, the newest in files of their own, and a source with more."""
    made = Made(at)
    made.put("m", [range(parts + more)], OF_SOURCE)
    old = parts - SMALL
    made.put("v", [*([range(old)] if old else []), *(range(p, p + 1) for p in range(old, parts))], OF_VIEW)
    for name in ("m", "v"):
        storage.checkpoint(made.path(name))  # as commits do each 50 versions
    return made


def cost_of_a_part(rounds: int) -> None:
    spark = session()
    with tempfile.TemporaryDirectory() as folder:
        sizes = (500, 50_000)
        made = {n: view_of(Path(folder) / str(n), n, WARM + rounds) for n in sizes}
        engines = {n: Engine(spark, m.ledger, m.definitions, m.warehouse) for n, m in made.items()}
        times: dict[int, list[float]] = {n: [] for n in sizes}
        for turn in range(WARM + rounds):
            for n in sizes if turn % 2 else reversed(sizes):
                began = time.perf_counter()
                assert engines[n].ledger.plan(engines[n].now(), {"v"}).steps
                report = run_step(engines[n], "v", Parts.single(n + turn))
                times[n].append(time.perf_counter() - began)
                assert report is not None
                assert report.changed.count == 1
        few, many = (statistics.median(times[n][WARM:]) for n in sizes)
        print("one new part, median of", rounds, "rounds")
        for n in sizes:
            shown = " ".join(f"{t:.2f}" for t in sorted(times[n][WARM:]))
            print(f"{n:7,} parts: {statistics.median(times[n][WARM:]):.3f} s   ({shown})")
        ratios = [b / a for a, b in zip(times[sizes[0]][WARM:], times[sizes[1]][WARM:], strict=True)]
        print(f"ratio of medians {many / few:.2f}, median of ratios {statistics.median(ratios):.2f}  (goal <= {GOAL})")


def growth(days: int = 8, a_day: int = 60) -> None:
    """A day is `a_day` parts here; everything that depends on days goes by the clock that is handed on."""
    text = DEFINITIONS.replace("1 minute", f"{86400 // a_day} seconds").replace("keep: 1000 days", "keep: 3 days")
    with tempfile.TemporaryDirectory() as folder:
        made = Made(Path(folder) / "w", text)
        print(f"\n{a_day} parts a day, keep: 3 days, history: 1 day, upkeep every night; after each day, of the view:")
        print(
            f"{'day':>4} {'parts':>6} {'files':>6} {'on disk':>8} {'log':>5} {'ledger rows':>12} {'of them parts':>14}"
        )
        for day in range(days):
            for p in range(day * a_day, (day + 1) * a_day):
                made.put("m", [range(p, p + 1)], OF_SOURCE)
                made.put("v", [range(p, p + 1)], OF_VIEW)
                made.time += 86400 / a_day
            upkeep(made)
            tell(made, day + 1)


def upkeep(made: Made) -> None:
    for name, wanted in floors(made.ledger, made.definitions.usable).items():
        retain(made.ledger, made.warehouse, name, wanted, made.now)
    for name in ("m", "v"):
        compact(made.ledger, made.warehouse, name, made.now)
    give_up(made.ledger, 86400.0, made.time)
    for name in ("m", "v"):
        clean_up(made.ledger, made.warehouse, name, made.now)


def tell(made: Made, day: int) -> None:
    root = Path(made.path("v"))
    with made.ledger.database.reading() as r:
        counts = {
            t.name: r.on.execute(select(func.count()).select_from(t)).scalar() or 0 for t in complete().sorted_tables
        }
    files = storage.open_at(made.path("v")).files
    parts = sum((f.hi or 0) - (f.lo or 0) + 1 for f in files)
    kept = counts["part"]
    print(
        f"{day:4} {parts:6,} {len(files):6,} {len(list(root.glob('s-*/*.parquet'))):8,} "
        f"{len(list(root.glob('_delta_log/*'))):5,} {sum(counts.values()):12,} {kept:14,}"
    )


def main() -> None:
    growth()
    cost_of_a_part(int(sys.argv[1]) if len(sys.argv) > 1 else 15)


if __name__ == "__main__":
    main()
