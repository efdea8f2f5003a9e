"""Files of a table's folder: where they are, how large, and what their Parquet footers say.

A local folder is read with the standard library; an object store (`s3://...`) through pyarrow's file
systems, which take a second to import and are therefore imported only then.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from partwise.storage.schema import PART, PART_FIELDS, PART_TIMESTAMP

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class BadFile(ValueError):
    """A file that must not become part of a table."""


class Folder(Protocol):
    """Names are relative to the folder. What is not there has no size, no content and no listing."""

    def size(self, name: str) -> int | None: ...
    def read(self, name: str) -> bytes | None: ...
    def write(self, name: str, content: bytes) -> None: ...
    def listing(self, under: str) -> list[Listed]: ...
    def delete(self, name: str) -> None:
        """Deletes a file, or a folder with all it holds; fine when it is not there."""

    def footer(self, name: str) -> Footer:
        """Raises BadFile for anything that is not a whole Parquet file."""


def folder(path: str) -> Folder:
    """A folder by path or URL."""
    if path.startswith("file://"):
        path = path.removeprefix("file://")
    return RemoteFolder(path) if "://" in path else LocalFolder(Path(path).absolute())


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

    def listing(self, under: str) -> list[Listed]:
        try:
            with os.scandir(self.base / under) as entries:
                return [_listed(entry) for entry in entries]
        except FileNotFoundError:
            return []

    def delete(self, name: str) -> None:
        path = self.base / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=False)
        else:
            path.unlink(missing_ok=True)

    def footer(self, name: str) -> Footer:
        return _footer(name, str(self.base / name))


def _listed(entry: os.DirEntry[str]) -> Listed:
    found = entry.stat()
    return Listed(entry.name, entry.is_dir(), found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))


@dataclass(frozen=True)
class RemoteFolder:
    """Any store that pyarrow knows; its settings come from the environment, as delta-rs's do."""

    url: str

    @cached_property
    def _system(self) -> tuple[Any, str]:
        from pyarrow.fs import FileSystem  # type: ignore[import-untyped]

        system, base = FileSystem.from_uri(self.url)
        return system, base.rstrip("/")

    def size(self, name: str) -> int | None:
        system, base = self._system
        info = system.get_file_info(f"{base}/{name}")
        return int(info.size) if info.is_file else None

    def read(self, name: str) -> bytes | None:
        system, base = self._system
        try:
            with system.open_input_stream(f"{base}/{name}") as stream:
                return bytes(stream.readall())
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        system, base = self._system
        system.create_dir(f"{base}/{name}".rsplit("/", 1)[0], recursive=True)
        with system.open_output_stream(f"{base}/{name}") as stream:
            stream.write(content)

    def listing(self, under: str) -> list[Listed]:
        from pyarrow.fs import FileSelector, FileType

        system, base = self._system
        found = system.get_file_info(FileSelector(f"{base}/{under}", allow_not_found=True))
        return [Listed(i.base_name, i.type == FileType.Directory, i.size or 0, i.mtime or _EPOCH) for i in found]

    def delete(self, name: str) -> None:
        from pyarrow.fs import FileType

        system, base = self._system
        kind = system.get_file_info(f"{base}/{name}").type
        if kind == FileType.Directory:
            system.delete_dir(f"{base}/{name}")
        elif kind == FileType.File:
            system.delete_file(f"{base}/{name}")

    def footer(self, name: str) -> Footer:
        system, base = self._system
        return _footer(name, f"{base}/{name}", system)


def _footer(name: str, path: str, system: Any = None) -> Footer:
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    try:
        return Footer(name, pq.read_metadata(path, filesystem=system))
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

    def statistics(self) -> str:
        """Delta's statistics as JSON: rows, and the range of the part columns where there are some."""
        ranges = {name: self._range(name) for name, _ in PART_FIELDS if name in self.columns}
        found = {name: r for name, r in ranges.items() if r is not None}
        return json.dumps(
            {
                "numRecords": self.rows,
                "minValues": {name: low for name, (low, _) in found.items()},
                "maxValues": {name: high for name, (_, high) in found.items()},
                "nullCount": dict.fromkeys(ranges, 0),
            },
            separators=(",", ":"),
        )

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
