"""Say which version of a forward dimension counts for a time range, after showing the plan."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from partwise.cli.open_workspace import definitions_of, holder, ledger_of, table_of, workspace_of
from partwise.cli.options import JsonOption, WorkspaceOption, ask_first
from partwise.cli.stop import Stop, wrong_use
from partwise.cli.views.show import as_json, moment_json, moment_text, plural, say, table
from partwise.parts import BadTime, Parts, Range, parse_span, range_text, span_text

if TYPE_CHECKING:
    from partwise.ledger.ledger import Ledger
    from partwise.ledger.read.born import DimensionVersion, Versions
    from partwise.tables import Graph


def command(
    dimension: Annotated[str, typer.Argument(metavar="DIMENSION")],
    span: Annotated[
        str | None,
        typer.Argument(
            metavar="RANGE", help="A..B (both included), or one day, minute or second. Without: list versions."
        ),
    ] = None,
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", help="The version that counts; by default the newest one.")
    ] = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="Again the version that was current when the source parts came to exist.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and do nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Say which version of a forward dimension counts for a time range. Shows the plan and asks first.

    For a wrong row in a version that parts have read: load the right content, and let it count for that time as well. It
    counts for source parts that begin in the range and for what is computed from them, in every view alike. Parts that read
    another version by it become due, no others; the next run computes them.

    \b
    Example:
      partwise repin rates
      partwise repin rates 2026-10-03T10:00..2026-10-03T10:29
      partwise repin rates 2026-10-03 --version 3 --dry-run
      partwise repin rates 2026-10-03 --undo
    """
    if version is not None and undo:
        raise wrong_use("--undo takes no --version: what counts again follows from when source parts came to exist.")
    wanted = None if span is None else _span_of(span)
    where = workspace_of(workspace)
    definitions = definitions_of(where)
    with ledger_of(where, time.time()) as ledger:
        where.take_over(ledger, definitions, time.time())
        graph = ledger.graph()
        name = table_of(graph, definitions, dimension, "dimension").name
        if name not in graph.forward:
            raise Stop(f"{name} is retroactive: its newest version counts for everything. See `change: forward`.")
        if wanted is None:
            _list(ledger, name, where.settings.timezone, json)
            return
        chosen = None if undo else _chosen(ledger, name, version)
        seq = None if chosen is None else chosen.seq
        with ledger.database.trying(time.time()) as w:
            from partwise.ledger.write.repin import repin

            touched = repin(w, graph, name, wanted, seq, "")
        follows = sorted(n for n in graph.downstream(touched) - touched.keys() if graph[n].helper_of is None)
        if json:
            as_json(_as_json(graph, name, wanted, chosen, touched, follows, dry_run))
        else:
            _show(graph, name, wanted, chosen, touched, follows, where.settings.timezone)
        if dry_run:
            return
        ask_first(yes)
        ledger.repin(name, wanted, seq, holder().partition(" (")[0], time.time())
    if not json:
        say("Done." + (" `partwise run` computes these parts." if touched else ""))


def _span_of(text: str) -> Range:
    try:
        return parse_span(text)
    except BadTime as why:
        raise wrong_use(f"RANGE: {why}.".replace("?.", "?")) from None


def _list(ledger: Ledger, name: str, zone: str, json: bool) -> None:
    from partwise.ledger.read.born import versions

    with ledger.database.reading() as r:
        known = versions(r, name)
    kept = _kept(known)
    numbers: dict[int | None, int] = {item.seq: item.number for item in kept}
    said = [(span_text(Range(item.lo, item.hi)), numbers.get(item.version)) for item in known.repins]
    if json:
        as_json(
            {
                "dimension": name,
                "versions": [{"version": v.number, "loaded": moment_json(v.at), "rows": v.rows} for v in kept],
                "repinned": [{"range": span, "version": number} for span, number in said],
            }
        )
        return
    table(("version", "loaded", "rows"), [(str(v.number), moment_text(v.at, zone), f"{v.rows:,}") for v in kept])
    for span, number in said:
        what = "the version that was current then counts again" if number is None else f"version {number} counts"
        say(f"{span}: {what}.")


def _chosen(ledger: Ledger, dimension: str, number: int | None) -> DimensionVersion:
    from partwise.ledger.read.born import versions

    with ledger.database.reading() as r:
        known = versions(r, dimension)
    kept = _kept(known)
    if not kept:
        raise Stop(f"{dimension} was never loaded: it has no version. `partwise ingest {dimension}` loads it.")
    found = kept[-1] if number is None else next((item for item in kept if item.number == number), None)
    if found is None:
        there = f"{kept[0].number} to {kept[-1].number}" if len(kept) > 1 else str(kept[0].number)
        raise wrong_use(f"--version: {dimension} has no version {number} that is kept; there is {there}.")
    return found


def _kept(known: Versions) -> tuple[DimensionVersion, ...]:
    """What it held before it changed forward is not kept."""
    return known.contents[known.number_for(0) :] if known.contents else ()


def _show(
    graph: Graph,
    name: str,
    span: Range,
    chosen: DimensionVersion | None,
    touched: Mapping[str, Parts],
    follows: list[str],
    zone: str,
) -> None:
    if chosen is None:
        what = "the version that was current when they came to exist"
    else:
        what = f"version {chosen.number}, loaded {moment_text(chosen.at, zone)} ({plural(chosen.rows, 'row')}),"
    say(f"Of {name} {what} will count for source parts that begin in {span_text(span)}.")
    if not touched:
        say("No part that exists or is due reads another version by that.")
        return
    rows = [(view, ", ".join(_texts(graph, view, parts)), f"{parts.count:,}") for view, parts in touched.items()]
    table(("computed again", "parts", ""), rows)
    if follows:
        say(f"What reads them follows where they change: {', '.join(follows)}.")


def _texts(graph: Graph, view: str, parts: Parts) -> list[str]:
    return [range_text(run, graph[view].length) for run in parts.ranges]


def _as_json(
    graph: Graph,
    name: str,
    span: Range,
    chosen: DimensionVersion | None,
    touched: Mapping[str, Parts],
    follows: list[str],
    dry_run: bool,
) -> dict[str, object]:
    return {
        "dimension": name,
        "range": span_text(span),
        "version": None if chosen is None else chosen.number,
        "parts": [{"table": view, "parts": _texts(graph, view, parts)} for view, parts in touched.items()],
        "follows": follows,
        "done": not dry_run,
    }
