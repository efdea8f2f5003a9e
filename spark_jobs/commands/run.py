"""Loads what has arrived, then computes everything that is ready, until nothing is."""

from __future__ import annotations

import json as jsons
import sys
import threading
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.cli.options import JsonOption, WorkspaceOption, complete_views
from partwise.cli.views.show import plural, say, spans_text
from partwise.parts import Parts, part_text, range_text

if TYPE_CHECKING:
    from spark_jobs.engine import Engine
    from spark_jobs.run import Outcome
    from spark_jobs.step.run_step import Report


def command(
    views: Annotated[list[str] | None, typer.Argument(metavar="[VIEW]...", autocompletion=complete_views)] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
    now: Annotated[
        bool, typer.Option("--now", help="Refreshes deferred parts too, whatever their `refresh` policies say.")
    ] = False,
    no_ingest: Annotated[bool, typer.Option("--no-ingest", help="Computes only, loads nothing.")] = False,
    accept: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--accept",
            metavar="TABLE PART",
            help="Publishes a part (or a range A..B) that failed its checks, as it is; who did it is recorded.",
        ),
    ] = None,
) -> None:
    """Loads new files, then computes everything that is ready, until nothing is.

    With views: only these and what they are computed from. With --json: one object a step, and on standard error
    one for each source that refused files, set rows aside or has something to tell. Exit code 1: something failed, was
    refused, or was given up for now.

    \b
    Example:
      partwise run
      partwise run total_loss --json
      partwise run --accept total_loss 2026-10-03T10:05
    """
    from spark_jobs.commands._opening import engine_of, names_of, stopping

    with engine_of(workspace, views, "view") as (engine, where), stopping() as stop:
        from spark_jobs.run import run

        wanted = names_of(engine, views, "view")
        if accept is not None:
            _accept(engine, *accept, json)
        only = None if wanted is None else engine.definitions.graph().upstream(wanted)
        steps = given_up = 0
        failed = _tell_damage(engine, only, json)
        if not no_ingest:
            failed += _ingest(engine, where, only, json, stop)
        if now:
            engine.ledger.refresh_now(only, engine.now())
        for outcome in run(engine, only, stop):
            given_up += tell_trouble(outcome, json)
            if outcome.report is None:
                continue
            steps += 1
            failed += len(outcome.report.failed)
            # Whoever reads this from a pipe wants each step when it is done, not all of them at the end.
            print(jsons.dumps(as_json(outcome.report)), flush=True) if json else show(outcome.report)
        if not json:
            _conclude(engine, only, steps, given_up)
        if stop.is_set():
            raise typer.Exit(130)
        if failed or given_up:
            raise typer.Exit(1)


def _conclude(engine: Engine, only: Collection[str] | None, steps: int, given_up: int) -> None:
    """How much was done; what failed, now or before, is still there."""
    from partwise.ledger.read.reports import failed_counts

    with engine.ledger.database.reading() as r:
        left = {name: n for name, n in failed_counts(r).items() if only is None or name in only}
    nothing = "Nothing done." if given_up else "Nothing to do now." if left else "Nothing to do."
    say(f"{plural(steps, 'step')} done." if steps else nothing)
    for name, count in left.items():
        say(f"{name}: {plural(count, 'part')} failed; `partwise status {name}` and `partwise why` tell more.", "red")


def _tell_damage(engine: Engine, only: Collection[str] | None, json: bool) -> int:
    """Tables whose log or files are gone: no run mends them by itself, so the command that does is named."""
    from partwise.damaged import damaged

    found = damaged(engine.ledger, engine.warehouse, only)
    for item in found:
        if json:
            print(jsons.dumps({"table": item.table, "damaged": item.found.text()}), file=sys.stderr, flush=True)
        else:
            say(f"  {item.text()}", "red")
    return len(found)


def _accept(engine: Engine, name: str, part: str, json: bool) -> None:
    from partwise.cli.accept import accept

    table, parts, who = accept(engine.ledger, engine.definitions, name, part)
    if not json:
        spans = "" if table.kind == "dimension" else f"[{', '.join(range_text(s, table.length) for s in parts.ranges)}]"
        say(f"  {table.name}{spans} is accepted by {who}, as it failed its checks.", "yellow")


def _ingest(engine: Engine, where: Any, only: Any, json: bool, stop: threading.Event) -> int:
    """How many files were refused, and how many parts and files are held back since."""
    from spark_jobs.commands.ingest import show as show_loaded
    from spark_jobs.commands.ingest import to_json
    from spark_jobs.ingest.api import each
    from spark_jobs.run import PATIENCE

    fed = [n for n in engine.definitions.usable if engine.definitions.graph()[n].kind != "view"]
    bad = 0
    for loaded in each(
        engine, where, [name for name in fed if only is None or name in only], stop=stop.is_set, patience=PATIENCE
    ):
        bad += len(loaded.failed) + len(loaded.held) + len(loaded.refused)
        matters = loaded.refused or loaded.quarantined or loaded.notes or loaded.failed or loaded.held or loaded.warned
        if json and matters:
            # Standard output has steps and nothing else.
            print(jsons.dumps(to_json(engine, loaded)), file=sys.stderr, flush=True)
        elif not json and (matters or loaded.files or loaded.closed or loaded.changed):
            show_loaded(engine, loaded)
    return bad


def tell_trouble(outcome: Outcome, json: bool) -> int:
    """Trouble that is not the query's: 1 if its table is given up for now, 0 if it is tried again or there is none.

    That somebody else writes a table is ordinary, and told only if that goes on for too long.
    """
    from spark_jobs.retry import told

    if outcome.trouble is None and not outcome.given_up:
        return 0
    table = outcome.step.table
    message = f"{table}: {told(outcome.trouble)}" if outcome.trouble else str(outcome.busy)
    if json:
        found = {"table": table, "trouble": message.removeprefix(f"{table}: "), "given_up": outcome.given_up}
        print(jsons.dumps(found), file=sys.stderr, flush=True)
    elif outcome.given_up:
        say(f"  {message}; given up for now, the next run tries again", "red")
    else:
        say(f"  {message}; tried again in a moment", "yellow")
    return int(outcome.given_up)


def as_json(report: Report) -> dict[str, Any]:
    length = report.length
    return {
        "table": report.table,
        "parts": [part_text(p, length) for p in report.parts],
        "reason": report.reason,
        "rows": report.rows,
        "changed": [part_text(p, length) for p in report.changed],
        "seconds": round(report.seconds, 3),
        "failed": {part_text(p, length): message for p, message in report.failed.items()},
        "warned": {part_text(p, length): message for p, message in report.warned.items()},
    }


def show(report: Report) -> None:
    """A line a step: what, how much of it changed, why."""
    length = report.length
    if report.parts:
        if report.changed.count == report.parts.count:
            what = plural(report.parts.count, "part")
        else:
            what = f"{plural(report.parts.count, 'part')}, {report.changed.count} changed"
        say(
            f"  {report.table}[{spans_text(report.parts, length)}]  {what}, {plural(report.rows, 'row')}, "
            f"{report.seconds:.1f} s: {report.reason}"
        )
    for message, parts in _alike(report.warned):
        say(f"  {report.table}[{spans_text(parts, length)}]  warning: {message}", "yellow")
    for message, parts in _alike(report.failed):
        say(f"  {report.table}[{spans_text(parts, length)}]  failed: {message}", "red")


def _alike(messages: Mapping[int, str]) -> list[tuple[str, Parts]]:
    """Parts by what is said of them: a query that is wrong is so for every part."""
    found: dict[str, list[int]] = {}
    for part, message in messages.items():
        found.setdefault(message, []).append(part)
    return [(message, Parts.single(*parts)) for message, parts in found.items()]
