"""Recompute parts of a view and exactly what they affect, after showing the plan."""

from __future__ import annotations

import json as jsons
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from partwise.cli.options import JsonOption, WorkspaceOption, ask_first, complete_views
from partwise.cli.stop import Stop, wrong_use
from partwise.parts import FOREVER, Parts, Range, range_text
from partwise.plan.reach import fed

if TYPE_CHECKING:
    from partwise.backfill import Asked
    from partwise.cli.views.backfill_plan import BackfillPlan
    from partwise.compile.program import Program
    from partwise.ledger.ledger import Ledger
    from partwise.ledger.read.snapshot import Snapshot
    from partwise.ledger.records.backfills import Backfill
    from partwise.tables import Graph, Table
    from spark_jobs.engine import Engine


def command(
    name: Annotated[str | None, typer.Argument(metavar="TABLE", autocompletion=complete_views)] = None,
    parts: Annotated[
        str | None,
        typer.Argument(
            metavar="RANGE", help="A..B (both included), one part, A.. up to the newest, or .. for everything."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and do nothing.")] = False,
    upstream: Annotated[
        bool, typer.Option("--upstream", help="Recompute the parts of other views that these are computed from, too.")
    ] = False,
    no_downstream: Annotated[
        bool,
        typer.Option("--no-downstream", help="Leave what reads these parts to the next run."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted backfill.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for another backfill of the same parts.")] = False,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Recompute parts of a view, also fresh ones, and whatever their changes affect. Shows the plan and asks first.

    Stale parts upstream that it needs are computed first. A range before the start of the view lets it start earlier.
    With --json: one object with the plan, one a step, one with the report.

    \b
    Example:
      partwise backfill total_loss 2026-10-03T10:05..2026-10-03T10:09
      partwise backfill loss_by_region 2026-10-03T10:05 --dry-run
      partwise backfill --resume
    """
    from partwise.cli.open_workspace import definitions_of, ledger_of, workspace_of
    from partwise.ledger.read.snapshot import as_defined
    from partwise.ledger.records.backfills import what_is_left

    if not resume and (name is None or parts is None):
        raise wrong_use("Which parts? For example: partwise backfill TABLE 2026-10-03T10:05..2026-10-03T10:09.")
    if resume and (parts is not None or upstream or no_downstream):
        raise wrong_use("--resume continues the original request; it takes no RANGE, --upstream or --no-downstream.")
    where = workspace_of(workspace)
    definitions = definitions_of(where)
    with ledger_of(where, time.time()) as ledger:
        definitions = where.take_over(ledger, definitions, time.time())
        found = _interrupted(ledger, definitions, name) if resume else None
        if found is not None:
            with ledger.database.reading() as r:
                asked, downstream = what_is_left(r, ledger.graph(), found), found.downstream
        else:
            assert name is not None
            assert parts is not None
            with as_defined(ledger, ledger.graph(), time.time()) as snapshot:
                asked, downstream = _asked(snapshot, definitions, name, parts, upstream), not no_downstream
        planned = _plan(ledger, asked, downstream, json, where.settings.chunk_parts)
        if dry_run:
            return
        _alone(ledger, asked.scope if found is None else found.asked, wait)
        ask_first(yes)
        if where.settings.airflow.url:
            from partwise.airflow_api import Form
            from partwise.cli.through_airflow import backfill

            form = Form(asked.table, parts or "", upstream, downstream, None if found is None else found.number)
            backfill(where.settings.airflow, ledger, form, json, planned.seconds)
            return
    from spark_jobs.commands._opening import engine_of

    with engine_of(workspace) as (engine, _):
        begun = _begin(engine, asked, downstream, wait) if found is None else _go_on(engine, found)
        _carry_out(engine, begun, json, planned.seconds)


def _asked(snapshot: Snapshot, definitions: Program, name: str, text: str, upstream: bool) -> Asked:
    from partwise.backfill import BadRange, ask, parse
    from partwise.cli.open_workspace import table_of
    from partwise.ledger.records.backfills import world_of

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
        raise wrong_use(str(why) if view.kind == "view" else _not_a_view(graph, view, None)) from None


def _not_a_view(graph: Graph, table: Table, span: Range | None) -> str:
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
            if table.kind == "dimension" or span is None
            else range_text(fed(view, -FOREVER, table.name, Parts.of(span)).ranges[0], view.length)
        )
        return f"{said} What is computed from it: `partwise backfill {reader} {fit}`."
    return said


def _plan(ledger: Ledger, asked: Asked, downstream: bool, json: bool, at_once: int) -> BackfillPlan:
    from partwise.cli.views import backfill_plan

    found = backfill_plan.preview(ledger, asked, downstream, time.time(), at_once)
    if json:
        print(jsons.dumps({"plan": backfill_plan.as_json(found)}), flush=True)
    else:
        backfill_plan.show(found)
    return found


def _alone(ledger: Ledger, scope: Mapping[str, Parts], wait: bool) -> None:
    """Nobody else works on these parts, before anyone is asked or anything is started. With `wait` only then."""
    from partwise.ledger.records.backfills import overlapping
    from partwise.ledger.write.lease_holding import is_dead

    told: int | None = None
    while True:
        with ledger.database.reading() as r:
            other = overlapping(r, scope, time.time(), is_dead)
        if other is None:
            return
        told = _told(ledger.graph(), other, wait, told)
        time.sleep(2)


def _told(graph: Graph, other: Backfill, wait: bool, told: int | None) -> int:
    """Who is in the way, told once. Returns its number; without `wait` that is the end."""
    name = f"{other.text(graph)} ({other.holder})"
    if not wait:
        raise Stop(f"{name} is working on some of these parts; use --wait to wait for it.") from None
    if other.number != told:
        print(f"partwise: waiting for {name}", file=sys.stderr)
    return other.number


def _begin(engine: Engine, asked: Asked, downstream: bool, wait: bool) -> Backfill:
    from partwise.ledger.records.backfills import Overlaps, begin
    from partwise.ledger.write.lease_holding import is_dead

    told: int | None = None
    while True:
        graph = engine.ledger.graph()
        try:
            with engine.ledger.database.writing(engine.now()) as w:
                return begin(w, graph, asked, downstream, engine.holder, is_dead)
        except Overlaps as why:
            told = _told(graph, why.other, wait, told)
            time.sleep(2)


def _go_on(engine: Engine, found: Backfill) -> Backfill:
    from partwise.ledger.records.backfills import BackfillOver, Overlaps, go_on
    from partwise.ledger.write.lease_holding import is_dead

    graph = engine.ledger.graph()
    try:
        with engine.ledger.database.writing(engine.now()) as w:
            return go_on(w, graph, found.number, engine.holder, is_dead)
    except Overlaps as why:
        raise Stop(f"{why.other.text(graph)} ({why.other.holder}) is working on these parts now.") from None
    except BackfillOver:
        raise Stop(f"{found.text(graph)} has finished meanwhile.") from None


def _interrupted(ledger: Ledger, definitions: Program, name: str | None) -> Backfill:
    from partwise.cli.open_workspace import table_of
    from partwise.ledger.records.backfills import unfinished
    from partwise.ledger.write.lease_holding import is_dead

    graph, now = ledger.graph(), time.time()
    wanted = None if name is None else table_of(graph, definitions, name, "view").name
    with ledger.database.reading() as r:
        found = [b for b in unfinished(r) if wanted in (None, b.table)]
    alive = next((b for b in found if b.alive(now, is_dead)), None)
    left = [b for b in found if not b.alive(now, is_dead)]
    if not left:
        of = "" if wanted is None else f" of {wanted}"
        running = f" {alive.text(graph)} is running ({alive.holder})." if alive else ""
        raise Stop(f"There is no unfinished backfill{of}.{running}")
    return left[-1]


def _carry_out(engine: Engine, found: Backfill, json: bool, expected: float | None) -> None:
    from partwise.cli.views.backfill_bar import Watching
    from spark_jobs.backfill import carry_out
    from spark_jobs.commands._opening import stopping
    from spark_jobs.commands.run import as_json, show, tell_trouble

    watching, failed = Watching(engine.ledger, found, expected), 0
    with stopping() as stop:
        watching.draw()
        engine.progress = watching.step
        for outcome in carry_out(engine, found, stop):
            if outcome.trouble is not None or outcome.given_up:
                watching.clear()
                failed += tell_trouble(outcome, json)
            if outcome.report is None:
                continue
            failed += len(outcome.report.failed)
            watching.clear()
            print(jsons.dumps(as_json(outcome.report)), flush=True) if json else show(outcome.report)
            watching.draw()
    finished = watching.conclude(json, stop.is_set())
    if stop.is_set():
        raise typer.Exit(130)
    if failed or not finished:
        raise typer.Exit(1)
