"""Files of a table's folder: where they are, how large, and what their Parquet footers say.

A local folder is read with the standard library; an object store (`s3://...`) through a library of its own, which is
imported only then.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from partwise.object_store import is_remote
from partwise.storage.remote import Bucket
from partwise.storage.schema import PART, PART_FIELDS, PART_TIMESTAMP

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


#: Characters. The log would grow by longer ones.
_LONGEST = 32


class BadFile(ValueError):
    """A file that must not become part of a table."""


class Folder(Protocol):
    """Names are relative to the folder. What is not there has no size, no content and no listing."""

    def size(self, name: str) -> int | None: ...
    def read(self, name: str) -> bytes | None: ...
    def write(self, name: str, content: bytes) -> None: ...
    def create(self, name: str, content: bytes) -> bool:
        """Writes a file, unless there is one. False: there is one."""

    def listing(self, under: str) -> list[Listed]: ...
    def delete(self, *names: str) -> None:
        """Deletes files; fine when they are not there."""

    def delete_folder(self, name: str) -> None:
        """Deletes a folder with all it holds; fine when it is not there."""

    def parquet(self, name: str) -> Parquet | None: ...
    def footer(self, name: str) -> Footer:
        """Raises BadFile for anything that is not a whole Parquet file."""


class Parquet(Protocol):
    """A file that should be Parquet."""

    @property
    def size(self) -> int: ...
    def footer(self) -> Footer:
        """Raises BadFile for anything that is not a whole Parquet file."""


def folder(path: str) -> Folder:
    """A folder by path or URL."""
    if is_remote(path):
        return RemoteFolder(Bucket(path))
    return LocalFolder(Path(path.removeprefix("file://")).absolute())


@dataclass(frozen=True)
class LocalFolder:
    base: Path

    def size(self, name: str) -> int | None:
        path = self.base / name
        return path.stat().st_size if path.is_file() else None

    def read(self, name: str) -> bytes | None:
        try:
            return (self.base / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        path = self.base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def create(self, name: str, content: bytes) -> bool:
        try:
            with open(self.base / name, "xb") as file:
                file.write(content)
        except FileExistsError:
            return False
        return True

    def listing(self, under: str) -> list[Listed]:
        try:
            with os.scandir(self.base / under) as entries:
                return [_listed(entry) for entry in entries]
        except FileNotFoundError:
            return []

    def delete(self, *names: str) -> None:
        for name in names:
            (self.base / name).unlink(missing_ok=True)

    def delete_folder(self, name: str) -> None:
        if (path := self.base / name).is_dir():
            shutil.rmtree(path, ignore_errors=False)

    def parquet(self, name: str) -> Parquet | None:
        size = self.size(name)
        return None if size is None else _LocalParquet(name, size, str(self.base / name))

    def footer(self, name: str) -> Footer:
        return _footer(name, str(self.base / name))


@dataclass(frozen=True, slots=True)
class _LocalParquet:
    name: str
    size: int
    path: str

    def footer(self) -> Footer:
        return _footer(self.name, self.path)


def _listed(entry: os.DirEntry[str]) -> Listed:
    found = entry.stat()
    return Listed(entry.name, entry.is_dir(), found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))


@dataclass(frozen=True, slots=True)
class RemoteFolder:
    """A folder of an object store. Raises StoreProblem where the store does not answer."""

    bucket: Bucket

    def size(self, name: str) -> int | None:
        found = self.bucket.head(name)
        return None if found is None else found.size

    def read(self, name: str) -> bytes | None:
        return self.bucket.get(name)

    def write(self, name: str, content: bytes) -> None:
        self.bucket.put(name, content)

    def create(self, name: str, content: bytes) -> bool:
        return self.bucket.create(name, content)

    def listing(self, under: str) -> list[Listed]:
        folders, files = self.bucket.inside(under)
        found = [Listed(name, True, 0, _EPOCH) for name in folders]
        return found + [Listed(f.name.rpartition("/")[2], False, f.size, f.changed) for f in files]

    def delete(self, *names: str) -> None:
        self.bucket.remove(*names)

    def delete_folder(self, name: str) -> None:
        self.bucket.remove_folder(name)

    def parquet(self, name: str) -> Parquet | None:
        """One request gives the size and the footer; none where this process has written the file."""
        if (own := _own.pop((self.bucket.url, name), None)) is not None:
            return own
        found = self.bucket.tail(name)
        return None if found is None else _RemoteParquet(name, *found, self.bucket)

    def footer(self, name: str) -> Footer:
        if (found := self.parquet(name)) is None:
            raise BadFile(f"{name} is missing")
        return found.footer()


@dataclass(frozen=True, slots=True)
class _OwnParquet:
    size: int
    known: Footer

    def footer(self) -> Footer:
        return self.known


#: Files that this process has put whole into an object store, until it commits them. A store that took a file has it; where
#: a sweep removed it since, the commit is refused.
_own: dict[tuple[str, str], _OwnParquet] = {}
#: Beyond so many, files are looked at like those of others.
_MOST_OWN = 256


def remember(path: str, name: str, content: bytes | Path) -> None:
    """A file of a table's folder has this content: it was just put there, under a name that nobody else has."""
    import pyarrow as pa  # type: ignore[import-untyped]

    whole, size = (
        (content, content.stat().st_size) if isinstance(content, Path) else (pa.BufferReader(content), len(content))
    )
    found = _OwnParquet(size, _footer(name, whole))
    while len(_own) >= _MOST_OWN:
        _own.pop(next(iter(_own)), None)
    _own[path, name] = found


@dataclass(frozen=True, slots=True)
class _RemoteParquet:
    name: str
    size: int
    tail: bytes
    bucket: Bucket

    def footer(self) -> Footer:
        import pyarrow as pa

        tail, needed = self.tail, int.from_bytes(self.tail[-8:-4], "little") + 8
        if len(tail) < needed <= self.size:
            again = self.bucket.tail(self.name, needed)
            tail = tail if again is None else again[1]
        # The footer stands at the end and tells its own length: to read it, nothing before it is needed.
        return _footer(self.name, pa.BufferReader(tail))


def _footer(name: str, file: Any) -> Footer:
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    try:
        return Footer(name, pq.read_metadata(file))
    except Exception as why:  # pyarrow raises several kinds for truncated or foreign bytes
        raise BadFile(f"{name} is not a readable Parquet file: {why}") from why


@dataclass(frozen=True, slots=True)
class Listed:
    name: str
    folder: bool
    size: int
    changed: datetime


@dataclass(frozen=True)
class Footer:
    """What one Parquet file says of itself."""

    name: str
    metadata: Any

    @property
    def rows(self) -> int:
        return int(self.metadata.num_rows)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.metadata.schema.to_arrow_schema().names)

    def statistics(self, keys: Collection[str] = ()) -> str:
        """Delta's statistics as JSON: rows, and the range of the part columns where there are some, and of keys."""
        ranges = {name: self._range(name) for name, _ in PART_FIELDS if name in self.columns}
        found: dict[str, tuple[Any, Any]] = {name: r for name, r in ranges.items() if r is not None}
        nulls = dict.fromkeys(ranges, 0)
        for name in keys:
            if (known := self._key_range(name)) is not None:
                *ends, nulls[name] = known
                found |= {name: (ends[0], ends[1])} if ends[0] is not None else {}
        return json.dumps(
            {
                "numRecords": self.rows,
                "minValues": {name: low for name, (low, _) in found.items()},
                "maxValues": {name: high for name, (_, high) in found.items()},
                "nullCount": nulls,
            },
            separators=(",", ":"),
        )

    def _key_range(self, column: str) -> tuple[Any, Any, int] | None:
        """Least and greatest value, and how many NULLs; None where that is not known for sure, or too long to keep."""
        import pyarrow as pa

        if column not in self.columns:
            return None
        kind = self.metadata.schema.to_arrow_schema().field(column).type
        if not (pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_string(kind)):
            return None
        at = next(c for c in range(self.metadata.num_columns) if self.metadata.schema.column(c).path == column)
        ends: list[Any] = []
        nulls = 0
        for number in range(self.metadata.num_row_groups):
            found = self.metadata.row_group(number).column(at)
            known = found.statistics
            if known is None or not known.has_null_count:
                return None
            nulls += known.null_count
            if known.has_min_max:
                try:
                    ends += [known.min, known.max]
                except (OverflowError, ValueError):  # Python's days end at the year 9999, Spark's do not
                    return None
            elif known.null_count < found.num_values:
                return None
        if any(isinstance(end, str) and len(end) > _LONGEST for end in ends):
            return None
        texts = [end if isinstance(end, int | str) else end.isoformat() for end in ends]
        return (min(texts), max(texts), nulls) if texts else (None, None, nulls)

    def _range(self, column: str) -> tuple[int | str, int | str] | None:
        groups = [self.metadata.row_group(g) for g in range(self.metadata.num_row_groups)]
        at = next(c for c in range(self.metadata.num_columns) if self.metadata.schema.column(c).path == column)
        statistics = [group.column(at).statistics for group in groups if group.num_rows]
        if any(s is None or not s.has_min_max or s.null_count for s in statistics):
            raise BadFile(
                f"{self.name} has rows without '{column}', or no statistics of it; "
                "every row needs its part, and times are written as TIMESTAMP_MICROS"
            )
        # The raw numbers: Python's own times end at the year 9999, Spark's do not.
        low, high = min(s.min_raw for s in statistics), max(s.max_raw for s in statistics)
        if column == PART:
            return int(low), int(high)
        assert column == PART_TIMESTAMP
        low_text, high_text = _time_text(low), _time_text(high)
        return None if low_text is None or high_text is None else (low_text, high_text)


def _time_text(micros: int) -> str | None:
    try:
        moment = _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
