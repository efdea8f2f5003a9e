"""Explain why a part is stale, blocked, late or failed; what it was computed from; its revisions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.cli.accept import kept_json, show_kept
from partwise.cli.open_workspace import definitions_of, part_of, snapshot_of, table_of, workspace_of
from partwise.cli.options import JsonOption, TableArgument, WorkspaceOption
from partwise.cli.stop import wrong_use
from partwise.cli.views.next_part import bits
from partwise.cli.views.page_link import OpenOption, open_page
from partwise.cli.views.part_state import as_it_was, behind, mixture_text, sentence, stuck, versions_text
from partwise.cli.views.running import computed_now
from partwise.cli.views.show import as_json, heading, moment_json, moment_text, say, table
from partwise.parts import FOREVER, Parts, part_text, range_text
from partwise.plan.next import parts_text
from partwise.tables import DIMENSION_PART

if TYPE_CHECKING:
    from partwise.checks.results import KeptResults
    from partwise.ledger.read.history import ComputedFrom, PartHistory
    from partwise.plan.mixing import Read
    from partwise.plan.next import Need
    from partwise.tables import Graph


def command(
    name: TableArgument,
    part: Annotated[
        str | None, typer.Argument(metavar="PART", help="For example 2026-10-03T10:05 (UTC). Not for dimensions.")
    ] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
    browse: OpenOption = False,
) -> None:
    """Explain why a part is stale, blocked, late or failed; what it requires and was computed from; its revisions.

    \b
    Example:
      partwise why high_loss 2026-10-03T10:05
    """
    from partwise.ledger.read.history import history
    from partwise.ledger.records import checks

    where = workspace_of(workspace)
    definitions = definitions_of(where)
    with snapshot_of(where, definitions) as snapshot:
        found = table_of(snapshot.graph, definitions, name)
        if part is None and found.kind != "dimension":
            raise wrong_use(f"Which part? For example: partwise why {found.name} 2026-10-03T10:05.")
        p = DIMENSION_PART if part is None or found.kind == "dimension" else part_of(part, found)
        if browse:
            open_page(where, table=found.name, part=None if found.kind == "dimension" else part_text(p, found.length))
            return
        known = history(snapshot, found.name, p)
        told = sentence(snapshot.graph, known, where.settings.timezone)
        told += computed_now(snapshot, found.name, p)
        told += behind(snapshot, known.lacks) + as_it_was(snapshot.graph, known.held)
        told += stuck(snapshot, found, known.state)
        told += mixture_text(snapshot.graph, known) + versions_text(snapshot.graph, known)
        results = checks.kept(snapshot.r, known.table.name, p)
        if json:
            as_json(_as_json(snapshot.graph, known, told) | {"checks": None if results is None else kept_json(results)})
        else:
            _show(snapshot.graph, known, told, results, where.settings.timezone)


def _show(graph: Graph, known: PartHistory, told: str, found: KeptResults | None, zone: str) -> None:
    say(told, "bold")
    day = part_text(known.part, known.table.length)[:10]
    if found is not None:
        show_kept(found, zone)
    if known.failure is not None and (found is None or known.failure.kind != "check"):
        heading(f"Failure ({known.failure.kind})")
        say(f"  {known.failure.message}")
    if known.needs:
        heading("Requires")
        table(("table", "parts", "there", "missing"), [_need(graph, need, day) for need in known.needs], 2)
    if known.computed_from:
        heading("Computed from")
        table(
            ("table", "parts", "revisions then", "changed since"),
            [_computed(graph, item, day) for item in known.computed_from],
            2,
        )
    if known.revisions:
        heading("Revisions")
        rows = [
            (str(r.revision), f"{r.rows:,}", moment_text(r.at, zone), f"{r.reason}; mixed" if r.mixed else r.reason)
            for r in known.revisions
        ]
        table(("revision", "rows", "at", "reason"), rows, 2)
    if known.feeds:
        heading("Feeds")
        for item in known.feeds:
            say(f"  {item.table}{_fed(graph, item.table, item.parts, day)}")


def _need(graph: Graph, need: Need, day: str) -> tuple[str, ...]:
    length = graph[need.table].length
    if graph[need.table].kind == "dimension":
        return need.table, "all of it", "loaded" if need.there else "not loaded", ""
    count = f"{need.there.count}/{need.needed.count}"
    return (
        need.table,
        parts_text(need.needed, length, day),
        f"{count} {bits(need)}",
        parts_text(need.missing, length, day) if need.missing else "",
    )


def _computed(graph: Graph, item: ComputedFrom, day: str) -> tuple[str, ...]:
    of = graph[item.table]
    parts = "all of it" if of.kind == "dimension" else parts_text(item.parts, of.length, day)
    numbers = sorted(set(item.revisions.values()))
    then = " and ".join(map(str, numbers)) if len(numbers) < 4 else f"{numbers[0]} to {numbers[-1]}"
    if not item.changed_since:
        changed = ""
    elif of.kind == "dimension":
        changed = f"revision {item.changed_since[DIMENSION_PART]}"
    else:
        changed = parts_text(Parts.single(*item.changed_since), of.length, day)
    return item.table, parts, then, changed


def _fed(graph: Graph, name: str, parts: Parts, day: str) -> str:
    if parts.last >= FOREVER:
        return ", every part"
    return f"[{parts_text(parts, graph[name].length, day)}]"


def _as_json(graph: Graph, known: PartHistory, told: str) -> dict[str, Any]:
    def spans(name: str, parts: Parts) -> list[str]:
        if graph[name].kind == "dimension":
            return []
        return [range_text(span, graph[name].length) for span in parts.ranges]

    def one(name: str, p: int) -> str:
        return name if graph[name].kind == "dimension" else part_text(p, graph[name].length)

    def reads(items: Iterable[Read]) -> list[dict[str, object]]:
        return [{"table": t, "parts": spans(t, Parts.of((lo, hi)))} for t, lo, hi in items if t in graph.tables]

    failure = known.failure
    return {
        "table": known.table.name,
        "part": None if known.table.kind == "dimension" else part_text(known.part, known.table.length),
        "state": known.state,
        "why": told,
        "reason": known.cause.text(graph, not known.exists) if known.cause else None,
        "since": moment_json(known.since),
        "rows": known.rows,
        "last_updated": moment_json(known.last_updated),
        "requires": [
            {
                "table": need.table,
                "parts": spans(need.table, need.needed),
                "bitmap": need.bitmap(),
                "missing": spans(need.table, need.missing),
            }
            for need in known.needs
        ],
        "waits_for": [
            {"table": w.table, "parts": spans(w.table, Parts.of(w.parts)), "state": w.state} for w in known.waits_for
        ],
        "held": [{"table": w.table, "parts": spans(w.table, Parts.of(w.parts)), "state": w.state} for w in known.held],
        "mixed": None if known.mixture is None else {"as_of": known.mixture.as_of, "read": reads(known.mixture.reads)},
        "computed_from": [
            {
                "table": item.table,
                "parts": spans(item.table, item.parts),
                "version": item.version,
                "revisions": {one(item.table, p): number for p, number in item.revisions.items()},
                "changed_since": {one(item.table, p): number for p, number in item.changed_since.items()},
            }
            for item in known.computed_from
        ],
        "revisions": [
            {
                "revision": r.revision,
                "rows": r.rows,
                "at": moment_json(r.at),
                "reason": r.reason,
                "as_of": r.as_of,
                "mixed": reads(r.mixed),
            }
            for r in known.revisions
        ],
        "failure": None
        if failure is None
        else {
            "kind": failure.kind,
            "message": failure.message,
            "attempts": failure.attempts,
            "at": moment_json(failure.at),
            "retry_at": moment_json(failure.retry_at),
        },
        "feeds": [
            {"table": f.table, "parts": None if f.parts.last >= FOREVER else spans(f.table, f.parts)}
            for f in known.feeds
        ],
    }
