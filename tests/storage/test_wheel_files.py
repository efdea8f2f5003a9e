"""Turns of the wheel on real files: the table holds what its grid shows, the log tells apart what came from what moved."""

from __future__ import annotations

import json
import random
import uuid
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partwise import storage
from partwise.parts import Parts
from partwise.storage import Handle
from partwise.storage import schema as schemas
from partwise.storage.wheel import cell_of, turn
from spark_jobs.rolling import carry_out, digest_of

WIDTH = 17
COLUMNS = {"k": "string", "x": "double", "t": "timestamp"}


class Lake:
    def __init__(self, at: Path, rng: random.Random) -> None:
        self.rng = rng
        self.grid = storage.create(str(at / "v__grid"), schemas.of({**COLUMNS, "last_part": "bigint"}))
        self.table = storage.create(str(at / "v"), schemas.of(COLUMNS, parts=False))
        self.rows: dict[int, list[dict[str, object]]] = {}

    def arrive(self, part: int) -> None:
        ends = [self.rng.randint(part, part + WIDTH - 1) for _ in range(self.rng.choice([0, 3, 6]))]
        rows = [
            {"part": part, "part_timestamp": 0, "k": self.rng.choice("ab"), "x": self.rng.choice([None, 0.5]),
             "t": 10**6 * self.rng.randint(0, 9), "last_part": end} for end in ends
        ]  # fmt: skip
        self.rows[part] = rows
        step, kinds = uuid.uuid4().hex[:12], self.grid.table.to_pyarrow_table().schema
        folder = Path(storage.begin(self.grid, step))
        if rows:
            folder.mkdir()
            pq.write_table(pa.Table.from_pylist(rows, kinds), folder / "rows.parquet")
        change = storage.rewrite(self.grid, Parts.single(part))
        storage.commit(self.grid, storage.staged(self.grid.path, step), change.removed, {})
        self.grid = storage.open_at(self.grid.path)

    def move(self, position: int, changed: Parts) -> None:
        cells = {cell_of(file.path): file for file in self.table.files}
        named = {found: file for found, file in cells.items() if found is not None}
        old = {cell: file for (cell, _), file in named.items()}
        assert len(old) == len(self.table.files)
        found = turn(old, position, WIDTH, changed)
        made = carry_out(
            found,
            self.table,
            self.grid,
            position,
            uuid.uuid4().hex[:12],
            {cell: (file, digest) for (cell, digest), file in named.items()},
        )
        moved = {old[cell].path for cell in found.shifted} | {
            f.path for f, (c, _) in made.items() if c in found.settled
        }
        removed = [old[cell] for cell in (*found.gone, *found.shifted)]
        version = storage.commit(self.table, list(made), removed, {}, moved=moved)
        before, self.table = contents(self.table), storage.open_at(self.table.path, version)
        came, went = logged(self.table)
        after = contents(self.table)
        assert came - went == after - before
        assert went - came == before - after
        shown = [
            (row["k"], row["x"], row["t"])
            for part in range(position - WIDTH + 1, position + 1)
            for row in self.rows.get(part, [])
            if row["last_part"] >= position  # type: ignore[operator]
        ]
        assert after == Counter(shown)


def contents(handle: Handle) -> Counter[tuple[object, ...]]:
    return of_rows(handle.table.to_pyarrow_table())


def of_rows(rows: pa.Table) -> Counter[tuple[object, ...]]:
    rows = rows.set_column(rows.schema.get_field_index("t"), "t", rows.column("t").cast("int64"))
    return Counter(tuple(row.values()) for row in rows.to_pylist())


def logged(handle: Handle) -> tuple[Counter[tuple[object, ...]], Counter[tuple[object, ...]]]:
    """Rows of the files that the last commit says to change the data by: added and removed."""
    log = Path(handle.path) / "_delta_log" / f"{handle.version:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    found = []
    for kind in ("add", "remove"):
        paths = [a[kind]["path"] for a in actions if kind in a and a[kind]["dataChange"]]
        rows: Counter[tuple[object, ...]] = Counter()
        for path in paths:
            rows += of_rows(pq.read_table(Path(handle.path) / path, partitioning=None))
        found.append(rows)
    return found[0], found[1]


@pytest.mark.parametrize("seed", range(2))
def test_the_table_holds_what_its_grid_shows(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    lake, at, known = Lake(tmp_path, rng), 100, Parts()
    for part in range(at - 3, at + 1):
        lake.arrive(part)
    for _ in range(14):
        step = rng.choice([1, 1, 1, 2, 5])
        for part in range(at + 1, at + step + 1):
            lake.arrive(part)
        at += step
        late = [p for p in range(at - WIDTH + 1, at) if rng.random() < 0.03]
        for part in late:
            lake.arrive(part)
        here = Parts.of((at - WIDTH + 1, at))
        lake.move(at, (here - known) | (Parts.single(*late) & here))
        known = here


def test_digests_do_not_depend_on_order() -> None:
    rows = pa.table({"a": [1, 2, None, 2], "b": ["x", None, "x", None]})
    assert digest_of(rows) == digest_of(rows.take(pa.array([3, 2, 1, 0])))
    assert digest_of(rows) != digest_of(rows.slice(0, 3))
    assert digest_of(pa.table({"a": [1], "b": [2]})) != digest_of(pa.table({"a": [2], "b": [1]}))
    assert digest_of(rows.slice(0, 0)) == "0:" + 32 * "0"
