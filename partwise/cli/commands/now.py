"""Show the ledger's present sequence and time, and the versions of the tables that belong to it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from partwise.cli.open_workspace import definitions_of, ledger_of, workspace_of
from partwise.cli.options import JsonOption, WorkspaceOption
from partwise.cli.stop import Stop, wrong_use
from partwise.cli.views.show import as_json, moment_json, moment_text, say, table
from partwise.parts import BadTime, seconds

if TYPE_CHECKING:
    from partwise.ledger.ledger import Ledger
    from partwise.ledger.records.readers import Moment


def command(
    tables: Annotated[
        bool, typer.Option("--tables", help="Also the folder and Delta version of every table at this time.")
    ] = False,
    keep: Annotated[
        str | None,
        typer.Option("--keep", metavar="DURATION", help="Upkeep keeps what belongs to this time for so long."),
    ] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Show the ledger's present sequence and time. `partwise query ... --as-of @N` reads as of this time, now and later.

    With --tables, other programs (Spark, DuckDB, pandas, Polars) can read several tables as of this time: see
    docs/reading.md. --keep lets upkeep spare what they read for as long as they need.

    \b
    Example:
      partwise now --json
      partwise now --tables --keep '10 minutes' --json
    """
    where = workspace_of(workspace)
    lasts = _duration(keep)
    if not where.has_ledger():
        raise Stop("There is no ledger yet: no run has made one. `partwise run` starts.")
    with ledger_of(where, time.time(), looking=lasts is None) as ledger:
        at = _moment(ledger, lasts)
        found = (
            _tables(ledger, where.warehouse, at.seq, list(definitions_of(where, quiet=True).usable)) if tables else []
        )
    if json:
        as_json({"sequence": at.seq, "at": moment_json(at.at)} | ({"tables": found} if tables else {}))
        return
    say(f"Sequence {at.seq}, {moment_text(at.at, where.settings.timezone)}")
    if tables:
        table(("table", "version", "path"), [(str(t["table"]), str(t["version"]), str(t["path"])) for t in found])


def _duration(text: str | None) -> int | None:
    try:
        return None if text is None else seconds(text)
    except BadTime as why:
        raise wrong_use(f"--keep: {why}.") from None


def _moment(ledger: Ledger, lasts: int | None) -> Moment:
    from partwise.ledger.records.readers import enter, pinned

    if lasts is None:
        return pinned(ledger.database, time.time())
    from partwise.ledger.write.lease_holding import who

    return enter(ledger.database, time.time(), who(), seconds=lasts)[1]


def _tables(ledger: Ledger, warehouse: str, seq: int, known: list[str]) -> list[dict[str, object]]:
    """`parts` of a source: those that exist. Rows of others are in the table, but do not count yet."""
    from partwise.ledger.read.as_of import readable
    from partwise.storage.paths import table_path

    graph = ledger.graph()
    names = sorted({*known, *graph.tables})
    return [
        {
            "table": name,
            "path": table_path(warehouse, name, at.version.generation),
            "version": at.version.version,
            "parts": None
            if at.parts is None or graph[name].kind != "source"
            else [list(span) for span in at.parts.ranges],
        }
        for name, at in sorted(readable(ledger.database, names, names, seq).items())
        if name in graph.tables
    ]
