"""What a view keeps for repairs, and what would be worth keeping by the counts and arrivals in the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partwise.choose.state import ExpectedLate, StateAdvice, StateFigures, advised
from partwise.compile.program import Program, Runnable
from partwise.compile.relations import Relations
from partwise.compile.state.flat import Flat, NotSplit, flat
from partwise.definitions import Source

if TYPE_CHECKING:
    from partwise.ledger.read.snapshot import Snapshot


@dataclass(frozen=True)
class ExplainedState:
    """`helper` keeps a join of `join`, with `parts` of about `rows` rows by now. `instead`: rows that it stands for."""

    helper: str | None
    join: tuple[str, ...]
    parts: int
    rows: int
    instead: int
    advice: StateAdvice | None


def explained_state(
    snapshot: Snapshot, program: Program, relations: Relations, view: Runnable, part: int, merge: bool
) -> ExplainedState | None:
    """None where there is no join of inputs to keep."""
    if view.helper_of is not None or view.initialize is not None or view.written.update is None:
        return None
    try:
        found = flat(view.update, relations.known)
    except NotSplit:
        return None
    if len(found.joined) < 3 and view.state is None:
        return None
    figures = _figures(snapshot, program, found, view, part)
    advice = None if figures is None else advised(found, figures, merge)
    if view.state is None:
        return None if advice is None or not advice.join else ExplainedState(None, (), 0, 0, 0, advice)
    from partwise.ledger.read.reports import row_counts

    names = tuple(found.of(n).alias for n in sorted(view.state.kept))
    parts, rows = row_counts(snapshot.r).get(view.state.helper, (0, 0))
    instead = 0 if figures is None else round(sum(figures.rows[n] for n in view.state.kept))
    return ExplainedState(view.state.helper, names, parts, round(rows / parts) if parts else 0, instead, advice)


def _figures(snapshot: Snapshot, program: Program, found: Flat, view: Runnable, part: int) -> StateFigures | None:
    """None while an input has no rows to count."""
    from partwise.ledger.records.strategies import usual_rows
    from partwise.sources.arrivals import arrivals_of
    from partwise.sources.expected import StillToCome

    rows: dict[int, float] = {}
    late: dict[int, ExpectedLate] = {}
    by_name = {name.lower(): table for name, table in program.usable.items()}
    for each in found.joined:
        table = by_name.get(each.reference.table.lower())
        usual = None if table is None else usual_rows(snapshot.r, table.name)
        if table is None or not usual:
            return None
        span = None if each.reference.reference is None else each.reference.reference.requires(part)
        parts = 1 if span is None else span.hi - span.lo + 1
        rows[each.occurrence] = float(usual * parts)
        if isinstance(table, Source) and (seen := arrivals_of(snapshot.r, table.name, table.part)) is not None:
            expected = StillToCome(seen, table.late.accept)
            if (times := expected.deliveries(0)) > 0:
                late[each.occurrence] = ExpectedLate(times * parts, expected.rows(0) / times)
    return StateFigures(rows, late, float(usual_rows(snapshot.r, view.name) or 1))


def state_lines(found: ExplainedState) -> list[str]:
    lines = []
    if found.helper is not None:
        joined = f"{' and '.join(found.join)} joined in {found.helper}"
        if found.parts:
            instead = f" instead of {found.instead:,}" if found.instead else ""
            lines.append(f"state: {joined}: {found.parts:,} parts, about {found.rows:,} rows in each{instead}")
        else:
            lines.append(f"state: {joined}: nothing yet")
    advice = found.advice
    if advice is not None and advice.join and set(advice.join) != set(found.join):
        size = f"{advice.bytes / 1e6:,.1f} MB" if advice.bytes >= 50_000 else f"{advice.bytes / 1e3:,.1f} kB"
        lines.append(
            f"hint: keeping {' and '.join(advice.join)} joined, about {size} a part, would take "
            f"{advice.gain:.1f} times less work for the rows that are expected late. "
            f"To have it: state: {{join: [{', '.join(advice.join)}]}}"
        )
    elif found.helper is not None and advice is not None and not advice.join:
        lines.append("hint: by the arrivals in the ledger it hardly pays to keep anything. To end it: remove state:")
    return lines


def state_json(found: ExplainedState | None) -> dict[str, Any] | None:
    if found is None:
        return None
    advice = found.advice
    return {
        "helper": found.helper,
        "join": list(found.join),
        "parts": found.parts,
        "rows_per_part": found.rows,
        "instead_of": found.instead,
        "advice": None
        if advice is None
        else {
            "join": list(advice.join),
            "rows_per_part": round(advice.rows),
            "bytes_per_part": round(advice.bytes),
            "cost": round(advice.cost),
            "recompute": round(advice.recompute),
        },
    }
