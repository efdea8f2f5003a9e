"""Close a part of a source manually, with the rows that have arrived for it."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from partwise.cli.close_and_empty import report, source_in
from partwise.cli.open_workspace import holder, range_of
from partwise.cli.options import JsonOption, SourceArgument, WorkspaceOption
from partwise.cli.stop import Stop
from partwise.cli.views.show import as_json, say


def command(
    source: SourceArgument,
    part: Annotated[
        str,
        typer.Argument(metavar="PART", help="For example 2026-10-03T10:05 (UTC), or a range A..B: what is missing."),
    ],
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Close a part of a source manually, with the rows that have arrived; without rows the part is empty.

    From then on views can use it, and rows that arrive for it are late rows. If the source has checks, the next ingest
    runs them first and closes the part if they pass.

    \b
    Example:
      partwise close measurements 2026-10-03T10:05
      partwise close measurements 2026-10-03T10:05..2026-10-03T10:09
    """
    from partwise.ledger.records.checks import ask_to_close
    from partwise.ledger.write.closing import ClosingRefused, closable, close
    from partwise.ledger.write.lease_holding import who

    with source_in(workspace, source) as (ledger, table, adopt):
        span = range_of(part, table)
        try:
            if table.checks:
                wanted = closable(ledger, table.name, span)
                with ledger.database.writing(time.time()) as w:
                    for p in wanted:
                        ask_to_close(w, table.name, p, holder())
                _later(table.name, part, json)
                return
            done = close(ledger, table.name, span, who(), time.time(), adopt)
        except ClosingRefused as why:
            raise Stop(str(why)) from None
        report(ledger, table, span, done, "closed", json)


def _later(name: str, part: str, json: bool) -> None:
    """A part with checks is looked at before anyone can use it, which takes Spark."""
    if json:
        as_json({"source": name, "closed": [], "asked": [part]})
    else:
        say(f"{name}[{part}] has checks: the next `partwise ingest` or `partwise run` makes them and closes it.")
