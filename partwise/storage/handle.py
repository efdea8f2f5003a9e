"""A table at one version: its schema and its files, and what replacing some parts does to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from partwise import object_store
from partwise.parts import Parts
from partwise.storage.errors import CommitRefused, NoTable, StoreProblem
from partwise.storage.schema import PART, names


@dataclass(frozen=True, slots=True)
class File:
    """A file of a table, live in one version. `lo`..`hi` is the range of its parts by statistics."""

    path: str
    size: int
    rows: int | None = None
    lo: int | None = None
    hi: int | None = None

    def may_hold(self, parts: Parts) -> bool:
        """Without statistics it may hold anything."""
        return self.lo is None or self.hi is None or bool(parts.within(self.lo, self.hi))

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
        return tuple(File(*row) for row in zip(*columns, strict=True))

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
        raise NoTable(f"the Delta table in {path} cannot be opened{at}: {why}") from why


def told(path: str, why: Exception) -> Exception:
    """The same for people, if the store is at fault; else as it is."""
    if not object_store.is_remote(path) or object_store.meaning(str(why)) is None:
        return why
    return StoreProblem(object_store.explained(path, str(why)))
