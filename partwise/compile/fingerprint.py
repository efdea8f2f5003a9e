"""A fingerprint of what a table means. When it changes, the parts of the table are stale.

In: everything that decides the content of a part. Out: checks, description, owner, tags, retention,
how and when it runs. Comments, white space and the case of key words do not count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from partwise.compile.program import ProgramTable, Runnable
from partwise.definitions.definitions import Definition, Dimension, Source, View

#: Part of every fingerprint. Raise it if the same definition starts to mean something else.
_MEANING = 1


def fingerprint(definition: ProgramTable, tables: Mapping[str, Definition | Runnable]) -> str:
    """`tables` by lower-case name: the kinds and part lengths of inputs count, too."""
    if isinstance(definition, Runnable) and definition.meaning is not None:
        return definition.meaning
    return hashed(_meaning(definition, tables))


def hashed(meaning: object) -> str:
    text = json.dumps([_MEANING, meaning], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _meaning(definition: ProgramTable, tables: Mapping[str, Definition | Runnable]) -> dict[str, Any]:
    if isinstance(definition, Source):
        return {
            "kind": "source",
            "part": definition.part,
            "time": [definition.time.column, definition.time.unit],
            **_stored(definition),
        }
    if isinstance(definition, Dimension):
        forward = {"change": "forward"} if definition.change == "forward" else {}
        return {"kind": "dimension", **_stored(definition), **forward}
    return _view(definition, tables)


def _stored(definition: Source | Dimension) -> dict[str, Any]:
    columns = [[name, " ".join(kind.lower().split())] for name, kind in definition.columns.items()]
    return {"columns": columns, "files": list(definition.files), "delta": definition.delta}


def _view(view: Runnable, tables: Mapping[str, Definition | Runnable]) -> dict[str, Any]:
    meaning: dict[str, Any] = {"kind": "view", "part": view.part}
    for key, statement in (("initialize", view.initialize), ("update", view.update)):
        if statement is not None:
            meaning[key] = statement.canonical
    # A query counts by what it was translated to: that is what runs.
    if view.optional:
        meaning["optional"] = sorted(view.optional)
    if view.start.part is not None:
        meaning["start"] = view.start.part
    names = sorted({found.table.lower() for statement in view.statements for found in statement.found.tables})
    meaning["inputs"] = {name: input_meaning(tables.get(name)) for name in names}
    return meaning


def input_meaning(definition: Definition | Runnable | None) -> list[object]:
    if isinstance(definition, Source | View | Runnable):
        return ["parts", definition.part]
    return ["whole"]
