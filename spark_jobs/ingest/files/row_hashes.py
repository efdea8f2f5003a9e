"""Hashes of rows in memory, as `spark_jobs.step.digest` lets Spark compute them: `xxhash64` over each plain column.

Digests are kept for years, so these are the numbers that Spark gives, bit by bit; a test compares both ways.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

#: Text is hashed length by length: so many bytes, each length counted once, take some hundredths of a second.
MOST_LENGTHS = 50_000
_1, _2, _3, _4, _5 = (
    np.uint64(prime)
    for prime in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)
#: The seed of Spark's function.
_SEED = 42


class TooLong(Exception):
    """Texts of too many different lengths."""


def row_hashes(rows: Any, names: Iterable[str], salt: int) -> Any:
    """One hash of each row of an Arrow table, as unsigned numbers. Raises TooLong."""
    with np.errstate(over="ignore"):
        found = _of_int(np.full(rows.num_rows, salt, np.uint64), np.full(rows.num_rows, _SEED, np.uint64))
        for name in names:
            found = _column(_whole(rows.column(name)), found)
    return found


def _whole(column: Any) -> Any:
    found = column.combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


def _column(column: Any, seed: Any) -> Any:
    """The flag of NULL, then the value: NULL itself is skipped."""
    missing = np.asarray(column.is_null())
    flagged = _of_int(missing.astype(np.uint64), seed)
    return np.where(missing, flagged, _value(column, flagged))


def _value(column: Any, seed: Any) -> Any:
    kind = column.type
    if pa.types.is_string(kind):
        return _text(column, seed)
    if pa.types.is_decimal128(kind) and kind.precision <= 18:
        halves = np.frombuffer(column.buffers()[1], np.int64)[2 * column.offset :]
        return _of_long(halves[: 2 * len(column) : 2].view(np.uint64), seed)
    if pa.types.is_timestamp(kind) or pa.types.is_int64(kind):
        return _of_long(_numbers(column.cast(pa.int64())).view(np.uint64), seed)
    if pa.types.is_float64(kind):
        return _of_long(_bits(_numbers(column)).view(np.uint64), seed)
    if pa.types.is_float32(kind):
        return _of_int(_bits(_numbers(column)).view(np.uint32).astype(np.uint64), seed)
    if pa.types.is_boolean(kind):
        return _of_int(_numbers(column.cast(pa.int8())).astype(np.uint64), seed)
    if pa.types.is_date32(kind) or pa.types.is_signed_integer(kind):
        return _of_int(_numbers(column.cast(pa.int32())).view(np.uint32).astype(np.uint64), seed)
    raise TypeError(f"no hash of {kind}")


def _numbers(column: Any) -> Any:
    """NULL as zero: its hash is thrown away."""
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    return np.ascontiguousarray(pc.fill_null(column, pa.scalar(0, column.type)).to_numpy(zero_copy_only=False))


def _bits(numbers: Any) -> Any:
    """Negative zero counts as zero, and all NaNs are one."""
    return np.where(np.isnan(numbers), numbers.dtype.type(np.nan), numbers + numbers.dtype.type(0))


def _turned(value: Any, by: int) -> Any:
    return (value << np.uint64(by)) | (value >> np.uint64(64 - by))


def _mixed(found: Any) -> Any:
    found = (found ^ (found >> np.uint64(33))) * _2
    found = (found ^ (found >> np.uint64(29))) * _3
    return found ^ (found >> np.uint64(32))


def _of_int(value: Any, seed: Any) -> Any:
    return _mixed(_four_bytes(seed + _5 + np.uint64(4), value))


def _of_long(value: Any, seed: Any) -> Any:
    return _mixed(_eight_bytes(seed + _5 + np.uint64(8), value))


def _four_bytes(found: Any, value: Any) -> Any:
    return _turned(found ^ (value * _1), 23) * _2 + _3


def _eight_bytes(found: Any, value: Any) -> Any:
    return _turned(found ^ (_turned(value * _2, 31) * _1), 27) * _1 + _4


def _text(column: Any, seed: Any) -> Any:
    """All texts of one length at once."""
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    content = np.frombuffer(data or b"", np.uint8)
    sizes = np.diff(ends)
    lengths = np.unique(sizes)
    if int(lengths.sum()) > MOST_LENGTHS:
        raise TooLong
    found = np.empty(len(column), np.uint64)
    for length in lengths.tolist():
        at = np.flatnonzero(sizes == length)
        found[at] = _bytes(content[ends[at][:, None] + np.arange(length)], length, seed[at])
    return found


def _bytes(block: Any, length: int, seed: Any) -> Any:
    words = np.ascontiguousarray(block[:, : length & -8]).view("<u8")
    done, size = 0, np.uint64(length)
    if length >= 32:
        lanes = [seed + _1 + _2, seed + _2, seed, seed - _1]
        for done in range(0, length // 32 * 4, 4):
            lanes = [_turned(lane + words[:, done + n] * _2, 31) * _1 for n, lane in enumerate(lanes)]
        done += 4
        found = sum(_turned(lane, by) for lane, by in zip(lanes[1:], (7, 12, 18), strict=True)) + _turned(lanes[0], 1)
        for lane in lanes:
            found = (found ^ (_turned(lane * _2, 31) * _1)) * _1 + _4
        found = found + size
    else:
        found = seed + _5 + size
    for word in range(done, length // 8):
        found = _eight_bytes(found, words[:, word])
    at = length & -8
    if at + 4 <= length:
        found = _four_bytes(found, np.ascontiguousarray(block[:, at : at + 4]).view("<u4")[:, 0].astype(np.uint64))
        at += 4
    for byte in range(at, length):
        found = _turned(found ^ (block[:, byte].astype(np.uint64) * _5), 11) * _1
    return _mixed(found)
