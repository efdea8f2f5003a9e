"""What making a table again would bring back, and what not: looked at before anybody is asked."""

from __future__ import annotations

import os
from collections.abc import Iterable
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
from partwise.object_store import is_remote
from partwise.parts import Parts, range_text
from partwise.storage.files import folder
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
        sizes = file_sizes(workspace, [f.name for f in current])
        gone = [f for f in current if sizes.get(f.name) != f.size]
        said = [f"{f.name}{_span(table, f.lo, f.hi)}: it is no longer in landing, or another file by now" for f in gone]
        return Preview(table.name, table.kind, there.count, files=len(current) - len(gone), gone=said)
    old = Parts() if floor is None else there.within(-(2**62), floor - 1)
    said = [
        f"{table.name}[{range_text(span, table.length)}]: what it was computed from has expired" for span in old.ranges
    ]
    return Preview(table.name, table.kind, (there - old).count, gone=said)


def file_sizes(workspace: Workspace, names: Iterable[str]) -> dict[str, int]:
    """Of the files that are there. Each folder of a store is listed once."""
    found: dict[str, int] = {}
    listed: dict[str, dict[str, int]] = {}
    for name in names:
        if is_remote(name):
            above, _, base = name.rpartition("/")
            if above not in listed:
                listed[above] = {each.name: each.size for each in folder(above).listing("") if not each.folder}
            size = listed[above].get(base)
        else:
            path = name if os.path.isabs(name) else os.path.join(workspace.folder.absolute(), name)
            size = os.path.getsize(path) if os.path.isfile(path) else None
        if size is not None:
            found[name] = size
    return found


def _span(table: Table, lo: int | None, hi: int | None) -> str:
    from partwise.parts import Range

    if lo is None or hi is None or table.kind != "source":
        return ""
    return f" (rows of {range_text(Range(lo, hi), table.length)})"
