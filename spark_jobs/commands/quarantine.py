"""Show quarantined rows and why they are there; release them."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from partwise.cli.open_workspace import definitions_of, ledger_of, table_of, workspace_of
from partwise.cli.options import JsonOption, WorkspaceOption
from partwise.cli.stop import Stop, wrong_use
from partwise.cli.views.show import as_json, moment_text, plural, say, table

if TYPE_CHECKING:
    from partwise.ledger.records.files import Quarantined


def command(
    words: Annotated[list[str] | None, typer.Argument(metavar="[release] [SOURCE]")] = None,
    limit: Annotated[int, typer.Option(help="Show at most this many rows.")] = 100,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Show quarantined rows with the reason. `quarantine release SOURCE` loads those that can be placed after all.

    \b
    Example:
      partwise quarantine
      partwise quarantine measurements
      partwise quarantine release measurements
    """
    asked = list(words or [])
    if asked[:1] == ["release"]:
        if len(asked) != 2:
            raise wrong_use("quarantine release takes one SOURCE.")
        _release(asked[1], workspace, json)
    elif len(asked) > 1:
        raise wrong_use(f"quarantine takes one SOURCE, or `release SOURCE`; found {' '.join(asked)}.")
    else:
        _show(asked[0] if asked else None, limit, workspace, json)


def _show(source: str | None, limit: int, workspace: str | None, json: bool) -> None:
    from partwise.ledger.records.files import quarantine_counts, quarantined

    where = workspace_of(workspace)
    definitions = definitions_of(where, quiet=True)
    name = table_of(definitions.graph(), definitions, source, "source", "dimension").name if source else None
    if not where.has_ledger():
        as_json({"counts": {}, "rows": []}) if json else say("Nothing is quarantined.")
        return
    with ledger_of(where, time.time(), looking=True) as ledger, ledger.database.reading() as r:
        counts = {n: found for n, found in quarantine_counts(r).items() if name in (None, n)}
        rows = quarantined(r, name, limit)
    if json:
        as_json({"counts": counts, "rows": [asdict(row) for row in rows]})
        return
    if not rows:
        say("Nothing is quarantined.")
        return
    zone = where.settings.timezone
    shown = [(row.source, _place(row), moment_text(row.at, zone), row.reason, row.row) for row in rows]
    table(("source", "file", "when", "reason", "row"), shown)
    total = sum(count for found in counts.values() for count in found.values())
    say(f"{plural(total, 'row')} quarantined" + (f", {len(rows)} shown." if total > len(rows) else "."))


def _place(row: Quarantined) -> str:
    """The file and the line, as compilers write it."""
    return row.file if row.line is None else f"{row.file}:{row.line}"


def _release(source: str, workspace: str | None, json: bool) -> None:
    from spark_jobs.commands._opening import engine_of

    if not _anything(source, workspace):
        empty = {"source": source, "files": 0, "rows": 0, "late_rows": 0, "quarantined": 0, "closed": [], "changed": []}
        as_json({"sources": [empty]}) if json else say(f"  {source}: nothing was quarantined.")
        return
    with engine_of(workspace, [source], "source") as (engine, where):
        from spark_jobs.commands.ingest import show_released, to_json
        from spark_jobs.ingest import release
        from spark_jobs.ingest.api import NotDone

        try:
            done = release(engine, where, source)
        except NotDone as why:
            raise Stop(str(why)) from None
        as_json({"sources": [to_json(engine, done)]}) if json else show_released(engine, done)


def _anything(source: str, workspace: str | None) -> bool:
    """Whether there is anything to release: for nothing, Spark need not start."""
    from partwise.ledger.records.files import quarantined

    where = workspace_of(workspace)
    definitions = definitions_of(where, quiet=True)
    name = table_of(definitions.graph(), definitions, source, "source").name
    if not where.has_ledger():
        return False
    with ledger_of(where, time.time(), looking=True) as ledger, ledger.database.reading() as r:
        return bool(quarantined(r, name, 1))
