"""Recomputes parts of a view and exactly what they affect: shows the plan, asks, then does it."""

from __future__ import annotations

import json as jsons
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from partwise.cli.options import JsonOption, WorkspaceOption, complete_views
from partwise.cli.stop import Stop, wrong_use
from partwise.parts import FOREVER, Parts, Range, range_text
from partwise.plan.reach import fed

if TYPE_CHECKING:
    from partwise.backfill import Asked
    from partwise.cli.backfilling import Preview
    from partwise.definitions import Definitions
    from partwise.ledger.as_defined import Snapshot
    from partwise.ledger.backfills import Backfill
    from partwise.ledger.ledger import Ledger
    from partwise.tables import Graph, Table
    from spark_jobs.engine import Engine


def command(
    name: Annotated[str | None, typer.Argument(metavar="TABLE", autocompletion=complete_views)] = None,
    parts: Annotated[
        str | None, typer.Argument(metavar="RANGE", help="A..B (both included), one part, or A.. up to the newest.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Shows the plan and does nothing.")] = False,
    upstream: Annotated[
        bool, typer.Option("--upstream", help="Recomputes the parts of other views that these are computed from, too.")
    ] = False,
    no_downstream: Annotated[
        bool,
        typer.Option("--no-downstream", help="Leaves what reads these parts for later: the next run computes it."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Does not ask.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Goes on with one that was interrupted.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Waits for another one that works on the same parts.")] = False,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Recomputes parts of a view, also fresh ones, and whatever their changes affect. Shows the plan and asks first.

    What is stale upstream and needed is computed before. A range before the start of the view lets it start earlier.
    With --json: one object with the plan, one a step, one with the report.

    \b
    Example:
      partwise backfill total_loss 2026-10-03T10:05..2026-10-03T10:09
      partwise backfill loss_by_region 2026-10-03T10:05 --dry-run
      partwise backfill --resume
    """
    from partwise.cli.opening import definitions_of, ledger_of, workspace_of
    from partwise.ledger.as_defined import as_defined

    if not resume and (name is None or parts is None):
        raise wrong_use("Which parts? For example: partwise backfill TABLE 2026-10-03T10:05..2026-10-03T10:09.")
    where = workspace_of(workspace)
    definitions = definitions_of(where)
    with ledger_of(where, time.time()) as ledger:
        where.take_over(ledger, definitions, time.time())
        if resume:
            found = _interrupted(ledger, definitions, name)
        else:
            assert name is not None
            assert parts is not None
            with as_defined(ledger, ledger.graph(), time.time()) as snapshot:
                asked = _asked(snapshot, definitions, name, parts, upstream)
            planned = _plan(ledger, asked, not no_downstream, json)
            if dry_run:
                return
            _confirm(yes)
            if where.settings.airflow.url:
                from partwise.cli.through_airflow import backfill

                backfill(where.settings.airflow, asked.table, parts, upstream, not no_downstream, json)
                return
            found = None
    from partwise.ledger.backfills import go_on
    from spark_jobs.commands._opening import engine_of

    with engine_of(workspace) as (engine, _):
        if found is None:
            _carry_out(engine, _begin(engine, asked, not no_downstream, wait), json, planned.seconds)
            return
        with engine.ledger.database.writing(engine.now()) as w:
            found = go_on(w, engine.ledger.graph(), found, engine.holder)
        _carry_out(engine, found, json, None)


def _asked(snapshot: Snapshot, definitions: Definitions, name: str, text: str, upstream: bool) -> Asked:
    from partwise.backfill import BadRange, ask, parse
    from partwise.cli.opening import table_of
    from partwise.ledger.backfills import world_of

    world = world_of(snapshot)
    graph = snapshot.graph
    if name.lower() not in {known.lower() for known in graph.tables}:
        table_of(graph, definitions, name, "view")  # says what was meant
    view = table_of(graph, definitions, name)
    there = world.existing(view.name, -FOREVER, FOREVER)
    try:
        span = parse(text, view.length, *((there.first, there.last) if there else (None, None)))
        if view.kind != "view":
            raise wrong_use(_not_a_view(graph, view, span))
        return ask(world, view.name, span, upstream)
    except BadRange as why:
        raise wrong_use(str(why)) from None


def _not_a_view(graph: Graph, table: Table, span: Range) -> str:
    """Sources and dimensions are loaded, not computed; what reads them can be recomputed."""
    said = (
        f"{table.name} is a {table.kind}: it is loaded, not computed. `partwise ingest {table.name}` loads what is new."
    )
    for reader in graph.consumers.get(table.name, ()):
        view = graph[reader]
        if view.helper_of is not None:
            continue
        fit = (
            "RANGE"
            if table.kind == "dimension"
            else range_text(fed(view, -FOREVER, table.name, Parts.of(span)).ranges[0], view.length)
        )
        return f"{said} What is computed from it: `partwise backfill {reader} {fit}`."
    return said


def _plan(ledger: Ledger, asked: Asked, downstream: bool, json: bool) -> Preview:
    from partwise.cli import backfilling

    found = backfilling.preview(ledger, asked, downstream, time.time())
    if json:
        print(jsons.dumps({"plan": backfilling.as_json(found)}))
    else:
        backfilling.show(found)
    return found


def _confirm(yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise wrong_use("Nobody can be asked here: --yes goes ahead, --dry-run only shows the plan.")
    if not typer.confirm("Go ahead?"):
        raise typer.Exit(1)


def _begin(engine: Engine, asked: Asked, downstream: bool, wait: bool) -> Backfill:
    from partwise.ledger.backfills import Overlaps, begin
    from partwise.ledger.holding import is_dead

    while True:
        graph = engine.ledger.graph()
        try:
            with engine.ledger.database.writing(engine.now()) as w:
                return begin(w, graph, asked, downstream, engine.holder, is_dead)
        except Overlaps as why:
            other = f"{why.other.text(graph)} ({why.other.holder})"
            if not wait:
                raise Stop(f"{other} is at work on some of these parts; --wait waits for it.") from None
            print(f"partwise: waiting for {other}", file=sys.stderr)
            time.sleep(2)


def _interrupted(ledger: Ledger, definitions: Definitions, name: str | None) -> Backfill:
    from partwise.cli.opening import table_of
    from partwise.ledger.backfills import unfinished
    from partwise.ledger.holding import is_dead

    graph, now = ledger.graph(), time.time()
    wanted = None if name is None else table_of(graph, definitions, name, "view").name
    with ledger.database.reading() as r:
        found = [b for b in unfinished(r) if wanted in (None, b.table)]
    alive = next((b for b in found if b.alive(now, is_dead)), None)
    left = [b for b in found if not b.alive(now, is_dead)]
    if not left:
        of = "" if wanted is None else f" of {wanted}"
        running = f" {alive.text(graph)} is running ({alive.holder})." if alive else ""
        raise Stop(f"There is no interrupted backfill{of} to go on with.{running}")
    return left[-1]


def _carry_out(engine: Engine, found: Backfill, json: bool, expected: float | None) -> None:
    from partwise.cli import backfilling
    from partwise.cli.show import plural, say
    from partwise.ledger.backfills import still_asked
    from spark_jobs.backfill import carry_out, progress
    from spark_jobs.commands._opening import stopping
    from spark_jobs.commands.run import as_json, show

    graph = engine.ledger.graph()
    began, failed = time.monotonic(), 0
    before = sum(done.recomputed.count for done in progress(engine, found).values())
    with stopping() as stop:
        _bar(engine, found, before, 0.0, expected)
        for outcome in carry_out(engine, found, stop):
            if outcome.report is None:
                continue
            failed += len(outcome.report.failed)
            _clear_bar()
            print(jsons.dumps(as_json(engine, outcome.report)), flush=True) if json else show(engine, outcome.report)
            _bar(engine, found, before, time.monotonic() - began, expected)
    _clear_bar()
    done = progress(engine, found)
    left, others = still_asked(found, done), sum(each.left.count for each in done.values())
    if json:
        print(jsons.dumps({"report": backfilling.report_json(graph, done)}))
    else:
        backfilling.report(graph, done)
        if stop.is_set() or left:
            say(f"Not finished: `partwise backfill {found.table} --resume` goes on with it.", "yellow")
        elif others:
            say(f"{plural(others, 'part')} wait for other stale parts; the next run computes them.", "yellow")
    if stop.is_set():
        raise typer.Exit(130)
    if failed or left:
        raise typer.Exit(1)


def _bar(engine: Engine, found: Backfill, before: int, elapsed: float, expected: float | None) -> None:
    if not sys.stderr.isatty():
        return
    from partwise.backfill import bar
    from spark_jobs.backfill import progress

    done = progress(engine, found).values()
    count = sum(each.recomputed.count for each in done)
    unchanged, left = sum(each.unchanged.count for each in done), sum(each.left.count for each in done)
    rate = elapsed * count / (count - before) if count > before else elapsed
    print(f"\r{bar(count, unchanged, left, rate, expected)}".ljust(100), end="", file=sys.stderr, flush=True)


def _clear_bar() -> None:
    if sys.stderr.isatty():
        print("\r" + " " * 100 + "\r", end="", file=sys.stderr, flush=True)
