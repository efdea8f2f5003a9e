"""A table at one version: its schema and its files, and what replacing some parts does to them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from partwise import object_store
from partwise.parts import Parts
from partwise.storage.errors import CommitRefused, NoTable, StoreProblem
from partwise.storage.schema import PART, PART_TIMESTAMP, names

_PART_COLUMNS = (PART, PART_TIMESTAMP)
#: Rows of a file. Smaller ones take longer to write and to list; larger ones longer to write again.
ROWS_PER_CUT = 250_000
_STATISTICS = "delta.dataSkippingStatsColumns"


def statistics_of(keys: Iterable[str]) -> dict[str, str]:
    """The setting that names the statistics that we write and that readers filter by; other writers (OPTIMIZE) keep to them."""
    return {_STATISTICS: ",".join((*_PART_COLUMNS, *keys))}


@dataclass(frozen=True, slots=True)
class File:
    """A file of a table, live in one version. `lo`..`hi` is the range of its parts by statistics, `keys` are those of
    further columns: name, least and greatest value (None: there are only NULLs), and how many NULLs."""

    path: str
    size: int
    rows: int | None = None
    lo: int | None = None
    hi: int | None = None
    keys: tuple[tuple[str, Any, Any, int], ...] = ()

    def may_hold(self, parts: Parts) -> bool:
        """Without statistics it may hold anything."""
        return self.lo is None or self.hi is None or bool(parts.within(self.lo, self.hi))

    def may_have(self, column: str, values: Collection[Any]) -> bool:
        """Whether a row may have one of these values in a column, by statistics; without them it may."""
        for name, low, high, nulls in self.keys:
            if name == column:
                return (None in values and nulls > 0) or (
                    low is not None and any(value is not None and low <= value <= high for value in values)
                )
        return True

    def only_holds(self, parts: Parts) -> bool:
        return self.lo is not None and self.hi is not None and parts.covers(self.lo, self.hi)


@dataclass(frozen=True)
class Handle:
    """A table at one version. Cheap: the list of files is read when requested."""

    path: str
    version: int
    at_hand: DeltaTable | None = field(default=None, repr=False, compare=False)

    @cached_property
    def table(self) -> DeltaTable:
        """What delta-rs knows of it. A handle that follows from a commit of this process asks only when that is needed."""
        return opened(self.path, self.version) if self.at_hand is None else self.at_hand

    @cached_property
    def schema(self) -> str:
        """As JSON text, the form that Spark reads."""
        return str(self.table.schema().to_json())

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Columns by which the rows of a part are sorted, and of which files have statistics."""
        listed = self.table.metadata().configuration.get(_STATISTICS) or ""
        return tuple(name for name in listed.split(",") if name in self.columns and name not in _PART_COLUMNS)

    @property
    def columns(self) -> tuple[str, ...]:
        return names(self.schema)

    @cached_property
    def files(self) -> tuple[File, ...]:
        # Read without pyarrow: its import, with pandas behind it, would cost a query two seconds.
        found = self.table.get_add_actions(flatten=True)
        absent = [None] * found.num_rows
        columns = [
            found.column(name).to_pylist() if name in found.column_names else absent
            for name in ("path", "size_bytes", "num_records", f"min.{PART}", f"max.{PART}")
        ]
        keys = self._keys(found)
        return tuple(File(*row) for row in zip(*columns, keys, strict=True))

    def _keys(self, found: Any) -> list[tuple[tuple[str, Any, Any, int], ...]]:
        """Statistics of other columns than those of parts."""
        keys: list[tuple[tuple[str, Any, Any, int], ...]] = [()] * found.num_rows
        for name in self.columns:
            if name in _PART_COLUMNS or f"null_count.{name}" not in found.column_names:
                continue
            absent = [None] * found.num_rows
            low, high, nulls = (
                found.column(f"{what}.{name}").to_pylist() if f"{what}.{name}" in found.column_names else absent
                for what in ("min", "max", "null_count")
            )
            for at, count in enumerate(nulls):
                if count is not None:
                    keys[at] = (*keys[at], (name, low[at], high[at], count))
        return keys

    @property
    def rows(self) -> int:
        return sum(file.rows or 0 for file in self.files)

    def files_of(self, parts: Parts) -> tuple[File, ...]:
        """The files that may hold rows of these parts."""
        return tuple(file for file in self.files if file.may_hold(parts))

    def uris(self, files: Iterable[File] | None = None) -> list[str]:
        """Full paths, as Spark and DuckDB take them."""
        root = self.path.rstrip("/")
        return [f"{root}/{file.path}" for file in (self.files if files is None else files)]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What replacing some parts does to the files: `removed` go; of those, `mixed` hold other parts
    too, whose rows have to be part of the staged write."""

    removed: tuple[File, ...]
    mixed: tuple[File, ...]
    surviving: Parts


def rewrite(handle: Handle, parts: Parts) -> Rewrite:
    """Which files must go for these parts to be replaced, and which other parts they may hold."""
    removed = handle.files_of(parts)
    mixed = tuple(file for file in removed if not file.only_holds(parts))
    unknown = next((f.path for f in mixed if f.lo is None), None)
    if unknown is not None:
        raise CommitRefused(f"{handle.path}: {unknown} has no statistics of '{PART}', so its parts cannot be replaced")
    held = Parts.of(*((f.lo, f.hi) for f in mixed if f.lo is not None and f.hi is not None))
    return Rewrite(removed, mixed, held - parts)


def options(path: str) -> dict[str, str] | None:
    """What delta-rs needs to know to reach a path; None for a local folder."""
    return object_store.delta_options(object_store.access_to(path)) if object_store.is_s3(path) else None


def opened(path: str, version: int | None) -> DeltaTable:
    try:
        return DeltaTable(path, version=version, storage_options=options(path))
    except TableNotFoundError as why:
        raise NoTable(f"there is no Delta table in {path}") from why
    except (DeltaError, OSError) as why:
        if isinstance(told(path, why), StoreProblem):
            raise told(path, why) from why
        at = "" if version is None else f" in version {version}"
        raise NoTable(f"the Delta table in {path} cannot be opened{at}: {_one_line(why)}") from why


def _one_line(why: Exception) -> str:
    """Errors of the Delta kernel bring the frames of their stack along, a line each."""
    return str(why).strip().partition("\n")[0].strip()


def told(path: str, why: Exception) -> Exception:
    """The same for people, if the store is at fault; else as it is."""
    if not object_store.is_remote(path) or object_store.meaning(str(why)) is None:
        return why
    return StoreProblem(object_store.explained(path, str(why)))


def is_cut(files: Sequence[File]) -> bool:
    """Whether these files of one part are about as few as they should be."""
    rows = sum(file.rows or 0 for file in files)
    return bool(files) and all(file.keys for file in files) and len(files) <= 1 + 2 * (rows // ROWS_PER_CUT)
