"""List the parts of a table whose content changed since a given time."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from partwise.cli.open_workspace import definitions_of, moment_of, snapshot_of, table_of, workspace_of
from partwise.cli.options import JsonOption, TableArgument, WorkspaceOption
from partwise.cli.rows_changed import RowsChanged, rows_changed
from partwise.cli.rows_changed import show as show_rows
from partwise.cli.views.show import as_json, moment_json, moment_text, part_or_none, say, table


def command(
    name: TableArgument,
    since: Annotated[str, typer.Option(metavar="TIME", help="A time (UTC), or how long ago: '2 hours'.")],
    workspace: WorkspaceOption = None,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many changes.")] = 1000,
    json: JsonOption = False,
) -> None:
    """List the parts whose content changed since a given time, newest change first, with the reason.

    A part that was recomputed with the same result did not change. Of a view with `output: rolling` the rows that came
    and went since then are shown, too.

    \b
    Example:
      partwise changes measurements --since 2026-10-03T12:00
      partwise changes total_loss --since "1 day" --json
    """
    from partwise.ledger.read.reports import changes_since

    where, now = workspace_of(workspace), time.time()
    moment = moment_of(since, now)
    definitions = definitions_of(where)
    with snapshot_of(where, definitions, now) as snapshot:
        found = table_of(snapshot.graph, definitions, name)
        changed, more = changes_since(snapshot, found.name, moment, limit)
    rolled = rows_changed(where, found.name, moment, limit) if found.rolling and changed else None
    if json:
        rows = [
            {
                "part": part_or_none(row.part, found.length, found.kind),
                "revision": row.revision,
                "rows": row.rows,
                "at": moment_json(row.at),
                "reason": row.reason,
                "times": row.times,
            }
            for row in changed
        ]
        told = {"rows": rolled.to_json()} if isinstance(rolled, RowsChanged) else {}
        as_json({"table": found.name, "since": moment_json(moment), "changes": rows, "more": more} | told)
        return
    zone = where.settings.timezone
    if not changed:
        say(f"Nothing in {found.name} has changed since {moment_text(moment, zone)}.")
        return
    shown = [
        (
            part_or_none(row.part, found.length, found.kind) or "all of it",
            str(row.revision),
            f"{row.rows:,}",
            moment_text(row.at, zone),
            row.reason + (f" (changed {row.times} times)" if row.times > 1 else ""),
        )
        for row in changed
    ]
    table(("part", "revision", "rows", "changed", "reason"), shown)
    if isinstance(rolled, RowsChanged):
        show_rows(rolled)
    elif rolled is not None:
        say(rolled, "yellow")
    if more:
        say(f"There are more; --limit shows more than {limit}.", "dim")
