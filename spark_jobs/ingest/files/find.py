"""Finds files and looks into them: one read gives the hash, the layout, and whether the file is whole.

Spark would load a file with other columns by position, and fail for all files because one is cut off:
what it must not see is found here.
"""

from __future__ import annotations

import codecs
import csv
import glob
import hashlib
import io
import json
import os
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.object_store import is_s3
from partwise.sources.files import Format, ListedFile, braces, format_of, fresh, growing, set_apart, unfinished
from partwise.workspace import Workspace
from spark_jobs.ingest.files import in_store
from spark_jobs.ingest.files.quoted import NeverClosed, Quotes, line_breaks_in

_CHUNK = 1 << 20
#: The first record of a CSV file, and the first lines of JSON, must end within so many bytes.
_HEAD = 1 << 16
#: How Arrow writes the type of times that count nanoseconds.
NANOS = "timestamp[ns"
#: Seconds: a file written to within this time is looked at twice.
SETTLE = 0.5


class RefusedFile(Exception):
    """Why a file is not taken; the message is meant for people."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that may be loaded. `layout` are its columns with their types where the format has some."""

    look: ListedFile
    path: str
    hash: str
    format: Format
    layout: tuple[tuple[str, str], ...]
    broken: bool = False  # CSV with line breaks inside quotation marks
    copy: object = None  # what keeps `path` alive, if that is a copy of an object in a store

    @property
    def url(self) -> str | None:
        """Where it is in an object store, if it is in one."""
        return None if self.copy is None else self.look.name

    @property
    def name(self) -> str:
        return self.look.name


def listing(workspace: Workspace, patterns: tuple[str, ...], marker: str | None = None) -> dict[str, str]:
    """Name (relative to the workspace where possible) -> path of all files that the patterns mean."""
    found: dict[str, str] = {}
    for pattern in patterns:
        for one in braces(pattern.strip()):
            found.update(matches(workspace, one))
    marks = set(matches(workspace, marker.replace("{part}", "*"))) if marker else set()
    return {name: path for name, path in sorted(found.items()) if name not in marks and not unfinished(name)}


def matches(workspace: Workspace, pattern: str) -> dict[str, str]:
    located = workspace.locate(pattern + "*" if pattern.endswith("/") else pattern)
    if located.startswith("file://"):
        located = located.removeprefix("file://")
    if is_s3(located):
        return in_store.matches(located)
    if "://" in located:
        raise RefusedFile(
            f"{pattern}: files are loaded from folders and from s3://; mount this store, or give it as delta:"
        )
    root = str(workspace.folder.absolute())
    # The folder of the workspace may have any name; only what the user wrote is a pattern.
    inside = located.startswith(root + os.sep)
    base, relative = (root, located[len(root) + 1 :]) if inside else ("/", located.lstrip("/"))
    names = [name for name in glob.glob(relative, root_dir=base, recursive=True) if not set_apart(name, relative)]
    if not glob.has_magic(relative) or os.path.lexists(os.path.join(base, relative)):
        names = [*names, relative]  # a name with brackets, written as it is
    paths = {name: os.path.join(base, name) for name in names}
    return {name if inside else path: path for name, path in paths.items() if os.path.isfile(path)}


def look(paths: Mapping[str, str]) -> dict[str, ListedFile]:
    found = in_store.looks({name: path for name, path in paths.items() if is_s3(path)})
    for name, path in paths.items():
        if is_s3(path):
            continue
        try:
            stat = os.stat(path)
        except FileNotFoundError:
            continue
        found[name] = ListedFile(name, stat.st_size, stat.st_mtime_ns)
    return found


def still_growing(paths: Mapping[str, str], looks: Mapping[str, ListedFile], settle: float) -> frozenset[str]:
    """Names of files that are still being written: young ones are looked at again after a moment."""
    now = time.time()
    young = fresh((seen for name, seen in looks.items() if not is_s3(paths[name])), settle, now)
    young = [seen for seen in young if not _ends_as_written_last(paths[seen.name], seen)]
    if not young:
        return frozenset()
    # Until nobody has written to any of them for so long.
    time.sleep(min(settle, max(seen.mtime for seen in young) / 1e9 + settle - now))
    return growing(young, look({f.name: paths[f.name] for f in young}))


def _ends_as_written_last(path: str, seen: ListedFile) -> bool:
    """Whether a Parquet file has its end, which is written last: nothing is missing, however young it is."""
    if format_of(seen.name) != "parquet" or seen.size < 12:
        return False
    try:
        with open(path, "rb") as file:
            file.seek(seen.size - 8)
            length, mark = int.from_bytes(file.read(4), "little"), file.read()
    except OSError:
        return False
    return mark == b"PAR1" and 0 < length <= seen.size - 12


def look_into(path: str, seen: ListedFile) -> FoundFile:
    """Raises BadFile."""
    kind = format_of(seen.name)
    if kind is None:
        raise RefusedFile(
            "the ending of its name is none of .csv, .json, .jsonl, .ndjson (each also with .gz) and .parquet"
        )
    copy = None
    if is_s3(path):
        copy = in_store.fetched(path, seen)
        path = copy.name
    packed, broken = seen.name.lower().endswith(".gz"), False
    quotes = Quotes() if kind == "csv" else None
    digest, head = _read(path, packed, quotes, None if kind == "parquet" else Utf8())
    if kind == "csv":
        layout = _csv_columns(head)
        # Only files that may have such values are looked at twice.
        broken = quotes is not None and quotes.odd() and line_breaks(path, packed)
    elif kind == "json":
        layout = _json_columns(head)
    else:
        layout = _parquet_columns(path)
    return FoundFile(seen, path, digest, kind, layout, broken, copy)


def _read(path: str, packed: bool, quotes: Quotes | None, utf8: Utf8 | None) -> tuple[str, bytes]:
    hasher, head = hashlib.blake2b(digest_size=16), b""
    unpack = zlib.decompressobj(wbits=31) if packed else None
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            hasher.update(chunk)
            if unpack is None:
                text = chunk
                head = head or chunk[:_HEAD]
            else:
                text, unpack = _unpack(unpack, chunk)
                head = head if len(head) >= _HEAD else (head + text)[:_HEAD]
            if quotes is not None:
                quotes.see(text)
            if utf8 is not None:
                utf8.see(text)
    if unpack is not None and not unpack.eof:
        raise RefusedFile("the compressed file is cut off")
    if utf8 is not None:
        utf8.end()
    return hasher.hexdigest(), head


def _unpack(unpack: Any, chunk: bytes) -> tuple[bytes, Any]:
    """A gz file may consist of several, one after the other."""
    out = b""
    try:
        while chunk:
            if unpack.eof:
                unpack = zlib.decompressobj(wbits=31)
            out += unpack.decompress(chunk)
            chunk = unpack.unused_data
    except zlib.error as why:
        raise RefusedFile(f"the compressed file is damaged: {why}") from None
    return out, unpack


#: What other files begin with, and what to do about each.
_BEGINNINGS = {
    b"\xff\xfe": "it is UTF-16; save it as UTF-8, for example with `iconv -f utf-16 -t utf-8`",
    b"\xfe\xff": "it is UTF-16; save it as UTF-8, for example with `iconv -f utf-16 -t utf-8`",
    b"PK\x03\x04": "it is a zip archive or a spreadsheet; unpack it, or save it as CSV",
    b"\x1f\x8b": "it is compressed with gzip; its name must end with .gz",
    b"PAR1": "it is a Parquet file; its name must end with .parquet",
}


def _known_by(content: bytes) -> str | None:
    return next((said for mark, said in _BEGINNINGS.items() if content.startswith(mark)), None)


class Utf8:
    """Whether text is UTF-8, chunk by chunk. Spark would put a question mark in place of every other byte."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._bytes, self._lines = 0, 0

    def see(self, chunk: bytes, final: bool = False) -> None:
        waiting = len(self._decoder.getstate()[0])  # the first bytes of a character whose others are to come
        try:
            self._decoder.decode(chunk, final)
        except UnicodeDecodeError as why:
            # Its places count from the bytes that were waiting.
            if kind := _known_by(why.object) if not self._bytes else None:
                raise RefusedFile(kind) from None
            at, line = self._bytes - waiting + why.start, self._lines + why.object[: why.start].count(b"\n") + 1
            raise RefusedFile(
                f"it is not UTF-8: byte 0x{why.object[why.start]:02x} at position {at:,} (line {line:,}); "
                "save it as UTF-8, for example with `iconv -f latin1 -t utf-8`"
            ) from None
        self._bytes += len(chunk)
        self._lines += chunk.count(b"\n")

    def end(self) -> None:
        self.see(b"", final=True)


def line_breaks(path: str, packed: bool) -> bool:
    """Whether a value has a line break inside. Raises BadFile."""
    try:
        return line_breaks_in(path, packed)
    except NeverClosed as why:
        raise RefusedFile(str(why)) from None


def _csv_columns(head: bytes) -> tuple[tuple[str, str], ...]:
    text = head.decode("utf-8-sig", errors="replace")
    first = next(csv.reader(io.StringIO(text, newline="")), None)
    while first == [] and text:  # empty lines at the top, which Spark skips as well
        text = text.partition("\n")[2]
        first = next(csv.reader(io.StringIO(text, newline="")), None)
    return tuple((name.strip(), "string") for name in first or ())


def _json_columns(head: bytes) -> tuple[tuple[str, str], ...]:
    """Keys of the first lines. Writers leave out what is NULL, so a key that is not there proves nothing."""
    names: dict[str, None] = {}
    lines = [line for line in head.decode("utf-8-sig", errors="replace").split("\n") if line.strip()]
    some = False
    for line in lines[:100]:
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            some = True
            names.update(dict.fromkeys(found))
    if lines and not some:
        raise RefusedFile("none of its first lines is a JSON object; JSON files have one object a line")
    return tuple((name, "json") for name in names)


def _parquet_columns(path: str) -> tuple[tuple[str, str], ...]:
    """Times are kept as 96 bits by old writers, which Arrow calls nanoseconds as well, but Spark reads only those."""
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    try:
        stored = pq.read_metadata(Path(path)).schema
        leaves = [stored.column(at) for at in range(len(stored))]
        counted = {leaf.path.partition(".")[0] for leaf in leaves if "nanoseconds" in str(leaf.logical_type)}
        schema = stored.to_arrow_schema()
    except Exception as why:
        raise RefusedFile(f"it is not a whole Parquet file: {why}") from None
    return tuple(
        (field.name, str(field.type) if field.name in counted else str(field.type).replace(NANOS, "timestamp[int96"))
        for field in schema
    )
