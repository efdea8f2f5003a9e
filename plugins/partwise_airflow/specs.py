"""What a DAG file holds: everything that its DAG is made of, as plain data.

Definitions are read where stubs are rendered. Whoever parses a stub (for every task of every run) reads no YAML.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class TableSpec:
    """One Spark task: a table and its part length in seconds."""

    name: str
    length: int


@dataclass(frozen=True)
class ViewSpec:
    """`tables` are the view and its generated helpers in the order of computing: those that it reads before it, those
    that read it (of the same length) after it."""

    name: str
    tables: tuple[TableSpec, ...]
    workspace: str
    description: str
    docs: str
    owner: str
    tags: tuple[str, ...]
    engine: str
    timeout: int | None
    freshness: float | None = None  # seconds that it may be behind; None: no view of the workspace has a deadline

    def to_json(self) -> dict[str, Any]:
        return _without_none(asdict(self), "freshness")

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> ViewSpec:
        tables = tuple(TableSpec(**table) for table in raw["tables"])
        return cls(**{**raw, "tables": tables, "tags": tuple(raw["tags"])})


@dataclass(frozen=True)
class SourceSpec:
    """A source or dimension. `poll` in seconds; None: it is loaded when somebody asks for it."""

    name: str
    kind: str
    workspace: str
    description: str
    docs: str
    owner: str
    tags: tuple[str, ...]
    poll: int | None
    deadlines: bool | None = None  # whether views have deadlines: then it comes before all of them

    def to_json(self) -> dict[str, Any]:
        return _without_none(asdict(self), "deadlines")

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> SourceSpec:
        return cls(**{**raw, "tags": tuple(raw["tags"])})


def _without_none(raw: dict[str, Any], key: str) -> dict[str, Any]:
    """Stubs that do not have this say nothing of it: another text would be another version of the DAG."""
    return {name: value for name, value in raw.items() if name != key or value is not None}
