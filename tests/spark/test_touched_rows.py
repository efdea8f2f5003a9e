"""Which rows have a touched key, as found without Spark: compared with a plain loop."""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from partwise import storage
from partwise.parts import Parts
from partwise.storage import schema as schemas
from spark_jobs.ingest.difference import coarse
from spark_jobs.step.keys import AnyOf, TouchedKeys, _mask, _matching, _may_match
from spark_jobs.step.patch import Repaired

DOMAIN: dict[str, list[Any]] = {"k": ["a", "b", "ü", None], "g": [1, 2, -3, None], "b": [True, False, None]}
SCHEMA = pa.schema([("part", pa.int64()), ("k", pa.string()), ("g", pa.int32()), ("b", pa.bool_())])


def some_keys(rng: random.Random) -> AnyOf:
    sets = []
    for _ in range(rng.randint(0, 2)):
        columns = tuple(rng.sample(list(DOMAIN), rng.randint(1, 3)))
        values = {
            tuple(rng.choice([*DOMAIN[c], *({"k": ["c"], "g": [7]}.get(c, []))]) for c in columns)
            for _ in range(rng.randint(0, 4))
        }
        sets.append(TouchedKeys(columns, (), tuple(values)))
    return AnyOf(None, tuple(sets))  # type: ignore[arg-type]


def test_touched_rows_are_those_with_one_of_the_keys() -> None:
    rng = random.Random(3)
    for _ in range(300):
        rows = [
            {"part": rng.randint(1, 4)} | {c: rng.choice(v) for c, v in DOMAIN.items()}
            for _ in range(rng.randint(0, 30))
        ]
        keys, parts = some_keys(rng), Parts.single(*rng.sample([1, 2, 3, 4], rng.randint(1, 3)))
        table = pa.Table.from_pylist(rows, schema=SCHEMA)
        expected = [
            row["part"] in parts and any(tuple(row[c] for c in s.columns) in s.values for s in keys.sets)
            for row in rows
        ]
        assert list(_mask(table, parts, keys)) == expected
        # What is skipped by statistics has none of them.
        assert int(_mask(table.filter(_may_match(parts, keys)), parts, keys).sum()) == sum(expected)


def test_rows_of_a_file_with_touched_keys(tmp_path: Path) -> None:
    """Whatever groups the rows of the file are in; a column that came later has no values, one that nobody uses is not read."""
    rng = random.Random(4)
    kinds = {"part": "bigint", "k": "string", "g": "int", "b": "boolean", "x": "date", "later": "bigint"}
    handle = storage.create(str(tmp_path / "t"), schemas.of(kinds, parts=False))
    stored = SCHEMA.append(pa.field("x", pa.date32()))
    for n in range(60):
        rows = [
            {"part": rng.randint(1, 4)}
            | {c: rng.choice(v) for c, v in DOMAIN.items()}
            | {"x": date(2026, 1, 1 + i % 9)}
            for i in range(rng.randint(0, 30))
        ]
        pq.write_table(pa.Table.from_pylist(rows, schema=stored), tmp_path / f"t/{n}.parquet", row_group_size=7)
        keys, parts = some_keys(rng), rng.choice([None, Parts.single(2), Parts.of((1, 2), (4, 4))])
        file = storage.File(f"{n}.parquet", 1, len(rows), 1, 4)
        found = _matching(handle, [file], parts, keys.sets, ["part", "later", "x"]).to_pylist()
        expected = [
            row
            for row in rows
            if parts is None or row["part"] in parts
            if any(tuple(row[c] for c in each.columns) in each.values for each in keys.sets)
        ]
        used = {"part", "x", *(c for each in keys.sets for c in each.columns)}
        wanted = [{c: v for c, v in row.items() if c in used} | {"later": None} for row in expected]
        assert [dict(sorted(row.items())) for row in found] == [dict(sorted(row.items())) for row in wanted]


def test_too_many_ranges_of_parts_are_joined_over_the_smallest_gaps() -> None:
    parts = Parts.of((1, 2), (4, 4), (10, 12), (14, 14), (40, 41))
    assert coarse(parts, 5) == parts
    assert coarse(parts, 3) == Parts.of((1, 4), (10, 14), (40, 41))
    assert coarse(parts, 1) == Parts.of((1, 41))


def test_what_is_said_of_a_repair() -> None:
    assert Repaired("recompute", 0, 0, 0).text() == "", "small parts always are"
    assert Repaired("recompute", 0, 0, 0, 2.04).text() == "recomputed, 2.0 s foreseen"
    assert Repaired("keys", 1, 0, 0).text() == "repaired by keys (1 key)"
    assert Repaired("merge", 2000, 0, 0, 1.25).text() == "repaired by merge (2,000 keys, 1.2 s foreseen)"
