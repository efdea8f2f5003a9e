"""Check from the ledger alone whether it is in order, and whether each published part read one snapshot."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from partwise.cli.open_workspace import definitions_of, ledger_of, moment_of, table_of, workspace_of
from partwise.cli.options import JsonOption, WorkspaceOption, complete_views
from partwise.cli.stop import Stop
from partwise.cli.views.show import as_json, plural, say, table
from partwise.parts import part_text, range_text
from partwise.parts.ranges import Range

if TYPE_CHECKING:
    from partwise.ledger.read.audit_report import Audit, ViewAudit
    from partwise.ledger.records.mixtures import Mixture
    from partwise.tables import Graph


def command(
    view: Annotated[str | None, typer.Argument(metavar="VIEW", autocompletion=complete_views)] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only what happened since; UTC, or how long ago.")
    ] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Check the ledger: versions without gaps, times that grow, what is due against the formula, mixed parts.

    A part is mixed if it was computed while inputs were not up to date: its view had run out of patience, or an input
    failed its checks or is left to people. It stays marked until it is repaired. Parts that were superseded at their
    commit (an input changed while they were computed) are counted; they are repaired like any other stale part.
    Exit code 1 if there are problems.

    \b
    Example:
      partwise audit
      partwise audit high_loss --since '1 day'
    """
    from partwise.ledger.read.audit_report import audit_report

    where = workspace_of(workspace)
    definitions = definitions_of(where, quiet=True)
    now = time.time()
    after = None if since is None else moment_of(since, now)
    if not where.has_ledger():
        raise Stop("There is no ledger yet: no run has made one. `partwise run` starts.")
    with ledger_of(where, now, looking=True) as ledger, ledger.database.reading() as r:
        graph = ledger.graph_at(r)
        only = None if view is None else (table_of(graph, definitions, view).name,)
        found = audit_report(r, graph, only, after)
    if json:
        as_json(_as_json(graph, found))
    else:
        _show(graph, found)
    if found.problems:
        raise typer.Exit(1)


def _as_json(graph: Graph, found: Audit) -> dict[str, object]:
    return {
        "problems": [{"kind": p.kind, "table": p.table, "message": p.message} for p in found.problems],
        "views": [_view_json(graph, item) for item in found.views],
    }


def _view_json(graph: Graph, item: ViewAudit) -> dict[str, object]:
    return {
        "view": item.view,
        "parts": item.parts,
        "due": item.due,
        "mixed": [_mixture_json(graph, mixture) for mixture in item.mixed],
        "published": item.published,
        "superseded_at_commit": item.superseded_at_commit,
    }


def _mixture_json(graph: Graph, item: Mixture) -> dict[str, object]:
    return {
        "part": part_text(item.part, graph[item.table].length),
        "as_of": item.as_of,
        "read": [
            {"table": name, "parts": range_text(Range(lo, hi), graph[name].length)}
            for name, lo, hi in item.reads
            if name in graph.tables
        ],
    }


def _show(graph: Graph, found: Audit) -> None:
    from partwise.ledger.read.audit_report import mixture_line

    rows = [
        (
            item.view,
            f"{item.parts:,}",
            f"{item.due:,}",
            f"{len(item.mixed):,}",
            f"{item.superseded_at_commit:,} of {item.published:,}",
        )
        for item in found.views
        if graph[item.view].helper_of is None or item.mixed
    ]
    if rows:
        table(("view", "parts", "due", "mixed", "superseded at commit"), rows)
    told = {problem.message for problem in found.problems}
    for problem in found.problems:
        say(problem.message, "red")
    for item in (mixture for view in found.views for mixture in view.mixed):
        line = mixture_line(graph, item)
        if line not in told:
            say(f"{line}; it is due", "yellow")
    say(f"{plural(len(found.problems), 'problem')}." if found.problems else "The ledger is in order.")
