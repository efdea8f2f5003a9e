"""Remove the rows of a file from a source."""

from __future__ import annotations

from typing import Annotated

import typer

from partwise.cli.options import JsonOption, SourceArgument, WorkspaceOption
from partwise.cli.stop import Stop
from partwise.cli.views.show import as_json


def command(
    source: SourceArgument,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The file as it was loaded, any path to it, or its name.")
    ],
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Remove the rows of a file from a source. The file is loaded again only if its content changes.

    \b
    Example:
      partwise retract measurements landing/measurements/2026-10-03T10-00.csv
    """
    from spark_jobs.commands._opening import engine_of

    _known(workspace, source, file)
    with engine_of(workspace, [source], "source") as (engine, where):
        from spark_jobs.commands.ingest import show, to_json
        from spark_jobs.ingest import retract
        from spark_jobs.ingest.api import NotDone

        try:
            done = retract(engine, where, source, file)
        except NotDone as why:
            raise Stop(str(why)) from None
        as_json({"sources": [to_json(engine, done)]}) if json else show(engine, done)


def _known(workspace: str | None, source: str, file: str) -> None:
    """A wrong name is told before Spark starts."""
    import time

    from partwise.cli.open_workspace import definitions_of, ledger_of, table_of, workspace_of
    from partwise.definitions import Source
    from partwise.ledger.records.files import files_of
    from partwise.sources.named import NotNamed, meant

    where = workspace_of(workspace)
    definitions = definitions_of(where, quiet=True)
    table = table_of(definitions.graph(), definitions, source, "source")
    found = definitions.usable.get(table.name)
    if isinstance(found, Source) and found.delta is not None:
        raise Stop(f"{table.name} is a Delta table of others; rows go when its owner deletes them.")
    with ledger_of(where, time.time(), looking=True) as ledger, ledger.database.reading() as r:
        known = files_of(r, table.name)
    try:
        taken = known[meant(table.name, file, known, where.folder, where.locate)]
    except NotNamed as why:
        raise Stop(str(why)) from None
    if taken.state == "retracted":
        raise Stop(f"{taken.name} is retracted already; nothing was changed.")
