"""Show per table what is there, missing, stale, blocked, failed or late; for one table: its parts."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.choose.outcomes import score
from partwise.cli.open_workspace import (
    definitions_of,
    errors_of,
    ledger_of,
    problem_json,
    range_of,
    snapshot_of,
    table_of,
    workspace_of,
)
from partwise.cli.options import HelpersOption, JsonOption, WorkspaceOption, complete_tables
from partwise.cli.stop import wrong_use
from partwise.cli.views.coverage import coverage_json, coverage_of, low_coverage
from partwise.cli.views.freshness import freshness_json, late_lines
from partwise.cli.views.next_part import bits, next_json, next_of
from partwise.cli.views.page_link import OpenOption, open_page
from partwise.cli.views.part_state import too_early
from partwise.cli.views.running import running_json, running_lines, show_running
from partwise.cli.views.show import as_json, moment_json, moment_text, number, part_or_none, plural, say, table
from partwise.parts import FOREVER, Range, duration_text, part_text, range_text
from partwise.storage.errors import StoreProblem

if TYPE_CHECKING:
    from partwise.compile.program import Program
    from partwise.ledger.read.reports import Page, TableStatus
    from partwise.ledger.read.snapshot import Snapshot
    from partwise.tables import Table
    from partwise.workspace import Workspace


_COUNTS = ("missing", "stale", "deferred", "blocked", "failed", "late rows", "quarantined")


def command(
    name: Annotated[str | None, typer.Argument(metavar="TABLE", autocompletion=complete_tables)] = None,
    workspace: WorkspaceOption = None,
    helpers: HelpersOption = False,
    parts: Annotated[
        str | None, typer.Option("--range", metavar="A..B", help="Show only these parts of TABLE.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many parts of TABLE, newest first.")] = 20,
    running: Annotated[bool, typer.Option("--running", help="Show only the steps that run now.")] = False,
    json: JsonOption = False,
    browse: OpenOption = False,
) -> None:
    """Show per table: first and newest part, missing, stale, blocked and failed parts, late rows, last change.

    For one table: its parts, newest first, and the folder of its Delta table for readers other than Partwise; of a
    view also the part that it builds next, and which of the parts that this one requires are there.

    \b
    Example:
      partwise status
      partwise status measurements --range 2026-10-03T10:00..2026-10-03T10:30
      partwise status --running
    """
    from partwise.ledger.read import reports

    if name is None and parts is not None:
        raise wrong_use("--range is for one table: partwise status TABLE --range A..B.")
    if name is not None and running:
        raise wrong_use("--running shows the steps of all tables: partwise status --running.")
    where = workspace_of(workspace)
    definitions = definitions_of(where)
    with snapshot_of(where, definitions) as snapshot:
        if name is None and browse:
            open_page(where)
            return
        if name is None and running:
            show_running(snapshot, json, where.settings.timezone)
            return
        if name is None:
            _all(where, definitions, snapshot, helpers, json, where.settings.timezone)
            return
        found = table_of(snapshot.graph, definitions, name)
        span = range_of(parts, found) if parts else Range(-FOREVER, FOREVER)
        if browse:
            shown = range_text(span, found.length) if parts else None  # as everybody writes it, whatever was typed
            open_page(where, view=None if parts else "table", table=found.name, range=shown)
            return
        page = reports.parts(snapshot, found.name, span.lo, span.hi, limit)
        path = _path(where, found.name)
        if json:
            _page_json(snapshot, found, page, path)
        else:
            _page(snapshot, found, page, where.settings.timezone)
            if path:
                say(f"Delta table for other readers: {path}", "dim")


def _all(where: Workspace, definitions: Program, snapshot: Snapshot, helpers: bool, json: bool, zone: str) -> None:
    from partwise.ledger.read import reports

    everything = reports.tables(snapshot)
    shown = [row for row in everything if helpers or row.table.helper_of is None]
    broken, again, unknown = _condition(where)
    if json:
        tables = [
            _table_json(row)
            | {"next": _next_json(snapshot, row.table), "freshness": freshness_json(row, snapshot.now)}
            | {"estimates": coverage_json(coverage_of(snapshot, row.table.name))}
            | {"rebuilding": again.get(row.table.name, 0), "damaged": broken.get(row.table.name)}
            for row in shown
        ]
        problems = [problem_json(problem) for problem in errors_of(definitions)]
        found = {"tables": tables, "running": running_json(snapshot), "problems": problems}
        as_json(found | ({"store": unknown} if unknown else {}))
        return
    headings = ("table", "kind", "parts", "first", "last", *_COUNTS, "last updated")
    rows = [_row(row, zone) for row in shown]
    # Terminals are narrow: a count that is zero everywhere has no column.
    kept = [at for at, heading in enumerate(headings) if heading not in _COUNTS or any(row[at] for row in rows)]
    table([headings[at] for at in kept], [[row[at] for at in kept] for row in rows])
    if unknown:
        say(f"{unknown} Whether all files are there is not known.", "red")
    for name, what in broken.items():
        say(f"{name}: {what}; `partwise rebuild {name}` makes it again.", "red")
    for name, count in again.items():
        say(f"{name} is being made again, {plural(count, 'part')} left; `partwise rebuild {name}` goes on.", "yellow")
    for line in running_lines(snapshot, zone):
        say(line, "bold")
    for line in late_lines(everything, snapshot.now, zone):
        say(line, "yellow")
    for note in (*_notes(everything), *low_coverage(snapshot)):
        say(note, "yellow")
    for line in _scores(shown):
        say(line, "dim")
    if hidden := len(everything) - len(shown):
        say(f"{plural(hidden, 'generated helper')} not shown; --helpers shows them.", "dim")


#: Of tables with more files only the log is looked at: status is run often.
_FILES = 2_000


def _condition(where: Workspace) -> tuple[dict[str, str], dict[str, int], str]:
    """Tables whose log or files are missing, parts that are being made again, and why nobody can tell what is there."""
    from partwise.damaged import damaged

    if not where.has_ledger():
        return {}, {}, ""
    with ledger_of(where, time.time(), looking=True) as ledger:
        again = {name: parts.count for name, parts in ledger.rebuilding().items()}
        try:
            found = damaged(ledger, where.warehouse, most=_FILES)
        except StoreProblem as why:
            return {}, again, str(why)
    return {item.table: item.found.text() for item in found}, again, ""


def _row(row: TableStatus, zone: str) -> tuple[str, ...]:
    length, kind = row.table.length, row.table.kind
    counts = (row.missing, row.stale, row.deferred, row.blocked, row.failed, row.late, row.quarantined)
    return (
        row.table.name,
        "helper" if row.table.helper_of else kind,
        f"{row.parts:,}",
        part_or_none(row.first, length, kind) or "",
        part_or_none(row.last, length, kind) or "",
        *(number(count) for count in counts),
        moment_text(row.last_updated, zone, short=True),
    )


def _table_json(row: TableStatus) -> dict[str, object]:
    length, kind = row.table.length, row.table.kind
    return {
        "table": row.table.name,
        "kind": kind,
        "part_length": None if kind == "dimension" else length,
        "parts": row.parts,
        "first": part_or_none(row.first, length, kind),
        "last": part_or_none(row.last, length, kind),
        "missing": row.missing,
        "stale": row.stale,
        "blocked": row.blocked,
        "manual": row.manual,
        "deferred": row.deferred,
        "refresh": _refresh_json(row),
        "failed": row.failed,
        "held": row.held,
        "late": row.late,
        "quarantined": row.quarantined,
        "last_updated": moment_json(row.last_updated),
        "helper_of": row.table.helper_of,
        "start": part_or_none(row.start, length, kind),
        "could_start": part_or_none(row.could_start, length, kind),
        "could_go_on": part_or_none(row.could_go_on, length, kind),
        "frozen_hits": row.frozen_hits,
        "expired": row.expired,
        "mixed": row.mixed,
        "repairs": asdict(score(row.repairs)) if row.repairs else None,
    }


def _refresh_json(row: TableStatus) -> dict[str, object] | None:
    late, known = row.refresh, row.refreshed
    if late is None and known is None:
        return None
    return {
        "fires_at": None if late is None else moment_json(late.fires_at),
        "waits_for": [] if late is None else list(late.waits_for),
        "rows": 0 if known is None else sum(known.rows.values()),
        "last": None if known is None else moment_json(known.fired_at),
        "why": None if known is None else known.why or None,
    }


def _scores(rows: list[TableStatus]) -> list[str]:
    """How choices of a repair turned out."""
    lines = []
    for row in rows:
        if not row.repairs:
            continue
        found = score(row.repairs)
        line = f"{row.table.name}: {plural(found.repairs, 'repair')} of large parts, {found.close} foreseen within a factor of two"
        if found.judged:
            line += f"; of {found.judged} where other repairs were measured, {found.right} took least"
        lines.append(f"{line}.")
    return lines


def _notes(rows: list[TableStatus]) -> list[str]:
    notes = []
    for row in rows:
        name, length = row.table.name, row.table.length
        if row.could_start is not None and row.start is not None and row.table.helper_of is None:
            first, start = part_text(row.could_start, length), part_text(row.start, length)
            notes.append(
                f"{name} starts at {start}, but older parts of what it reads have appeared since: "
                f"`partwise backfill {name} {first}..{start}` lets it start at {first}."
            )
        if row.could_go_on is not None and row.start is not None:
            notes.append(too_early(row.table, row.start, row.could_go_on))
        if row.frozen_hits:
            notes.append(
                f"{name}: late data would have changed {plural(row.frozen_hits, 'part')} that expired already."
            )
        if row.quarantined:
            notes.append(
                f"{name}: {plural(row.quarantined, 'row')} quarantined, not lost: `partwise quarantine {name}` shows why."
            )
        if row.held:
            notes.append(
                f"{name}: {plural(row.held, 'part')} failed and is read at the earlier revision; see `partwise plan`."
                if row.held == 1
                else f"{name}: {plural(row.held, 'part')} failed and are read at their earlier revisions; "
                "see `partwise plan`."
            )
        if row.mixed:
            notes.append(
                f"{name}: {plural(row.mixed, 'part')} mixed: computed while inputs were not up to date; "
                f"`partwise audit {name}` lists what was read."
            )
        if row.manual:
            notes.append(
                f"{name}: {plural(row.manual, 'stale part')} left to you (repair: manual); see `partwise plan`."
            )
    return notes


def _next_json(snapshot: Snapshot, found: Table) -> dict[str, Any] | None:
    return next_json(snapshot.graph, next_of(snapshot, found.name)) if found.kind == "view" else None


def _path(where: Workspace, name: str) -> str | None:
    """The folder that readers see now: a view that gets other columns moves to a new one, once all parts are there."""
    from partwise.ledger.read.as_of import readable
    from partwise.tables import table_path

    if not where.has_ledger():
        return None
    with ledger_of(where, time.time(), looking=True) as ledger:
        found = readable(ledger.database, [name], [name]).get(name)
    return None if found is None else table_path(where.warehouse, name, found.version.generation)


def _page_json(snapshot: Snapshot, found: Table, page: Page, path: str | None) -> None:
    rows = [
        {
            "part": part_or_none(row.part, found.length, found.kind),
            "state": row.state,
            "revision": row.revision,
            "rows": row.rows,
            "last_updated": moment_json(row.last_updated),
            "mixed": row.mixed,
        }
        for row in page.parts
    ]
    following = _next_json(snapshot, found)
    estimates = coverage_json(coverage_of(snapshot, found.name))
    as_json(
        {
            "table": found.name,
            "path": path,
            "parts": rows,
            "more": page.more,
            "next": following,
            "estimates": estimates,
        }
    )


def _page(snapshot: Snapshot, found: Table, page: Page, zone: str) -> None:
    from partwise.plan.next import next_text

    length = found.length
    kind = f"helper of {' and '.join(found.serves)}" if found.helper_of else found.kind
    parts = "" if found.kind == "dimension" else f", parts of {duration_text(length)}"
    parts = f", rolling: its newest part of {duration_text(length)} alone" if found.rolling else parts
    say(f"{found.name}: {kind}{parts}", "bold")
    rows: list[tuple[str, ...]] = []
    newer: int | None = None
    for row in page.parts:
        if newer is not None and newer - row.part > 1:
            rows.append((range_text(Range(row.part + 1, newer - 1), length), "missing", "", "", ""))
        newer = row.part
        rows.append(
            (
                part_or_none(row.part, length, found.kind) or "all of it",
                f"{row.state}, mixed" if row.mixed else row.state,
                "" if row.revision is None else str(row.revision),
                "" if row.rows is None else f"{row.rows:,}",
                moment_text(row.last_updated, zone),
            )
        )
    if rows:
        table(("part", "state", "revision", "rows", "last updated"), rows)
    else:
        say("No parts yet.")
    if page.more and newer is not None:
        say(f"Older ones: --limit N, or --range A..{part_text(newer - 1, length)}", "dim")
    if (known := coverage_of(snapshot, found.name)) is not None:
        say(f"Fresh answers: {known.text()} covered", "yellow" if known.is_low else "")
    if found.kind == "view":
        following = next_of(snapshot, found.name)
        say(f"Next: {next_text(snapshot.graph, following)}")
        for need in following.needs:
            if need.needed and snapshot.graph[need.table].kind != "dimension":
                say(f"  {need.table} {bits(need)}", "dim")
