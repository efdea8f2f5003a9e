"""Digests of parts: what tells whether a part's content changed.

A digest is the row count and the sum of two independent 64-bit hashes of every row. Sums do not
depend on the order of rows, and unlike XOR they count duplicates. Equal multisets of rows have equal
digests; different ones differ but for a chance of about 2^-128 (not against somebody who tries).

What goes in: every column of the table in the table's order, as stored (the digest is read from the
files). `part` and `part_timestamp` stay out: the first is what digests are grouped by, the second
follows from it. Spark's xxhash64 skips NULLs, runs arrays into their neighbours and refuses maps, so
each value is hashed together with what it would lose:

  plain value   NULL flag, value (Spark hashes -0.0 as 0.0, and all NaNs alike)
  array         NULL flag, length, hashes of the elements
  struct        NULL flag, hashes of the fields
  map           NULL flag, size, sorted hashes of the entries, so their order does not count

Changing anything here changes every digest: all parts would count as changed once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from partwise.storage import schema as schemas

_LOW = 0xFFFFFFFF
CHAINS = (42, 7)  # the salts of the two hashes
_FILE = "__file"


def digests(rows: DataFrame, schema: str, *, leave_out: Collection[str] = ()) -> dict[int, str]:
    """`part -> digest` of all parts in these rows (staged files as `read.staged` gives them): one scan.

    Parts without rows are not in the result; their digest is EMPTY. `leave_out` names further columns
    that are no content, such as where a row came from.
    """
    return {row[0]: text(row[1], row[2:]) for row in _summed(rows, schema, leave_out, ())}


def digests_by_file(rows: DataFrame, schema: str, *, leave_out: Collection[str] = ()) -> list[tuple[int, str, str]]:
    """Part, path of the file and digest, of rows as files hold them (`read.files`): one scan."""
    found = _summed(rows.withColumn(_FILE, F.col("_metadata.file_path")), schema, leave_out, (_FILE,))
    return [(row[0], row[1], text(row[2], row[3:])) for row in found]


def _summed(rows: DataFrame, schema: str, leave_out: Collection[str], by: tuple[str, ...]) -> list[Any]:
    hidden = {schemas.PART, schemas.PART_TIMESTAMP, *leave_out}
    content = [(name, kind) for name, kind in schemas.fields(schema) if name not in hidden]
    hashes = (F.expr(row_hash(content, salt)).alias(f"h{at}") for at, salt in enumerate(CHAINS))
    hashed = rows.select(schemas.PART, *by, *hashes)
    # 32-bit halves: their sums stay exact in a bigint below 2^31 rows, at half the cost of decimals.
    sums = [
        F.expr(f"sum({half})").alias(f"s{at}{which}")
        for at in range(len(CHAINS))
        for which, half in (("hi", f"shiftright(h{at}, 32)"), ("lo", f"h{at} & {_LOW}L"))
    ]
    return hashed.groupBy(schemas.PART, *by).agg(F.count(F.lit(1)).alias("n"), *sums).collect()


def of_hashes(parts: Any, chains: Sequence[Any]) -> dict[int, str]:
    """The same from rows that were hashed already: their parts (sorted) and their hashes as NumPy arrays of 64 bits."""
    if not len(parts):
        return {}
    numbers, first = np.unique(parts, return_index=True)
    counts = np.diff(np.append(first, len(parts)))
    # Unsigned sums run over at 2^64, which is what `text` does with the sums of the halves.
    sums = [np.add.reduceat(chain.view(np.uint64), first) for chain in chains]
    found = zip(numbers, counts, *sums, strict=True)
    return {int(p): _text(int(count), [int(s) for s in of_part]) for p, count, *of_part in found}


def text(count: int, sums: Iterable[int]) -> str:
    """`rows:hex`, from the row count and the sums of the halves (high, low, high, low)."""
    halves = list(sums)
    chains = [((high << 32) + low) % 2**64 for high, low in zip(halves[::2], halves[1::2], strict=True)]
    return _text(count, chains)


def _text(count: int, chains: Iterable[int]) -> str:
    return f"{count}:" + "".join(f"{chain:016x}" for chain in chains)


def replaced(whole: str, gone: str, new: str) -> str:
    """The digest of a part of which some rows were replaced by others: sums are taken away and added."""
    counts, chains = zip(*(_parsed(digest) for digest in (whole, gone, new)), strict=True)
    sums = [(a - b + c) % 2**64 for a, b, c in zip(*chains, strict=True)]
    return f"{counts[0] - counts[1] + counts[2]}:" + "".join(f"{chain:016x}" for chain in sums)


def added(digests: Iterable[str]) -> str:
    """The digest of rows that lie in several files."""
    counts, chains = zip(*map(_parsed, digests), strict=True)
    sums = [sum(values) % 2**64 for values in zip(*chains, strict=True)]
    return f"{sum(counts)}:" + "".join(f"{chain:016x}" for chain in sums)


def _parsed(digest: str) -> tuple[int, list[int]]:
    count, _, chains = digest.partition(":")
    return int(count), [int(chains[at : at + 16], 16) for at in range(0, len(chains), 16)]


#: The digest of a part that has no rows.
EMPTY = text(0, (0,) * 2 * len(CHAINS))


def row_count(digest: str) -> int:
    return int(digest.partition(":")[0])


def row_hash(content: Iterable[tuple[str, Any]], salt: int) -> str:
    """The SQL of one hash of a row: text, because building it column by column costs a call each."""
    values = [piece for name, kind in content for piece in _pieces(schemas.quoted(name), kind, salt, 0)]
    return f"xxhash64({', '.join([str(salt), *values])})"


def _pieces(value: str, kind: Any, salt: int, depth: int) -> list[str]:
    """What has to be hashed for a value: its NULL flag, then enough to tell it from any other."""
    flag = f"isnull({value})"
    if isinstance(kind, str):
        if kind == "variant":
            raise schemas.BadSchema([f"column {value} is a VARIANT, which has no digest: store it as text"])
        return [flag, value]
    item = f"x{depth}"
    if kind["type"] == "struct":
        fields = [(f"{value}.{schemas.quoted(field['name'])}", field["type"]) for field in kind["fields"]]
        return [flag, *(piece for name, inner in fields for piece in _pieces(name, inner, salt, depth))]
    if kind["type"] == "array":
        hashes = f"transform({value}, {item} -> {_hash(item, kind['elementType'], salt, depth + 1)})"
        return [flag, f"size({value})", hashes]
    entry = [(f"{item}.key", kind["keyType"]), (f"{item}.value", kind["valueType"])]
    pieces = [piece for name, inner in entry for piece in _pieces(name, inner, salt, depth + 1)]
    hashed = f"xxhash64({', '.join([str(salt), *pieces])})"
    return [flag, f"size({value})", f"array_sort(transform(map_entries({value}), {item} -> {hashed}))"]


def _hash(value: str, kind: Any, salt: int, depth: int) -> str:
    return f"xxhash64({', '.join([str(salt), *_pieces(value, kind, salt, depth)])})"
