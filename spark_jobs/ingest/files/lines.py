"""Where in its file a row stands that was quarantined, and what its line says: Spark tells neither of rows that it can read.

Whether such a row has a part depends on the columns that are read as text, and on its event time. So all lines of a
file that agree in these with a row that was quarantined were quarantined, and no others.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, cast

from spark_jobs.ingest.files.find import FoundFile
from spark_jobs.ingest.files.layout import Layout

#: Larger files are not read a second time only to count lines.
_MOST_BYTES = 256 << 20


@dataclass(frozen=True)
class SetAside:
    """A row on its way into quarantine. `layout`: as in `Quarantined`; `line` of the file, or row of a Parquet file.
    `raw`: the text is the line itself, which Spark could not read."""

    file_id: int
    why: int
    text: str
    layout: str | None
    line: int | None = None
    raw: bool = False


def located(rows: Sequence[SetAside], found: FoundFile, layout: Layout, telling: Sequence[str]) -> list[SetAside]:
    """Rows of one file with their lines. `telling`: the columns that decide. What is not found again stays as it is."""
    if layout.format == "parquet" or found.look.size > _MOST_BYTES:
        return list(rows)
    lines: dict[str, list[int]] = {}
    keys: dict[tuple[str | None, ...], list[int]] = {}
    for at, row in enumerate(rows):
        if row.raw:
            lines.setdefault(row.text, []).append(at)
        else:
            keys.setdefault(_key(json.loads(row.text), telling), []).append(at)
    header = json.dumps([name for name, _ in layout.columns]) if layout.format == "csv" else None
    done = list(rows)
    try:
        for number, text, values in _records(found, layout):
            waiting = lines.get(text) or (keys.get(_key(values, telling)) if values is not None else None)
            if waiting:
                at = waiting.pop(0)
                done[at] = replace(done[at], text=text, layout=header, line=number)
    except (OSError, ValueError, csv.Error):
        pass  # whether the file is still what was loaded is asked elsewhere
    return done


def _key(values: Mapping[str, Any], telling: Sequence[str]) -> tuple[str | None, ...]:
    lower = {name.lower(): value for name, value in values.items()}
    return tuple(_text(lower.get(name.lower())) for name in telling)


def _text(value: Any) -> str | None:
    if value is None or value == "":
        return None
    return value if isinstance(value, str) else json.dumps(value)


def _records(found: FoundFile, layout: Layout) -> Iterator[tuple[int, str, Mapping[str, Any] | None]]:
    """The first line of each record, its text, and its values by column, as far as they can be told."""
    packed = found.name.lower().endswith(".gz")
    with cast("IO[bytes]", gzip.open(found.path) if packed else open(found.path, "rb")) as file:
        lines = io.TextIOWrapper(file, "utf-8-sig", errors="replace", newline="")
        yield from _csv(lines, layout) if layout.format == "csv" else _json(lines)


def _csv(lines: Iterable[str], layout: Layout) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    names, seen, past_header = [name for name, _ in layout.columns], [], False
    reader = csv.reader(seen.append(line) or line for line in lines)  # type: ignore[func-returns-value]
    for record in reader:
        text, first = "".join(seen).rstrip("\r\n"), reader.line_num - len(seen) + 1
        seen.clear()
        if record and past_header:
            yield first, text, dict(zip(names, record, strict=False))
        past_header = past_header or bool(record)


def _json(lines: Iterable[str]) -> Iterator[tuple[int, str, Mapping[str, Any] | None]]:
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        try:
            values = json.loads(text)
        except ValueError:
            values = None
        yield number, text, values if isinstance(values, dict) else None


def by_file(rows: Iterable[SetAside]) -> dict[int, list[SetAside]]:
    found: dict[int, list[SetAside]] = {}
    for row in rows:
        found.setdefault(row.file_id, []).append(row)
    return found
