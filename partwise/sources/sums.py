"""Arithmetic on digests. A digest is a row count and two sums over the rows, so what a part holds after
rows came and went follows from what it held before, without reading it again."""

from __future__ import annotations

from collections.abc import Mapping

from partwise.ledger.write.commit import EMPTY, Content

_MOD = 2**64


def plus(a: str, b: str, sign: int = 1) -> str:
    """The digest of the rows of both; with sign -1 that of a without the rows of b."""
    (m, x, y), (n, u, v) = _split(a), _split(b)
    return f"{m + sign * n}:{(x + sign * u) % _MOD:016x}{(y + sign * v) % _MOD:016x}"


def changed(before: Mapping[int, Content], added: Mapping[int, str], removed: Mapping[int, str]) -> dict[int, Content]:
    """What the touched parts hold afterwards."""
    found = {}
    for p in {*added, *removed}:
        digest = before.get(p, EMPTY).digest
        if p in added:
            digest = plus(digest, added[p])
        if p in removed:
            digest = plus(digest, removed[p], -1)
        rows = _split(digest)[0]
        if rows < 0:
            raise ValueError(f"part {p} would hold {rows} rows: the ledger and the table do not agree")
        found[p] = Content(rows, digest)
    return found


def _split(digest: str) -> tuple[int, int, int]:
    rows, _, sums = digest.partition(":")
    return int(rows), int(sums[:16], 16), int(sums[16:], 16)
