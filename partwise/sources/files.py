"""Which files of a listing are taken, and which are left alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from partwise.ledger.records.files import TakenFile

Format = Literal["csv", "json", "parquet"]

_ENDINGS: Mapping[str, Format] = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}
_MAGIC = re.compile(r"[*?[]")
#: What programs call files that they are still writing.
_UNFINISHED = re.compile(r"\.(tmp|temp|part|partial|crdownload|filepart|swp)$|~$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file as a listing shows it. `mtime` in nanoseconds."""

    name: str
    size: int
    mtime: int


def format_of(name: str) -> Format | None:
    """By the ending of its name; compressed text ends with .gz besides."""
    lower = name.lower()
    plain = lower.removesuffix(".gz")
    found = next((kind for ending, kind in _ENDINGS.items() if plain.endswith(ending)), None)
    return None if found == "parquet" and plain != lower else found


def unfinished(name: str) -> bool:
    """Whether the name says that somebody is still writing the file, or that it is none of ours."""
    base = name.rsplit("/", 1)[-1]
    return base.startswith(("_", ".")) or bool(_UNFINISHED.search(base))


def set_apart(name: str, pattern: str) -> bool:
    """Whether a folder that the pattern does not name itself says that its files are none of ours: `_temporary`, `.x`."""
    fixed = len(list(takewhile(lambda piece: not _MAGIC.search(piece), pattern.split("/"))))
    return any(folder.startswith(("_", ".")) for folder in name.split("/")[fixed:-1])


def to_read(listed: Iterable[ListedFile], known: Mapping[str, TakenFile]) -> list[ListedFile]:
    """Files that have to be looked into: new ones, and those whose size or time stamp is another one."""
    return [f for f in listed if (k := known.get(f.name)) is None or (k.size, k.mtime) != (f.size, f.mtime)]


def newest(
    looks: Mapping[str, ListedFile], known: Mapping[str, TakenFile]
) -> tuple[dict[str, ListedFile], dict[str, TakenFile]]:
    """Of a dimension the file that may be its content, if any, and the one that is. An older file that is left when the
    newest one disappears is not taken instead."""
    current = max(known.values(), key=lambda f: f.id, default=None)
    found = max(looks.values(), key=lambda f: (f.mtime, f.name), default=None)
    if current is None or found is None:
        return ({} if found is None else {found.name: found}), {}
    old = found.name != current.name and (found.mtime, found.name) < (current.mtime, current.name)
    return ({} if old else {found.name: found}), {current.name: current}


def fresh(listed: Iterable[ListedFile], settle: float, now: float) -> list[ListedFile]:
    """Files that were written to so lately that their writer may not have finished."""
    return [f for f in listed if f.mtime > (now - settle) * 1e9]


def growing(before: Iterable[ListedFile], after: Mapping[str, ListedFile]) -> frozenset[str]:
    """Files that changed (or went away) between two looks."""
    return frozenset(f.name for f in before if after.get(f.name) != f)


def braces(pattern: str) -> Iterator[str]:
    """`a{b,c}` -> `ab`, `ac`, as shells and Spark read it."""
    match = re.search(r"\{([^{}]*,[^{}]*)\}", pattern)
    if not match:
        yield pattern
        return
    for choice in match[1].split(","):
        yield from braces(pattern[: match.start()] + choice + pattern[match.end() :])
