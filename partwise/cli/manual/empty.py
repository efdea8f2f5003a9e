"""Declare that parts of a source will never come: they exist, without rows."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from partwise.cli.close_and_empty import report, source_in
from partwise.cli.open_workspace import range_of
from partwise.cli.options import JsonOption, SourceArgument, WorkspaceOption
from partwise.cli.stop import Stop


def command(
    source: SourceArgument,
    parts: Annotated[str, typer.Argument(metavar="RANGE", help="A..B, both included, or one part.")],
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Declare that parts of a source will never come: they exist, without rows.

    Of a range those that are missing; others stay as they are. Views no longer wait for them. Rows that arrive after
    all are late rows.

    \b
    Example:
      partwise empty measurements 2026-10-03T10:05..2026-10-03T10:09
    """
    from partwise.ledger.write.closing import ClosingRefused, declare_empty
    from partwise.ledger.write.lease_holding import who

    with source_in(workspace, source) as (ledger, table, adopt):
        span = range_of(parts, table)
        try:
            done = declare_empty(ledger, table.name, span, who(), time.time(), adopt)
        except ClosingRefused as why:
            raise Stop(str(why)) from None
        report(ledger, table, span, done, "declared empty", json)
