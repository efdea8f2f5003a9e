"""Which columns of a file are which of the table: by name, never by position."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from partwise.spelling import did_you_mean
from partwise.sql.types.declared import NUMBERS, base
from spark_jobs.ingest.files.find import NANOS, FoundFile, RefusedFile

#: Types that are read as text: Spark takes `10:05` for today and `2026` for the first of January.
TIMES = frozenset({"timestamp", "timestamp_ltz", "timestamp_ntz", "date"})
_ARROW_NUMBER = re.compile(r"u?int\d+|float|double|decimal\d*\(.*\)")
_ARROW_TEXT = re.compile(r"string|large_string|string_view|dictionary<values=string.*")
_ARROW_NESTED = {
    "array": re.compile(r"(large_|fixed_size_)?list(_view)?<.*"),
    "map": re.compile(r"map<.*"),
    "struct": re.compile(r"struct<.*"),
    "binary": re.compile(r"(large_|fixed_size_)?binary(_view)?(\[\d+\])?"),
}
_ARROW_TIME = re.compile(r"timestamp\[.*\]|date\d+\[.*\]")


@dataclass(frozen=True, slots=True)
class Layout:
    """Files that one reader can read: a format, the columns in the order of the file, and whether values have line breaks."""

    format: str
    columns: tuple[tuple[str, str], ...]
    broken: bool = False

    @property
    def has_rows(self) -> bool:
        """Whether there is anything to read: an empty file has no columns."""
        return bool(self.columns) or self.format == "json"


def _other_separator(there: list[str], columns: Mapping[str, str]) -> str | None:
    """What stands between the names in the first line, if they are what is declared but for that."""
    wanted = {name.lower() for name in columns}
    for mark, said in ((";", "semicolons"), ("\t", "tabs"), ("|", "|")):
        names = {name.strip().lower() for name in ",".join(there).split(mark)}
        if len(names) > 1 and wanted <= names:
            return said
    return None


def layout_of(found: FoundFile, columns: Mapping[str, str], time: str | None) -> Layout:
    """Raises BadFile if a declared column is missing or cannot be what is declared."""
    have = {name.lower(): kind for name, kind in found.layout}
    names = [name.lower() for name, _ in found.layout]
    if found.format != "json" and not found.layout:
        if found.format == "csv" and found.look.size == 0:
            return Layout("csv", ())  # an empty file has no rows, and nothing is wrong with it
        raise RefusedFile("it has no header" if found.format == "csv" else "it has no columns")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice and found.format != "json":
        raise RefusedFile(f"the column {twice[0]} is there twice")
    if found.format == "json":
        if time is not None and found.layout and time.lower() not in have:
            raise RefusedFile(f"none of its first rows has {time}, the event time; they have {', '.join(sorted(have))}")
        _check_keys(found, columns)
        return Layout("json", ())
    missing = [name for name in columns if name.lower() not in have]
    if missing:
        there = [name for name, _ in found.layout]
        if found.format == "csv" and len(missing) == len(columns):
            first = ",".join(there)[:60]
            if mark := _other_separator(there, columns):
                raise RefusedFile(f"its columns are separated by {mark}, not by commas: '{first}'")
            raise RefusedFile(
                f"it has no header: its first line is '{first}', but must name the columns: {','.join(columns)}"
            )
        hint = did_you_mean(missing[0], there, f"its columns are {', '.join(there)}")
        some = f"the column {missing[0]} is" if len(missing) == 1 else f"the columns {', '.join(missing)} are"
        raise RefusedFile(f"{some} missing; {hint}")
    if found.format == "parquet":
        for name, kind in columns.items():
            if not _fits(have[name.lower()], kind):
                raise RefusedFile(f"the column {name} is {have[name.lower()]} in the file, {kind} expected")
    return Layout(found.format, found.layout, found.broken)


def undeclared(found: FoundFile, columns: Mapping[str, str]) -> list[str]:
    """Columns of a file that nobody declared: they are left out."""
    known = {name.lower() for name in columns}
    return [name for name, _ in found.layout if name and name.lower() not in known]


def _check_keys(found: FoundFile, columns: Mapping[str, str]) -> None:
    """Writers leave out what is NULL, so a key that is not there proves nothing; beside one that nobody declared it does."""
    have, known = {name.lower() for name, _ in found.layout}, {name.lower() for name in columns}
    missing = [name for name in columns if name.lower() not in have]
    others = [name for name, _ in found.layout if name.lower() not in known]
    if found.layout and missing and others:
        hint = did_you_mean(missing[0], others, f"they have {', '.join(others)}, which is not declared")
        raise RefusedFile(f"none of its first rows has {missing[0]}; {hint}")


def _fits(arrow: str, declared: str) -> bool:
    """Text may hold anything; numbers are numbers and times are times, or a cast would invent a meaning."""
    kind = base(declared)
    if arrow == "null":
        return True
    if kind in ("array", "map", "struct"):
        # Times with nanoseconds are converted by us, and only where they are columns.
        return bool(_ARROW_NESTED[kind].fullmatch(arrow)) and NANOS not in arrow
    if _ARROW_TEXT.fullmatch(arrow):
        return True
    if kind in NUMBERS:
        return bool(_ARROW_NUMBER.fullmatch(arrow))
    if kind in TIMES:
        return bool(_ARROW_TIME.fullmatch(arrow))
    if kind == "boolean":
        return arrow == "bool"
    if kind == "string":
        return bool(_ARROW_NUMBER.fullmatch(arrow)) or arrow == "bool"
    return bool(_ARROW_NESTED[kind].fullmatch(arrow)) if kind in _ARROW_NESTED else True
