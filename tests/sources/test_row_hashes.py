"""Hashes of whole columns equal those of one value after the other, by the published algorithm (XXH64) in plain Python."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.ingest.files.row_hashes import TooLong, row_hashes

P1, P2, P3 = 11400714785074694791, 14029467366897019727, 1609587929392839161
P4, P5 = 9650029242287828579, 2870177450012600261
ALL = 2**64 - 1


def turned(value: int, by: int) -> int:
    value &= ALL
    return ((value << by) | (value >> (64 - by))) & ALL


def round_of(lane: int, word: int) -> int:
    return turned(lane + word * P2, 31) * P1 & ALL


def xxh64(data: bytes, seed: int) -> int:
    at, size = 0, len(data)
    if size >= 32:
        lanes = [seed + P1 + P2, seed + P2, seed, seed - P1]
        while at + 32 <= size:
            lanes = [
                round_of(lane, int.from_bytes(data[at + 8 * n : at + 8 * n + 8], "little"))
                for n, lane in enumerate(lanes)
            ]
            at += 32
        found = sum(turned(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & ALL
        for lane in lanes:
            found = ((found ^ round_of(0, lane)) * P1 + P4) & ALL
    else:
        found = seed + P5 & ALL
    found = found + size & ALL
    while at + 8 <= size:
        found = (turned(found ^ round_of(0, int.from_bytes(data[at : at + 8], "little")), 27) * P1 + P4) & ALL
        at += 8
    if at + 4 <= size:
        found = (turned(found ^ int.from_bytes(data[at : at + 4], "little") * P1, 23) * P2 + P3) & ALL
        at += 4
    for byte in data[at:]:
        found = turned(found ^ byte * P5, 11) * P1 & ALL
    found = (found ^ found >> 33) * P2 & ALL
    found = (found ^ found >> 29) * P3 & ALL
    return found ^ found >> 32


def test_the_algorithm_itself() -> None:
    assert xxh64(b"", 0) == 0xEF46DB3751D8E999
    assert xxh64(b"abc", 0) == 0x44BC2CF5AD770999


def plain(value: float) -> float:
    return math.nan if math.isnan(value) else value + 0.0


REALS = st.floats(allow_nan=True, width=32)
#: Arrow's type, values, and the bytes that Spark hashes of one.
KINDS: list[tuple[Any, Any, Any]] = [
    (pa.int64(), st.integers(-(2**63), 2**63 - 1), lambda v: struct.pack("<q", v)),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1), lambda v: struct.pack("<i", v)),
    (pa.int8(), st.integers(-128, 127), lambda v: struct.pack("<i", v)),
    (pa.bool_(), st.booleans(), lambda v: struct.pack("<i", v)),
    (pa.float64(), st.floats(), lambda v: struct.pack("<d", plain(v))),
    (pa.float32(), REALS, lambda v: struct.pack("<f", plain(v))),
    (pa.string(), st.text(max_size=80), lambda v: v.encode()),
    (pa.date32(), st.dates(), lambda v: struct.pack("<i", (v - dt.date(1970, 1, 1)).days)),
    (
        pa.decimal128(18, 2),
        st.decimals(-(10**16) + 1, 10**16 - 1, places=2, allow_nan=False),
        lambda v: struct.pack("<q", int(v * Decimal(100))),
    ),
]


@given(st.data())
def test_columns_are_hashed_as_their_values(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    count, salt = data.draw(st.integers(0, 12)), data.draw(st.sampled_from([42, 7]))
    columns = [data.draw(st.lists(st.none() | values, min_size=count, max_size=count)) for _, values, _ in kinds]
    expected = []
    for row in range(count):
        found = xxh64(struct.pack("<i", salt), 42)
        for (_, _, as_bytes), column in zip(kinds, columns, strict=True):
            found = xxh64(struct.pack("<i", column[row] is None), found)
            found = found if column[row] is None else xxh64(as_bytes(column[row]), found)
        expected.append(found)
    names = [f"c{at}" for at in range(len(kinds))]
    arrays = [pa.array(column, kind) for (kind, _, _), column in zip(kinds, columns, strict=True)]
    table = pa.table(dict(zip(names, arrays, strict=True)))
    assert row_hashes(table, names, salt).tolist() == expected
    # Slices and chunks begin somewhere inside of their memory.
    cut = pa.concat_tables([table.slice(0, count // 2), table.slice(count // 2)])
    assert row_hashes(cut, names, salt).tolist() == expected
    assert row_hashes(table.slice(1), names, salt).tolist() == expected[1:]


def test_texts_of_too_many_lengths_are_left_to_spark() -> None:
    with pytest.raises(TooLong):
        row_hashes(pa.table({"s": ["x" * n for n in range(1, 400)]}), ["s"], 42)
