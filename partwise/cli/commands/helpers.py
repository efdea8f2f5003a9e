"""List generated tables: which views each serves, what it reads, its parts and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from partwise.cli.open_workspace import definitions_of, snapshot_of, workspace_of
from partwise.cli.options import JsonOption, WorkspaceOption
from partwise.cli.views.show import as_json, say, table

if TYPE_CHECKING:
    from partwise.ledger.read.snapshot import Snapshot


def command(workspace: WorkspaceOption = None, json: JsonOption = False) -> None:
    """List the helpers that were generated for windows, patterns, samples and kept state, with the views that they serve.

    Helpers are tables like any other: `partwise status --helpers` shows their state, `partwise explain VIEW` their SQL.

    \b
    Example:
      partwise helpers
      partwise helpers --json
    """
    where = workspace_of(workspace)
    with snapshot_of(where, definitions_of(where, quiet=True)) as snapshot:
        found = _helpers(snapshot)
    if json:
        as_json({"helpers": found})
        return
    if not found:
        say("No view has helpers: none is a window or a pattern, or has a sample or state.")
        return
    headings = ("helper", "reads", "serves", "parts", "rows")
    rows = [(item["name"], item["input"], ", ".join(item["serves"]), item["parts"], item["rows"]) for item in found]
    table(headings, [[str(cell) for cell in row] for row in rows])


def _helpers(snapshot: Snapshot) -> list[dict[str, Any]]:
    from partwise.ledger.read.reports import row_counts

    counts = row_counts(snapshot.r)
    found = []
    for name in snapshot.graph.order:
        each = snapshot.graph[name]
        if each.helper_of is not None:
            parts, rows = counts.get(name, (0, 0))
            reads = ", ".join(other for other in each.input_names if other != name)
            found.append({"name": name, "input": reads, "serves": list(each.serves), "parts": parts, "rows": rows})
    return found
