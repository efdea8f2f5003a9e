"""Load what has arrived, then compute everything that is ready, until nothing is."""

from __future__ import annotations

import json as jsons
import re
import sys
import threading
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.cli.open_workspace import errors_of, problem_json, tell_problems
from partwise.cli.options import JsonOption, WorkspaceOption, complete_views
from partwise.cli.stop import wrong_use
from partwise.cli.views.running import Live
from partwise.cli.views.show import plural, say, spans_text
from partwise.parts import BadTime, Parts, part_text, range_text, seconds
from partwise.storage.errors import StoreProblem

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours"}

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from partwise.compile.program import Program
    from partwise.ledger.ledger import Ledger
    from partwise.workspace import Workspace
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
            help="Publish a part (or a range A..B) that failed its checks, as it is; the ledger records who did.",
        ),
    ] = None,
    watch: Annotated[
        str | None,
        typer.Option("--watch", metavar="LENGTH", help="Looks again and again, with this pause, until it is stopped."),
    ] = None,
) -> None:
    """Load new files, then compute everything that is ready, until nothing is.

    With views: only these and what they are computed from. With --json: one object a step, and on standard error
    one for each problem of a definition and each source that refused files, quarantined rows or has a message. Exit
    code 1: something failed, was refused or was given up for now, or a definition has a problem; what is sound runs.

    \b
    Example:
      partwise run
      partwise run total_loss --json
      partwise run --accept total_loss 2026-10-03T10:05
      partwise run --watch 30s
    """
    from spark_jobs.commands._opening import stopping

    pause = _seconds(watch)
    with stopping() as stop:
        session: SparkSession | None = None
        told: list[str] = []
        while True:
            quiet = pause is not None
            try:
                bad, session = _once(workspace, views, json, now, no_ingest, accept, stop, session, quiet, told)
            except StoreProblem as why:
                if not quiet:
                    raise
                say(str(why), "red")  # who watches goes on when the store answers again, or keys are renewed
            if pause is None or stop.wait(pause):
                break
            accept = None
        if pause is not None:
            return  # to be stopped is how watching ends
        if stop.is_set():
            raise typer.Exit(130)
        if bad:
            raise typer.Exit(1)


def _seconds(watch: str | None) -> float | None:
    if watch is None:
        return None
    short = re.fullmatch(r"(\d+)\s*([smh])", watch.strip())
    try:
        return float(seconds(f"{short[1]} {_UNITS[short[2]]}" if short else watch))
    except BadTime as why:
        raise wrong_use(f"--watch: {why}.") from None


def _once(
    workspace: str | None,
    views: list[str] | None,
    json: bool,
    now: bool,
    no_ingest: bool,
    accept: tuple[str, str] | None,
    stop: threading.Event,
    session: SparkSession | None,
    quiet: bool,
    told: list[str],
) -> tuple[int, SparkSession | None]:
    """Load and compute until nothing is left. Returns how much went wrong, and the session if there is one.

    Definitions are read again each time, so that who watches sees them change; the session stays. Their problems are
    told when they are others than those `told` before.
    """
    from spark_jobs.commands._opening import make_engine, opened
    from spark_jobs.in_process import nothing_to_do, wanted

    with opened(workspace, views, "view", quiet=True) as (ledger, definitions, where):
        only = wanted(definitions, views)
        wrong = _tell_problems(definitions, json, told)
        # Views that are asked for by name are sound, and so is all that they read.
        failed = _tell_damage(ledger, where, only, json) + (wrong if only is None else 0)
        if accept is None and not now and nothing_to_do(ledger, definitions, where, only, no_ingest):
            if not json and not quiet:
                _conclude(ledger, only, 0, 0, wrong)
            return failed, session
        from spark_jobs.run import run

        engine = make_engine(ledger, definitions, where, session, alone=quiet)
        live = Live(lambda: engine.definitions.graph())
        engine.progress, engine.working = live.draw, live.working
        engine.loading, engine.loading_since = live.load, live.loading_since
        if accept is not None:
            _accept(engine, *accept, json)
        steps = given_up = refused = 0
        if not no_ingest:
            bad, refused = _ingest(engine, where, only, json, stop, live)
            failed += bad
        engine.review_states()
        if now:
            engine.ledger.refresh_now(only, engine.now())
        for outcome in run(engine, only, stop):
            live.clear()
            given_up += tell_trouble(outcome, json)
            if outcome.report is None:
                continue
            steps += 1
            failed += len(outcome.report.failed)
            # Whoever reads this from a pipe wants each step when it is done, not all of them at the end.
            print(jsons.dumps(as_json(outcome.report)), flush=True) if json else show(outcome.report)
        if not json and not quiet:
            _conclude(ledger, only, steps, given_up, wrong, refused)
        return failed + given_up, engine.spark


def _tell_problems(definitions: Program, json: bool, told: list[str]) -> int:
    """How many errors definitions have. What is sound runs, but nobody should take the rest for up to date."""
    errors = errors_of(definitions)
    if (texts := [str(problem) for problem in errors]) != told:
        told[:] = texts
        if json:
            for problem in errors:
                print(jsons.dumps({"problem": problem_json(problem)}), file=sys.stderr, flush=True)
        else:
            tell_problems(definitions)
    return len(errors)


def _conclude(
    ledger: Ledger, only: Collection[str] | None, steps: int, given_up: int, wrong: int, refused: int = 0
) -> None:
    """How much was done; what failed, now or before, is still there."""
    from partwise.ledger.read.reports import failed_counts

    with ledger.database.reading() as r:
        left = {name: n for name, n in failed_counts(r).items() if only is None or name in only}
    nothing = "Nothing done." if given_up else "Nothing to do now." if left else "Nothing to do."
    but = f" Definitions have {plural(wrong, 'problem')}, see above." if wrong else ""
    but += f" Not loaded, see above: {plural(refused, 'file')}." if refused else ""
    done = f"{plural(steps, 'step')} done." if steps else nothing
    say(done + but, "red" if but else "")
    for name, count in left.items():
        say(f"{name}: {plural(count, 'part')} failed; `partwise status {name}` and `partwise why` show more.", "red")


def _tell_damage(ledger: Ledger, where: Workspace, only: Collection[str] | None, json: bool) -> int:
    """Tables whose log or files are gone: no run mends them by itself, so the command that does is named."""
    from partwise.damaged import damaged

    found = damaged(ledger, where.warehouse, only)
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


def _ingest(engine: Engine, where: Any, only: Any, json: bool, stop: threading.Event, live: Live) -> tuple[int, int]:
    """How many files were refused, and parts and files held back since; and how many of these are files."""
    from spark_jobs.commands.ingest import show as show_loaded
    from spark_jobs.commands.ingest import to_json
    from spark_jobs.ingest.api import each
    from spark_jobs.run import PATIENCE

    fed = [n for n in engine.definitions.usable if engine.definitions.graph()[n].kind != "view"]
    bad = files = 0
    for loaded in each(
        engine, where, [name for name in fed if only is None or name in only], stop=stop.is_set, patience=PATIENCE
    ):
        live.clear()
        bad += len(loaded.failed) + len(loaded.held) + len(loaded.refused)
        files += len(loaded.held) + sum(bool(file) for file, _ in loaded.refused)
        matters = loaded.refused or loaded.quarantined or loaded.notes or loaded.failed or loaded.held or loaded.warned
        if json and matters:
            # Standard output has steps and nothing else.
            print(jsons.dumps(to_json(engine, loaded)), file=sys.stderr, flush=True)
        elif not json and (matters or loaded.files or loaded.closed or loaded.changed):
            show_loaded(engine, loaded)
    return bad, files


def tell_trouble(outcome: Outcome, json: bool) -> int:
    """Trouble that is not the query's: 1 if its table is given up for now, 0 if it is tried again or there is none.

    That somebody else writes a table is ordinary, and reported only if that goes on for too long.
    """
    from spark_jobs.retry import sentence_of

    if outcome.trouble is None and not outcome.given_up:
        return 0
    table = outcome.step.table
    message = f"{table}: {sentence_of(outcome.trouble)}" if outcome.trouble else str(outcome.busy)
    if json:
        found = {"table": table, "trouble": message.removeprefix(f"{table}: "), "given_up": outcome.given_up}
        print(jsons.dumps(found), file=sys.stderr, flush=True)
    elif outcome.given_up:
        say(f"  {message}; gave up for now, the next run retries", "red")
    else:
        say(f"  {message}; retrying shortly", "yellow")
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
        "repair": None if report.repair is None else asdict(report.repair),
        "kept": [part_text(p, length) for p in report.kept],
    }


def _repaired(report: Report) -> str:
    """Only what is out of the ordinary."""
    kept = "; computed with what was kept" if report.kept else ""
    said = "" if report.repair is None else report.repair.text()
    return f"{kept}; {said}" if said else kept


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
            f"{report.seconds:.1f} s: {report.reason}{_repaired(report)}"
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
