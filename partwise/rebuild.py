"""What making a table again would bring back, and what not: looked at before anybody is asked."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from partwise.compile.program import Program
from partwise.definitions import Dimension, Source
from partwise.ledger.catalog import settled
from partwise.ledger.ledger import Ledger
from partwise.ledger.records.files import files_of
from partwise.ledger.runs import existing
from partwise.ledger.write.due_painting import frozen_below
from partwise.ledger.write.rebuilding import lost_parts
from partwise.parts import Parts, range_text
from partwise.tables import Table
from partwise.workspace import Workspace


@dataclass(frozen=True)
class Preview:
    """`parts` come back; `gone` says in words what does not. `files` can be loaded again; None for what has no files."""

    table: str
    kind: str
    parts: int
    running: bool = False
    files: int | None = None
    gone: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "kind": self.kind,
            "parts": self.parts,
            "running": self.running,
            "files": self.files,
            "gone": self.gone,
        }


def preview(ledger: Ledger, workspace: Workspace, definitions: Program, table: Table) -> Preview:
    with ledger.database.reading() as r:
        left = lost_parts(r, table.name)
        if left:
            return Preview(table.name, table.kind, left.count, running=True)
        there, now = existing(r, table.name), settled(r, table.name)
        taken = files_of(r, table.name)
        floor = frozen_below(r, table, now) if table.kind == "view" else None
    found = definitions.usable[table.name]
    if isinstance(found, Source | Dimension):
        if found.delta is not None:
            return Preview(table.name, table.kind, there.count)
        loaded = [f for f in taken.values() if f.state == "loaded"]
        current = loaded if table.kind == "source" else sorted(loaded, key=lambda f: f.id)[-1:]
        gone = [f for f in current if not _there(workspace, f.name, f.size)]
        said = [f"{f.name}{_span(table, f.lo, f.hi)}: it is no longer in landing, or another file by now" for f in gone]
        return Preview(table.name, table.kind, there.count, files=len(current) - len(gone), gone=said)
    old = Parts() if floor is None else there.within(-(2**62), floor - 1)
    said = [
        f"{table.name}[{range_text(span, table.length)}]: what it was computed from has expired" for span in old.ranges
    ]
    return Preview(table.name, table.kind, (there - old).count, gone=said)


def _there(workspace: Workspace, name: str, size: int) -> bool:
    path = name if os.path.isabs(name) else os.path.join(workspace.folder.absolute(), name)
    return os.path.isfile(path) and os.path.getsize(path) == size


def _span(table: Table, lo: int | None, hi: int | None) -> str:
    from partwise.parts import Range

    if lo is None or hi is None or table.kind != "source":
        return ""
    return f" (rows of {range_text(Range(lo, hi), table.length)})"
