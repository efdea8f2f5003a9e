"""What a view keeps for repairs, what else it could keep, and what both cost: foreseen, and as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from partwise.choose.keeping import ViewState, figures_of, is_worth_a_look, reached_by_late
from partwise.choose.state import NOTHING, StateAdvice, best
from partwise.compile.program import CompiledView, Program, Runnable
from partwise.compile.relations import Relations
from partwise.compile.state.flat import NotSplit, flat
from partwise.compile.state.generate import Keepable, keepable
from partwise.ledger.records.kept_states import KeptChoice, Took
from partwise.parts import lasting

if TYPE_CHECKING:
    from partwise.ledger.read.snapshot import Snapshot

#: Seconds that reading a row takes, by bench_late.py: costs are counted in rows.
_SECONDS = 2e-7
#: So many things that are not kept are shown.
_MOST = 5


@dataclass(frozen=True)
class KeptHelper:
    """`keeps` is what: a join, or groups. It has `parts` of about `rows` rows by now; `took`: seconds to make one."""

    name: str
    keeps: str
    parts: int
    rows: int
    took: float | None
    bytes: int | None = None


@dataclass(frozen=True)
class ExplainedState:
    """What is kept (`instead` of how many rows of inputs), chosen or named by its author, and what could be.

    `deliveries` are those that a part can expect, at its end and at later ages; `took`: seconds of the view's steps.
    """

    helpers: tuple[KeptHelper, ...]
    join: tuple[str, ...]
    groups: bool
    instead: int
    options: tuple[StateAdvice, ...]
    choice: KeptChoice | None
    named: bool
    automatic: bool
    took: Took
    deliveries: float
    by_age: tuple[tuple[int, float], ...] = ()

    @property
    def best(self) -> StateAdvice:
        return best(self.options)

    @property
    def kept(self) -> StateAdvice:
        """What is kept now, with what it is foreseen to cost."""
        here = [o for o in self.options if self.helpers and (set(o.join), o.groups) == (set(self.join), self.groups)]
        return here[0] if here else NOTHING

    def with_bytes(self, of: Callable[[str], int | None]) -> ExplainedState:
        return replace(self, helpers=tuple(replace(each, bytes=of(each.name)) for each in self.helpers))


def explained_state(
    snapshot: Snapshot, program: Program, relations: Relations, view: Runnable
) -> ExplainedState | None:
    """None where nothing could be kept, or nothing is and nothing is expected."""
    from partwise.choose.arrivals import AGES
    from partwise.ledger.read.reports import row_counts
    from partwise.ledger.records.kept_states import choices, took

    compiled = program.views.get(view.name)
    if view.helper_of is not None or compiled is None or view.written.query is not None:
        return None
    if not view.states and not is_worth_a_look(snapshot.r, program, view.name, reached_by_late(snapshot.r, program)):
        return None
    can = _keepable(program, relations, compiled)
    if can is None:
        return None
    found = figures_of(snapshot.r, program, relations, compiled, can)
    options = () if found is None else tuple(sorted(found.options(), key=lambda o: o.cost - o.recompute))
    choice = choices(snapshot.r).get(view.name) if view.name in program.kept else None
    if not view.states and not any(option.pays for option in options):
        return None
    counts = row_counts(snapshot.r)
    helpers = []
    for helper in program.alternative(view.name).kept_helpers:
        parts, rows = counts.get(helper.name, (0, 0))
        seconds = took(snapshot.r, helper.name).plain
        helpers.append(KeptHelper(helper.name, helper.keeps, parts, round(rows / parts) if parts else 0, seconds))
    numbers = {n for state in view.states for n in state.kept}
    instead = 0 if found is None else round(sum(found.figures.rows[n] for n in numbers))
    return ExplainedState(
        tuple(helpers),
        _join(can, view, choice),
        any(each.keeps == "groups" for each in helpers),
        instead,
        options,
        choice,
        view.written.state is not None,
        bool(view.written.may_keep),
        took(snapshot.r, view.name),
        0.0 if found is None else found.deliveries,
        () if found is None else tuple(_by_age(found, AGES)),
    )


def _by_age(found: ViewState, ages: tuple[int, ...]) -> list[tuple[int, float]]:
    shown = [(0, found.deliveries)]
    for age in ages:
        if age > found.known:
            break
        shown.append((age, found.deliveries * found.share(age)))
    return shown


def _keepable(program: Program, relations: Relations, view: CompiledView) -> Keepable | None:
    """As Partwise would choose; of a view whose author named a join, or wants nothing, all joins there are."""
    if view.written.may_keep:
        return keepable(view, relations, {name.lower(): table for name, table in program.tables.items()})
    table = view.alternatives[0].table
    if len(view.alternatives) > 1 or table.initialize is not None:
        return None
    try:
        found = flat(table.update, relations.known)
    except NotSplit:
        return None
    return Keepable(found, None) if len(found.joined) > 2 or view.written.state is not None else None


def _join(can: Keepable, view: Runnable, choice: KeptChoice | None) -> tuple[str, ...]:
    if choice is not None:
        return choice.join
    if view.written.state is None or can.flat is None or not view.states:
        return ()
    return tuple(can.flat.of(n).alias for n in sorted(view.states[0].kept))


def state_lines(found: ExplainedState) -> list[str]:
    lines = []
    for each in found.helpers:
        what = "groups" if each.keeps == "groups" else f"{' and '.join(found.join)} joined"
        if each.parts:
            size = "" if each.bytes is None else f", {_size(each.bytes)} in all"
            instead = f" instead of {found.instead:,}" if found.instead and each.keeps == "join" else ""
            text = (
                f"state: {what} in {each.name}: {each.parts:,} parts, about {each.rows:,} rows in each{instead}{size}"
            )
        else:
            text = f"state: {what} in {each.name}: nothing yet"
        until = "" if found.choice is None else f"; a part for {lasting(found.choice.until)}"
        lines.append(text + until)
    kept, wanted = found.kept, found.best
    if found.helpers and kept.is_something:
        lines.append(
            f"  foreseen: {_foreseen(kept)} for {_number(found.deliveries)} late deliveries a part{_real(found)}"
        )
    if wanted.is_something and (set(wanted.join), wanted.groups) != (set(found.join), found.groups):
        lines.append(_hint(found, wanted))
    elif found.named and found.helpers and found.instead and not wanted.is_something:
        lines.append("hint: by the arrivals in the ledger it hardly pays to keep anything. To end it: remove state:")
    others = [o for o in found.options if o not in (kept, wanted)][:_MOST] if found.helpers else []
    lines += [f"  not kept: {_what(each)}: {_size(each.bytes)} a part, {_foreseen(each)}" for each in others]
    return lines


def _hint(found: ExplainedState, wanted: StateAdvice) -> str:
    start = "not kept yet" if found.automatic and not found.helpers else "hint"
    text = (
        f"{start}: keeping {_what(wanted)}, about {_size(wanted.bytes)} a part, would take {wanted.gain:.1f} times less work "
        "for the rows that are expected late."
    )
    if found.automatic:
        return f"{text} It is chosen, within state_budget, when the next rows come late, or by `partwise retain`"
    how = f"{{join: [{', '.join(wanted.join)}]}}" if wanted.join and not wanted.groups else "automatic"
    return f"{text} To have it: state: {how}"


def _what(advice: StateAdvice) -> str:
    parts = [f"{' and '.join(advice.join)} joined"] if advice.join else []
    return " and ".join([*parts, *(["groups"] if advice.groups else [])])


def _foreseen(advice: StateAdvice) -> str:
    return f"{advice.cost * _SECONDS:.1f} s instead of {advice.recompute * _SECONDS:.1f} s"


def _real(found: ExplainedState) -> str:
    took = found.took
    with_it = "" if took.kept is None else f"{took.kept:.1f} s with it ({took.kept_steps})"
    without = "" if took.plain is None else f"{took.plain:.1f} s without ({took.plain_steps})"
    said = ", ".join(each for each in (with_it, without) if each)
    made = [f"{each.took:.1f} s" for each in found.helpers if each.took is not None]
    return f"; steps took {said}" + (f", making what is kept {' and '.join(made)}" if made else "") if said else ""


def _size(count: float) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 50_000 else f"{count / 1e3:,.1f} kB"


def _number(value: float) -> str:
    return f"{value:.2g}"


def state_json(found: ExplainedState | None) -> dict[str, Any] | None:
    if found is None:
        return None
    wanted = found.best
    joined = next((each for each in found.helpers if each.keeps == "join"), None)
    took = found.took
    return {
        "helper": None if joined is None else joined.name,
        "join": list(found.join),
        "parts": 0 if joined is None else joined.parts,
        "rows_per_part": 0 if joined is None else joined.rows,
        "instead_of": found.instead,
        "kept": [
            {
                "helper": each.name,
                "keeps": each.keeps,
                "parts": each.parts,
                "rows_per_part": each.rows,
                "bytes": each.bytes,
                "seconds": each.took,
                "for_seconds": None if found.choice is None else found.choice.until,
            }
            for each in found.helpers
        ],
        "options": [_option(each, each == found.kept) for each in found.options],
        "deliveries": [{"age": age, "deliveries": round(count, 4)} for age, count in found.by_age],
        "seconds": {
            "kept": took.kept,
            "kept_steps": took.kept_steps,
            "plain": took.plain,
            "plain_steps": took.plain_steps,
        },
        "advice": None if not found.options else _option(wanted, wanted == found.kept),
    }


def _option(advice: StateAdvice, kept: bool) -> dict[str, Any]:
    return {
        "join": list(advice.join),
        "groups": advice.groups,
        "kept": kept and advice.is_something,
        "rows_per_part": round(advice.rows),
        "bytes_per_part": round(advice.bytes),
        "cost": round(advice.cost),
        "recompute": round(advice.recompute),
        "seconds": round(advice.cost * _SECONDS, 3),
        "recompute_seconds": round(advice.recompute * _SECONDS, 3),
    }
