"""Show what would run now, in order and with reasons; what waits, and for what."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.choose.together import shared_jobs
from partwise.cli.open_workspace import definitions_of, errors_of, problem_json, snapshot_of, table_of, workspace_of
from partwise.cli.options import JsonOption, WorkspaceOption, complete_views
from partwise.cli.views.next_part import next_json
from partwise.cli.views.planned import Planned, planned
from partwise.cli.views.repair_choice import of_steps
from partwise.cli.views.show import as_json, heading, moment_json, moment_text, plural, say, table
from partwise.parts import FOREVER, Range, part_text, range_text
from partwise.plan.model import Blocked, Step
from partwise.plan.next import next_text, parts_text

if TYPE_CHECKING:
    from partwise.choose.repair import RepairDecision


def command(
    views: Annotated[list[str] | None, typer.Argument(metavar="VIEW", autocompletion=complete_views)] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Show what would run now, in order and with reasons; what is blocked, and by what. Changes nothing.

    With views: show only what leads to them.

    \b
    Example:
      partwise plan
      partwise plan total_loss --json
    """
    where = workspace_of(workspace)
    definitions = definitions_of(where)
    with snapshot_of(where, definitions) as snapshot:
        names = [table_of(snapshot.graph, definitions, name, "view").name for name in views or []]
        found = planned(snapshot, names or None, where.settings.timezone)
        repairs = of_steps(snapshot, definitions, (*found.plan.steps, *found.plan.manual))
        jobs = shared_jobs(definitions, found.plan, where.settings.batch, time.time())
        if json:
            problems = [problem_json(p) for p in errors_of(definitions)]
            as_json(_as_json(found, repairs, jobs) | {"problems": problems})
        else:
            _show(found, repairs, jobs)


def _as_json(found: Planned, repairs: Mapping[str, RepairDecision], jobs: list[list[Step]]) -> dict[str, Any]:
    graph = found.graph

    def parts(name: str, span: Range) -> list[str]:
        return [part_text(p, graph[name].length) for p in range(span.lo, span.hi + 1)]

    def step(item: Step) -> dict[str, Any]:
        chosen = repairs.get(item.table) if item.kind == "stale" else None
        return {
            "table": item.table,
            "parts": parts(item.table, item.parts),
            "kind": item.kind,
            "reason": item.reason,
            "repair": None if chosen is None else {"by": chosen.by, "why": chosen.why},
        }

    return {
        "steps": [step(item) for item in found.plan.steps],
        "jobs": [[item.table for item in group] for group in jobs],
        "blocked": [
            {
                "table": item.table,
                "part": part_text(item.parts.lo, graph[item.table].length),
                "parts": parts(item.table, item.parts),
                "waits_for": [
                    {"table": w.table, "parts": _span(found, w.table, w.parts), "state": w.state}
                    for w in item.waits_for
                ],
            }
            for item in found.plan.blocked
        ],
        "manual": [step(item) for item in found.plan.manual],
        "deferred": [
            {
                "table": item.table,
                "parts": [p for span in item.parts.ranges for p in parts(item.table, span)],
                "since": moment_json(item.since),
                "fires_at": moment_json(item.fires_at),
                "waits_for": list(item.waits_for),
            }
            for item in found.plan.deferred
        ],
        "follows": {n: [range_text(s, graph[n].length) for s in p.ranges] for n, p in found.follows.items()},
        "may_change": {
            n: [range_text(s, graph[n].length) for s in p.ranges] for n, p in (found.plan.later or {}).items()
        },
        "next": [next_json(graph, item) for item in found.next],
        "definitions": {
            key: list(getattr(found.changes, key))
            for key in ("added", "changed", "restarted", "settings", "retired", "forward", "retroactive")
            if key not in ("forward", "retroactive") or getattr(found.changes, key)
        },
    }


def _span(found: Planned, name: str, span: Range) -> str:
    table = found.graph[name]
    return name if table.kind == "dimension" else range_text(span, table.length)


def _show(found: Planned, repairs: Mapping[str, RepairDecision], jobs: list[list[Step]]) -> None:
    graph, plan = found.graph, found.plan
    if found.changes:
        say(_definitions(found), "dim")
    if plan.steps:
        heading(f"To do now: {plural(len(plan.steps), 'step')}, {plural(_count(plan.steps), 'part')}")
        _steps(found, plan.steps)
        numbers = {step: number for number, step in enumerate(plan.steps, start=1)}
        for group in jobs:
            *most, last = sorted(numbers[step] for step in group)
            say(f"  Steps {', '.join(map(str, most))} and {last} share a job, as far as they are small.", "dim")
        for name, chosen in repairs.items():
            if chosen.by != "recompute":
                say(f"  {name}: a late row is repaired by {chosen.by}, {chosen.why}.", "dim")
    else:
        say("Nothing to do now.")
    if found.follows or plan.later:
        heading("Then")
        for name, parts in found.follows.items():
            say(f"  {name}[{parts_text(parts, graph[name].length)}] can be built: {plural(parts.count, 'part')}")
        for name, parts in (plan.later or {}).items():
            many = "" if parts.last >= FOREVER else f": {plural(parts.count, 'part')}"
            say(f"  {name}[{parts_text(parts, graph[name].length)}] follows if what it reads changes{many}")
    if plan.manual:
        heading("Left to you (repair: manual)")
        _steps(found, plan.manual)
    if found.repair:
        name, parts = found.repair
        span = range_text(Range(parts.first, parts.last), graph[name].length)
        say(f"  `partwise backfill {name} {span}` repairs the first of them.", "dim")
    if plan.deferred:
        heading("Deferred (refresh)")
        for late in plan.deferred:
            soon = f" ({'; '.join(late.waits_for)})" if late.waits_for else ""
            say(
                f"  {late.table}[{parts_text(late.parts, graph[late.table].length)}] refreshes by "
                f"{moment_text(late.fires_at, found.zone)}{soon}"
            )
        say("  `partwise run --now` refreshes them at once.", "dim")
    if plan.blocked:
        heading("Blocked")
        for item in plan.blocked:
            say(f"  {_blocked(found, item)}")
    waiting = [item for item in found.next if item.waits]
    if waiting:
        heading("Next")
        for view in waiting:
            say(f"  {next_text(graph, view)}")


def _steps(found: Planned, steps: tuple[Step, ...]) -> None:
    rows = [
        (
            str(at),
            f"{step.table}[{range_text(step.parts, found.graph[step.table].length)}]",
            plural(step.parts.size, "part"),
            step.kind,
            step.reason.replace(f"{part_text(step.parts.lo, found.graph[step.table].length)[:10]}T", ""),
        )
        for at, step in enumerate(steps, 1)
    ]
    table(("", "step", "", "kind", "reason"), rows)


def _blocked(found: Planned, item: Blocked) -> str:
    own = found.graph[item.table]
    day = part_text(item.parts.lo, own.length)[:10]
    waits = [
        f"{w.table} is {w.state}" if found.graph[w.table].kind == "dimension" else
        f"{w.table}[{_span(found, w.table, w.parts).replace(f'{day}T', '')}] is {w.state}"
        for w in item.waits_for
    ]  # fmt: skip
    what = f"{item.table}[{range_text(item.parts, own.length)}]"
    if [w.state for w in item.waits_for] == ["failed"] and item.waits_for[0].table == item.table:
        first = part_text(item.parts.lo, own.length)
        return f"{what} failed; see `partwise why {item.table} {first}`"
    return f"{what} waits: {'; '.join(waits) or 'for earlier parts of its own'}"


def _count(steps: tuple[Step, ...]) -> int:
    return sum(step.parts.size for step in steps)


def _definitions(found: Planned) -> str:
    said = {
        "added": "new",
        "changed": "changed",
        "restarted": "start over (their old parts mean nothing under the new definition)",
        "settings": "changed in settings only",
        "retired": "removed",
    }
    parts = [f"{text}: {', '.join(names)}" for key, text in said.items() if (names := getattr(found.changes, key))]
    turned = [
        f" New versions of {name} will count only for source parts that come to exist later; what there is stays as it is."
        for name in found.changes.forward
    ] + [
        f" The newest version of {name} will count for everything: all that reads it is computed again."
        for name in found.changes.retroactive
    ]
    return f"Definitions that no run has applied yet: {'; '.join(parts)}.{''.join(turned)}"
