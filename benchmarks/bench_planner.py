"""How long planning takes, and that it does not grow with history.

1,000 views in 10 layers over 20 sources. Every table has a million parts, as one run or as 1,000 runs
with gaps between them; the rows of 10 thousand, 100 thousand and a million parts are really there.

    python benchmarks/bench_planner.py [--only sqlite|postgres] [--largest 1000000]
"""

from __future__ import annotations

import argparse
import io
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

from sqlalchemy import text

from partwise.ledger.ledger import Ledger
from partwise.ledger.open import open_ledger
from partwise.ledger.read.audit import due_by_formula
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Parts, Reference
from partwise.tables import Graph, Input, Table

NOW = 1_000_000.0
SOURCES, LAYERS, WIDTH = 20, 10, 100
PARTS, RUNS = 1_000_000, 1_000
LATE = PARTS - PARTS // RUNS // 2  # in the middle of the last run, so that windows are whole
REPEATS = 9


def make_graph(rng: Random) -> Graph:
    """Every view reads two tables of the layer above it; some read a window, some themselves."""
    tables = [Table(f"s{n}", "source", 60, "f") for n in range(SOURCES)]
    above = list(tables)
    for layer in range(LAYERS):
        views = []
        for n in range(WIDTH):
            name = f"v{layer}_{n}"
            first, second = rng.sample(above, 2)
            window = Reference.window(-9, 0) if n % 5 == 0 else Reference.same()
            inputs = [Input(first.name, Reference.same()), Input(second.name, window)]
            if n % 10 == 3:
                inputs.append(Input(name, Reference.same(-1)))
            views.append(Table(name, "view", 60, "f", tuple(inputs), tuple(inputs[:2])))
        tables += views
        above = views
    return Graph.of(tables)


def runs(gaps: bool) -> list[tuple[int, int]]:
    if not gaps:
        return [(0, PARTS - 1)]
    size = PARTS // RUNS
    return [(n * size, (n + 1) * size - 2) for n in range(RUNS)]


def load(ledger: Ledger, table: str, columns: str, rows: Iterable[tuple[object, ...]]) -> None:
    """Rows in bulk, past the ledger's own code."""
    raw = ledger.database.engine.raw_connection()
    try:
        cursor = raw.cursor()
        if ledger.database.sqlite:
            marks = ",".join("?" * len(columns.split(",")))
            cursor.execute("BEGIN")
            cursor.executemany(f'INSERT INTO "{table}" ({columns}) VALUES ({marks})', rows)
            cursor.execute("COMMIT")
        else:
            data = io.StringIO("".join("\t".join(map(str, row)) + "\n" for row in rows))
            cursor.copy_expert(f'COPY "{table}" ({columns}) FROM STDIN', data)
            raw.commit()
    finally:
        raw.close()


def execute(ledger: Ledger, *statements: str) -> None:
    with ledger.database.changing_schema() as on:
        for statement in statements:
            on.execute(text(statement))


def add_parts(ledger: Ledger, names: list[str], old: int, new: int) -> None:
    """Part rows, evenly over the tables, the newest parts first; `old` and `new` are totals."""
    first, last = old // len(names), new // len(names)
    columns = '"table", part, revision, changed_seq, as_of, self_as_of, fingerprint, rows, digest, version, updated_at'
    load(
        ledger,
        "part",
        columns,
        ((name, PARTS - 1 - n, 1, 1, 1, 1, "f", 9, "d", 0, 0.0) for name in names for n in range(first, last)),
    )
    refresh(ledger)


def refresh(ledger: Ledger) -> None:
    """What the database does by itself after a while."""
    if not ledger.database.sqlite:
        with ledger.database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as on:
            on.execute(text("VACUUM ANALYZE"))


def set_runs(ledger: Ledger, names: list[str], gaps: bool) -> None:
    execute(ledger, "DELETE FROM have")
    load(ledger, "have", '"table", lo, hi', ((name, lo, hi) for name in names for lo, hi in runs(gaps)))
    refresh(ledger)


def milliseconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """The best of some: the others tell how busy the machine was."""
    taken = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        taken.append((time.perf_counter() - begin) * 1000)
    return min(taken)


def measure(ledger: Ledger, graph: Graph) -> dict[str, float]:
    found: dict[str, float] = {}

    def plan() -> int:
        return len(ledger.plan(NOW).steps)

    def cold() -> None:
        ledger._catalog.forget()
        plan()

    execute(ledger, "DELETE FROM due")
    found["first"] = milliseconds(cold, 3)
    assert plan() == 0
    found["none"] = milliseconds(plan)

    leaves = [f"v{LAYERS - 1}_{n}" for n in range(0, WIDTH, 10)]
    for name in leaves:
        ledger.request(name, Parts.single(LATE), NOW)
    assert plan() == 10
    found["ten"] = milliseconds(plan)
    held = ledger.take(leaves[0], "bench", 60, NOW)
    found["pin"] = milliseconds(lambda: ledger.pin(held, NOW))
    ledger.release(held, NOW)
    execute(ledger, "DELETE FROM due")

    digests = iter(range(10**9))

    def late() -> None:
        held = ledger.take("s0", "bench", 60, NOW)
        entry = Entry("s0", 0, "f", None, parts={LATE: Content(9, f"late{next(digests)}-{time.time()}")})
        ledger.commit(held, entry, None, NOW)

    late()
    execute(ledger, "DELETE FROM due")
    found["late"] = milliseconds(late)
    assert plan() > 0
    found["late plan"] = milliseconds(plan)
    execute(ledger, "DELETE FROM due")

    def change() -> None:
        nonlocal graph
        table = replace(graph["v5_1"], fingerprint=f"g{next(digests)}-{time.time()}")
        graph = Graph({**graph.tables, "v5_1": table})
        assert ledger.define(graph, NOW).changed == ("v5_1",)

    found["define"] = milliseconds(change, 3)
    plan()
    found["define plan"] = milliseconds(plan, 3)
    found["expire"] = milliseconds(lambda: ledger.may_expire("s0", NOW), 3)
    execute(ledger, "DELETE FROM due", f"DELETE FROM part WHERE \"table\" = 's0' AND part = {LATE}")
    return found


COLUMNS = {
    "none": "nothing due",
    "ten": "10 due",
    "pin": "pin",
    "late": "late: txn",
    "late plan": "late: plan",
    "define": "define",
    "define plan": "def.: plan",
    "expire": "expirable",
    "first": "first plan",
}


def scan(ledger: Ledger) -> float:
    """The as-of formula over one view with a million parts: what the audit costs."""
    graph = Graph.of(
        [Table("s", "source", 60, "f"), Table("v", "view", 60, "f", *(((Input("s", Reference.same()),),) * 2))]
    )
    ledger.define(graph, NOW)
    execute(ledger, "DELETE FROM part", "DELETE FROM have", "UPDATE catalog SET start = 0 WHERE \"table\" = 'v'")
    add_parts(ledger, ["s", "v"], 0, 2 * PARTS)
    load(ledger, "have", '"table", lo, hi', [("s", 0, PARTS - 1), ("v", 0, PARTS - 1)])
    with ledger.database.reading() as r:
        begin = time.perf_counter()
        assert due_by_formula(r, graph, graph["v"]) == {}
        return (time.perf_counter() - begin) * 1000


@contextmanager
def databases(only: str | None) -> Iterator[dict[str, str]]:
    folder = Path(tempfile.mkdtemp(prefix="partwise-bench-"))
    urls, server = {}, None
    try:
        if only in (None, "sqlite"):
            urls["sqlite"] = f"sqlite:///{folder / 'ledger.db'}"
        if only in (None, "postgres"):
            from partwise.serve import postgres

            server = postgres.start(folder / "postgres", stops_with_us=True)
            urls["postgres"] = server.url("postgres")
        yield urls
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", choices=("sqlite", "postgres"))
    options.add_argument("--largest", type=int, default=1_000_000, help="rows of parts, at most")
    options.add_argument("--no-scan", action="store_true", help="leave out the audit of a million parts")
    given = options.parse_args()
    graph = make_graph(Random(1))
    print(f"{SOURCES} sources, {LAYERS * WIDTH} views in {LAYERS} layers; milliseconds, best of some")
    print(f"{'database':9} {'rows':>9} {'runs':>5} " + " ".join(f"{name:>11}" for name in COLUMNS.values()))
    with databases(given.only) as urls:
        for database, url in urls.items():
            ledger = open_ledger(url, NOW)
            ledger.define(graph, NOW)
            execute(ledger, "UPDATE catalog SET start = 0 WHERE kind = 'view'")
            names, total = list(graph.tables), 0
            set_runs(ledger, names, gaps=False)
            sizes = [size for size in (10_000, 100_000, 1_000_000) if size <= given.largest]
            for size, gaps in [(s, False) for s in sizes] + [(sizes[-1], True)]:
                if size > total:
                    add_parts(ledger, names, total, size)
                    total = size
                if gaps:
                    set_runs(ledger, names, gaps=True)
                found = measure(ledger, graph)
                ledger.define(graph, NOW)
                cells = " ".join(f"{found[key]:11.2f}" for key in COLUMNS)
                print(f"{database:9} {size:9} {RUNS if gaps else 1:5} {cells}", flush=True)
            if not given.no_scan:
                print(f"{database:9} the formula over one view of {PARTS:,} parts: {scan(ledger):.0f} ms", flush=True)
            ledger.database.close()


if __name__ == "__main__":
    main()
