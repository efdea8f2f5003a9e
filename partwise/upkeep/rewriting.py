"""Writes rows of a table's files again, into files that have parts of their own. Memory holds one of them at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from deltalake import Schema

from partwise import storage
from partwise.parts import Parts
from partwise.storage import File, Handle
from partwise.storage.arrow import located
from partwise.storage.handle import ROWS_PER_CUT
from partwise.storage.schema import PART

#: Rows of a row group: readers skip those whose parts they do not want.
_ROW_GROUP = 100_000


class Different(Exception):
    """What was written is not what was read; nothing was committed."""


def rewrite_rows(
    handle: Handle,
    files: Sequence[File],
    step: str,
    target: int,
    keep_from: int | None,
    cluster: tuple[str, ...] = (),
) -> int:
    """Stage the rows of these files as step `step`, sorted by part, about `target` bytes a file. Returns the rows.

    `keep_from`: rows of earlier parts are left out. `cluster`: parts that go into a file together are sorted and cut by these columns.
    """
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.compute as pc  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    system, base = located(handle.path)
    paths = [f"{base}/{file.path}" for file in files]
    schema = pa.schema(Schema.from_json(handle.schema).to_arrow())
    folder = f"{base}/{storage.begin(handle, step).rsplit('/', 1)[1]}"
    if system is None:
        Path(folder).mkdir(parents=True)
    counts = _counts(paths, system, keep_from)
    per_file = max(1, sum(counts.values()) * target // max(1, sum(file.size for file in files)))
    written: dict[int, int] = {}
    order, is_cut = (*cluster, PART) if cluster else (PART, *handle.keys), bool(cluster or handle.keys)
    for number, (lo, hi) in enumerate(_slices(counts, per_file)):
        inside = (pc.field(PART) >= lo) & (pc.field(PART) <= hi)
        rows = pq.read_table(paths, schema=schema, filters=inside, filesystem=system, partitioning=None)
        rows = rows.cast(schema).sort_by([(name, "ascending") for name in order])
        for part, count in _count(rows.column(PART)):
            written[part] = written.get(part, 0) + count
        most = ROWS_PER_CUT if is_cut else max(1, rows.num_rows)
        for cut, first in enumerate(range(0, rows.num_rows, most)):
            pq.write_table(
                rows.slice(first, most),
                f"{folder}/part-{number:05d}-{cut:03d}.parquet",
                filesystem=system,
                compression="zstd",
                row_group_size=_ROW_GROUP,
            )
    if written != counts:
        parts = Parts.single(*(p for p in {*counts, *written} if counts.get(p) != written.get(p)))
        raise Different(f"{handle.path}: parts {parts.first}..{parts.last} were not copied whole; nothing was changed")
    return sum(written.values())


def _counts(paths: Sequence[str], system: Any, keep_from: int | None) -> dict[int, int]:
    """Rows by part."""
    import pyarrow.parquet as pq

    found: dict[int, int] = {}
    for path in paths:
        for part, count in _count(pq.read_table(path, columns=[PART], filesystem=system, partitioning=None).column(0)):
            if keep_from is None or part >= keep_from:
                found[part] = found.get(part, 0) + count
    return found


def _count(column: Any) -> Iterator[tuple[int, int]]:
    for item in column.value_counts().to_pylist():
        yield item["values"], item["counts"]


def _slices(counts: dict[int, int], per_file: int) -> Iterator[tuple[int, int]]:
    """Ranges of whole parts with about so many rows each."""
    first: int | None = None
    last = rows = 0
    for part in sorted(counts):
        if first is not None and rows + counts[part] > per_file:
            yield first, last
            first, rows = None, 0
        first = part if first is None else first
        last, rows = part, rows + counts[part]
    if first is not None:
        yield first, last
