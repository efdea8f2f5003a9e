"""Checks on the command line: what they found, and accepting what failed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from partwise.cli.open_workspace import holder, range_of, table_of
from partwise.cli.stop import Stop
from partwise.cli.views.show import heading, moment_json, moment_text, say
from partwise.parts import Parts
from partwise.tables import DIMENSION_PART

if TYPE_CHECKING:
    from partwise.checks.results import CheckResult, KeptResults
    from partwise.compile.program import Program
    from partwise.ledger.ledger import Ledger
    from partwise.tables import Table


def accept(ledger: Ledger, definitions: Program, name: str, part: str) -> tuple[Table, Parts, str]:
    """Let parts through as they failed; what was accepted, and by whom."""
    from partwise.ledger.records import checks

    table = table_of(definitions.graph(), definitions, name)
    parts = Parts.single(DIMENSION_PART) if table.kind == "dimension" else Parts.of(range_of(part, table))
    who = holder().partition(" (")[0]
    with ledger.database.writing(time.time()) as w:
        done = checks.accept(w, table.name, parts, who)
    if not done:
        raise Stop(
            f"There is nothing to accept: {table.name} {part} has not failed its checks. "
            f"`partwise checks {table.name}` shows what has."
        )
    return table, done, who


def show_kept(found: KeptResults, zone: str) -> None:
    heading(f"Checks ({found.outcome}, {moment_text(found.at, zone)})")
    if found.accepted_by is not None:
        say(f"  accepted by {found.accepted_by} at {moment_text(found.accepted_at, zone)}", "yellow")
    for result in found.results:
        say(f"  {mark(result)} {result.title}", style(result))
        if not result.ok:
            say(f"      {result.message}")
            for row in result.rows:
                say(f"      {row}", "dim")
            if result.unexpected and len(result.rows) < result.unexpected and result.rows:
                say(f"      ... {result.unexpected - len(result.rows):,} more", "dim")


def mark(result: CheckResult) -> str:
    return "ok  " if result.ok else "warn" if result.severity == "warn" else "FAIL"


def style(result: CheckResult) -> str:
    return "green" if result.ok else "yellow" if result.severity == "warn" else "red"


def kept_json(found: KeptResults) -> dict[str, Any]:
    import json

    return {
        "outcome": found.outcome,
        "at": moment_json(found.at),
        "rows": found.rows,
        "accepted_by": found.accepted_by,
        "accepted_at": moment_json(found.accepted_at),
        "results": [
            {
                "check": r.check,
                "arguments": dict(r.arguments),
                "severity": r.severity,
                "ok": r.ok,
                "message": r.message,
                "observed": r.observed,
                "elements": r.elements,
                "unexpected": r.unexpected,
                "broken": r.broken,
                "rows": [json.loads(row) if row.endswith("}") else row for row in r.rows],
            }
            for r in found.results
        ],
    }
