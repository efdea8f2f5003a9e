"""Windows of one family, with helpers that they share and with helpers of their own: what a new part of all of them costs.

    python benchmarks/bench_sharing.py [--windows 20] [--rows 200000] [--rounds 6]

Both workspaces get the same parts, turn by turn, in one warm session; what counts is the median of the ratios, and that all views
hold the same. How each window is kept is settled by counts, as always. Goals for 20 windows: tables and scans of the source at
most 0.2, the time of a new part at most 0.35 of what it is with helpers of their own.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from pathlib import Path

from bench_step import SOURCE, prepared
from sqlalchemy import select

from partwise.compile.load import load
from partwise.ledger.schema import part as parts_table
from partwise.parts import Parts
from spark_jobs.engine import Engine
from spark_jobs.run import run
from spark_jobs.session.session import session

GOALS = {"tables": 0.2, "scans": 0.2, "time": 0.35}
WARM = 2
#: One argument, as a team would write it.
QUERIES = (
    "SELECT g, SUM(x) AS s FROM m [WINDOW {n} minutes] GROUP BY g",
    "SELECT g, AVG(x) AS a FROM m [WINDOW {n} minutes] GROUP BY g HAVING AVG(x) > 0.1",
    "SELECT q.g, COUNT(q.x) AS many, SUM(q.x) AS total FROM m [WINDOW {n} minutes] q GROUP BY q.g",
)


def workspace(spark: object, at: Path, windows: int, parts: int, rows: int, share: bool) -> Engine:
    engine = prepared(spark, at, "SELECT g FROM {m}", parts, rows)  # type: ignore[arg-type]
    views = [
        f"view: w{n:02}\npart: 1 minute\nshare: {str(share).lower()}\nquery: {QUERIES[n % len(QUERIES)].format(n=n + 2)}\n"
        for n in range(windows)
    ]
    (at / "view_defs" / "all.yaml").write_text("---\n".join([SOURCE, *views]))
    engine.definitions = load(str(at / "view_defs"))
    assert engine.definitions.ok, [str(p) for p in engine.definitions.problems]
    engine.ledger.define(engine.definitions.graph(), 0.0)
    engine.step_seconds = math.inf
    return engine


def up_to(engine: Engine, last: int) -> float:
    """Compute everything up to this part; how long it took."""
    began = time.perf_counter()
    names = [name for name, table in engine.ledger.graph().tables.items() if table.kind == "view"]
    wanted = {name: Parts.of((0, last)) for name in names}
    list(run(engine, within=lambda: wanted))
    return time.perf_counter() - began


def reads(engine: Engine) -> tuple[int, int]:
    """Tables that read the source, and parts of it that they read for a new part."""
    tables = engine.ledger.graph().tables.values()
    found = [i.reference for t in tables for i in t.inputs if i.table == "m" and i.reference is not None]
    return len(found), sum(reference.hi.at(0) - reference.lo.at(0) + 1 for reference in found)


def contents(engine: Engine) -> list[tuple[str, int, str]]:
    with engine.ledger.database.reading() as r:
        found = r.on.execute(select(parts_table.c.table, parts_table.c.part, parts_table.c.digest))
        return sorted((t, p, digest) for t, p, digest in found if "__" not in t and t != "m")


def compare(spark: object, windows: int, rows: int, rounds: int) -> dict[str, float]:
    """The shares that the goals are about."""
    first = windows + 2
    parts = first + WARM + rounds
    with tempfile.TemporaryDirectory() as folder:
        shared = workspace(spark, Path(folder) / "shared", windows, parts, rows, True)
        own = workspace(spark, Path(folder) / "own", windows, parts, rows, False)
        for engine in (shared, own):
            up_to(engine, 0)  # by counts of the first parts
            up_to(engine, first - 1)
        times: list[tuple[float, float]] = []
        for p in range(first, parts):
            order = (shared, own) if p % 2 else (own, shared)
            took = {id(engine): up_to(engine, p) for engine in order}
            times.append((took[id(shared)], took[id(own)]))
        (tables, scans), (own_tables, own_scans) = reads(shared), reads(own)
        ratio = statistics.median(one / other for one, other in times[WARM:])
        same = contents(shared) == contents(own)
        print(f"{windows} windows, {rows:,} rows in a part: same contents: {same}")
        print(f"  shared: {tables} tables read {scans} parts of the source; {times[-1][0]:.2f} s for a new part")
        print(
            f"  own:    {own_tables} tables read {own_scans} parts of the source; {times[-1][1]:.2f} s for a new part"
        )
        found = {"tables": tables / own_tables, "scans": scans / own_scans, "time": ratio}
        for what, share in found.items():
            print(f"  {what}: {share:.2f} (goal {GOALS[what]})", flush=True)
        return found


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--windows", type=int, default=20)
    ask.add_argument("--rows", type=int, default=200_000)
    ask.add_argument("--rounds", type=int, default=6)
    asked = ask.parse_args()
    compare(session(), asked.windows, asked.rows, asked.rounds)


if __name__ == "__main__":
    main()
