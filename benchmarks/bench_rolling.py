"""A large rolling table: a turn of the wheel against writing the table whole, and what reading it costs then.

Both read the grid, write files and commit, without Spark: what differs is how much of the table they write. CPU seconds of
this process, the median and the worst of some slides; reading sums a column of all rows by DuckDB.

    python benchmarks/bench_rolling.py [--rows 1000000] [--windows 50,200] [--slides 20]

`--rows` are about those that the table shows. Goals at 1,000,000 rows: a turn <= 0.35 of a rewrite, reading <= 1.5 times.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from partwise import storage
from partwise.parts import Parts, Range
from partwise.storage import Handle
from partwise.storage import schema as schemas
from partwise.storage.wheel import WheelCell, cell_of, turn
from spark_jobs.rolling import carry_out

COLUMNS = {"k": "bigint", "x": "integer", "y": "double"}


class Grid:
    def __init__(self, at: Path, width: int, new: int) -> None:
        self.width, self.new, self.rng = width, new, np.random.default_rng(1)
        self.handle = storage.create(str(at / "v__grid"), schemas.of({**COLUMNS, "last_part": "bigint"}))

    def arrive(self, part: int) -> None:
        """Rows of a join: the older of the two sides came at any time in its window, so some leave soon."""
        n = self.new
        rows = pa.table({
            "part": pa.repeat(pa.scalar(part, pa.int64()), n), "part_timestamp": pa.repeat(pa.scalar(0, pa.timestamp("us", "UTC")), n),
            "k": self.rng.integers(0, n, n), "x": self.rng.integers(0, 1000, n, np.int32), "y": self.rng.random(n),
            "last_part": part + self.rng.integers(0, self.width, n),
        })  # fmt: skip
        step = uuid.uuid4().hex[:12]
        folder = Path(storage.begin(self.handle, step))
        folder.mkdir()
        pq.write_table(rows, folder / "rows.parquet")
        storage.commit(self.handle, storage.staged(self.handle.path, step), (), {})
        self.handle = storage.open_at(self.handle.path)


def by_wheel(table: Handle, grid: Grid, position: int, changed: Parts) -> Handle:
    known = {named[0]: (file, named[1]) for file in table.files if (named := cell_of(file.path)) is not None}
    found = turn(list(known), position, grid.width, changed)
    made = carry_out(found, table, grid.handle, position, uuid.uuid4().hex[:12], known)
    version = storage.commit(table, list(made), [known[cell][0] for cell in (*found.gone, *found.shifted)], {})
    return storage.open_at(table.path, version)


def whole(table: Handle, grid: Grid, position: int, changed: Parts) -> Handle:
    from partwise.storage.wheel import Turn

    all_of_it = WheelCell(Range(position, position + grid.width), Range(position - grid.width + 1, position))
    made = carry_out(Turn(fresh=(all_of_it,)), table, grid.handle, position, uuid.uuid4().hex[:12], {})
    version = storage.commit(table, list(made), table.files, {})
    return storage.open_at(table.path, version)


def reading(table: Handle) -> float:
    """CPU seconds to read all rows, the best of some."""
    found = []
    for _ in range(5):
        with duckdb.connect(":memory:", config={"threads": 1}) as connection:
            began = time.process_time()
            connection.execute("SELECT SUM(x), SUM(y), MAX(k) FROM read_parquet(?)", [table.uris()]).fetchall()
            found.append(time.process_time() - began)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--windows", default="50,200")
    parser.add_argument("--slides", type=int, default=20)
    asked = parser.parse_args()
    for width in (int(n) for n in asked.windows.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            grid = Grid(Path(folder), width, 2 * asked.rows // (width + 1))
            for part in range(2 * width):
                grid.arrive(part)
            ways: dict[str, Callable[..., Handle]] = {"wheel": by_wheel, "whole": whole}
            tables = {way: storage.create(f"{folder}/{way}", schemas.of(COLUMNS, parts=False)) for way in ways}
            for part in range(width, 2 * width):  # a wheel that has turned for a while
                changed = Parts.single(part) if part > width else Parts.of((part - width + 1, part))
                tables["wheel"] = by_wheel(tables["wheel"], grid, part, changed)
            seconds: dict[str, list[float]] = {way: [] for way in ways}
            for part in range(2 * width, 2 * width + asked.slides):
                grid.arrive(part)
                for way, move in ways.items():
                    began = time.process_time()
                    tables[way] = move(tables[way], grid, part, Parts.single(part))
                    seconds[way].append(time.process_time() - began)
            total = {way: sum(each) for way, each in seconds.items()}
            usual = statistics.median(seconds["whole"])
            read = {way: reading(table) for way, table in tables.items()}
            print(
                f"W={width:<4} {tables['whole'].rows:,} rows  wheel/whole {total['wheel'] / total['whole']:.2f}"
                f"  worst slide {max(seconds['wheel']) / usual:.2f}  whole {usual:.2f}s"
                f"  files {len(tables['wheel'].files)}  reading {read['wheel'] / read['whole']:.2f}x",
                flush=True,
            )


if __name__ == "__main__":
    main()
