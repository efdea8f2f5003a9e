"""Show what the checks of parts found last; as pages of Great Expectations with --open."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.cli.options import JsonOption, WorkspaceOption, complete_tables
from partwise.cli.views.show import as_json, number, part_or_none, say, table

if TYPE_CHECKING:
    from partwise.checks.results import KeptResults
    from partwise.ledger.read.snapshot import Snapshot
    from partwise.tables import Table

_OUTCOMES = ("failed", "accepted", "warned", "passed")


def command(
    name: Annotated[str | None, typer.Argument(metavar="TABLE", autocompletion=complete_tables)] = None,
    workspace: WorkspaceOption = None,
    open_: Annotated[bool, typer.Option("--open", help="Create the pages and open them in a browser.")] = False,
    site: Annotated[
        str | None, typer.Option("--site", metavar="DIR", help="Create the pages in this folder and open nothing.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, help="Show at most this many parts per table; failed ones come first.")
    ] = 20,
    json: JsonOption = False,
) -> None:
    """Show what the checks of parts found last. For one table: its parts, those that failed first, with failing rows.

    With --open: a site of HTML pages made by Great Expectations (its data docs), in `data_docs/` of the workspace.

    \b
    Example:
      partwise checks
      partwise checks measurements --json
      partwise checks --open
    """
    from partwise.cli.open_workspace import definitions_of, snapshot_of, table_of, workspace_of
    from partwise.ledger.records import checks as ledger_checks

    where = workspace_of(workspace)
    definitions = definitions_of(where)
    with snapshot_of(where, definitions) as snapshot:
        graph = snapshot.graph
        names = [n for n in graph.order if graph[n].checks]
        chosen = [table_of(graph, definitions, name).name] if name else names
        found = {n: ledger_checks.newest(snapshot.r, n, limit) for n in chosen}
        counts = ledger_checks.counts(snapshot.r)
    if open_ or site is not None:
        folder = Path(site).absolute() if site else where.folder.absolute() / "data_docs"
        _site(snapshot, found, folder, show=open_)
    elif json:
        as_json({"tables": [_json(graph[n], found[n], counts.get(n, {})) for n in chosen]})
    elif name:
        _parts(graph[chosen[0]], found[chosen[0]], where.settings.timezone)
    else:
        rows = [(n, *(number(counts.get(n, {}).get(o, 0)) for o in _OUTCOMES)) for n in chosen]
        table(("table", *_OUTCOMES), rows) if rows else say("No table has checks; see docs/checks.md.")
        if any(counts.get(n, {}).get("failed") for n in chosen):
            say("`partwise checks TABLE` shows what failed, with its rows.", "dim")


def _parts(table_: Table, found: list[KeptResults], zone: str) -> None:
    from partwise.cli.accept import show_kept

    if not found:
        say(f"No part of {table_.name} has been checked yet." if table_.checks else f"{table_.name} has no checks.")
    for item in found:
        say(f"\n{table_.name} {part_or_none(item.part, table_.length, table_.kind) or ''}: {item.rows:,} rows", "bold")
        show_kept(item, zone)


def _json(table_: Table, found: list[KeptResults], counts: dict[str, int]) -> dict[str, Any]:
    from partwise.cli.accept import kept_json

    return {
        "table": table_.name,
        **{outcome: counts.get(outcome, 0) for outcome in _OUTCOMES},
        "parts": [{"part": part_or_none(k.part, table_.length, table_.kind), **kept_json(k)} for k in found],
    }


def _site(snapshot: Snapshot, found: dict[str, list[KeptResults]], folder: Path, show: bool) -> None:
    import webbrowser

    from spark_jobs.checks.pages import write

    index = write(folder, [(snapshot.graph[name], kept) for name, items in found.items() for kept in items])
    say(f"{index}")
    if show and not webbrowser.open(index.as_uri()):
        say("There is no browser here; open the file above.", "yellow")
