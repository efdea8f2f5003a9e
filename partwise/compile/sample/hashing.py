"""Which keys are in a sample: those whose hash is small. One seed, and neither part nor table goes in.

So a key is in the sample of every part and every view or of none: what is computed from several parts or joined on
the key stays whole. The hash is Spark's xxhash64, of text: NULL is told from every value, and no type is hashed in two
ways. The same is computed here for a key that a query names.
"""

from __future__ import annotations

from collections.abc import Sequence

from partwise.sql.types.names import INTEGERS

_SEED = "partwise"
_SPARK = 42  # where Spark's own chain begins
_MASK = (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def can_hash(kind: str | None) -> bool:
    """Whether a value has one text: doubles have several, bytes none."""
    return kind is not None and (
        kind in INTEGERS or kind in ("string", "boolean", "date", "timestamp") or kind.startswith("decimal(")
    )


def threshold(ratio: float) -> int:
    """Hashes up to this are in a sample: `ratio` of all numbers of 64 bits."""
    return -(1 << 63) + int(ratio * (1 << 64)) - 1


def hash_sql(columns: Sequence[tuple[str, str]]) -> str:
    """SQL of Spark over columns (as SQL) with their types."""
    texts = ", ".join(
        f"CASE WHEN {sql} IS NULL THEN 'n' ELSE concat('v', {_text(sql, kind)}) END" for sql, kind in columns
    )
    return f"xxhash64('{_SEED}', {texts})"


def _text(sql: str, kind: str) -> str:
    return f"CAST(unix_micros({sql}) AS STRING)" if kind == "timestamp" else f"CAST({sql} AS STRING)"


def hash_of(values: Sequence[str | None]) -> int:
    """The same of values as text, None for NULL."""
    found = _xxhash64(_SEED.encode(), _SPARK)
    for value in values:
        found = _xxhash64(("n" if value is None else f"v{value}").encode(), found)
    return found - (1 << 64) if found >> 63 else found


def _xxhash64(data: bytes, seed: int) -> int:
    at, size = 0, len(data)
    if size >= 32:
        lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
        while at + 32 <= size:
            for n in range(4):
                lanes[n] = _round(lanes[n], int.from_bytes(data[at : at + 8], "little"))
                at += 8
        found = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            found = ((found ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        found = (seed + _P5) & _MASK
    found = (found + size) & _MASK
    while at + 8 <= size:
        found ^= _round(0, int.from_bytes(data[at : at + 8], "little"))
        found = (_rotated(found, 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= size:
        found ^= int.from_bytes(data[at : at + 4], "little") * _P1 & _MASK
        found = (_rotated(found, 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        found = _rotated(found ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    found = (found ^ found >> 33) * _P2 & _MASK
    found = (found ^ found >> 29) * _P3 & _MASK
    return found ^ found >> 32


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _MASK
