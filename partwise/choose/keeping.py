"""What is kept of all views together: looked at again when clearly more rows have come late, and written to the ledger.

Of each view what could be kept is a curve: outputs, and for how long those of a part are. How long follows from what is
still to come at an age: what would not be chosen for so few deliveries is dropped. A knapsack takes one option of each curve within the budget.
What is kept already has to be clearly beaten, or helpers would come and go with every delivery.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from partwise.choose.arrivals import AGES
from partwise.choose.frontier import KeptOption, within_budget
from partwise.choose.settled import with_kept_states
from partwise.choose.state import ExpectedLate, GroupsShape, StateAdvice, StateFigures, candidates
from partwise.compile.program import CompiledView, Program, Runnable
from partwise.compile.relations import Relations
from partwise.compile.state.generate import Keepable, keepable, state_mark
from partwise.definitions.definitions import Dimension, Source
from partwise.ledger.database import Reading
from partwise.ledger.ledger import Ledger
from partwise.ledger.read.pin import DefinitionChanged
from partwise.ledger.read.reports import row_counts
from partwise.ledger.records.kept_states import (
    KeptChoice,
    choices,
    contents_seen,
    late_arrivals,
    note_review,
    reviewed,
)
from partwise.ledger.records.strategies import usual_rows
from partwise.ledger.write.leases import Busy
from partwise.sources.arrivals import arrivals_of
from partwise.sources.expected import StillToCome

#: Fewer late deliveries say nothing about those to come.
FEWEST = 3
#: Parts of fewer rows are not worth a look.
SMALL = 100_000
#: What is kept is given up for something else only if that gains so much more.
_LOYAL = 1.25
#: Seconds after which it is looked again, however few deliveries have come late.
_AGAIN = 86_400.0


@dataclass(frozen=True)
class ViewState:
    """All that choosing has to know of a view. `share`: of the deliveries that are expected, those after an age."""

    view: CompiledView
    can: Keepable
    figures: StateFigures
    merge: bool
    share: Callable[[float], float]
    known: float
    groups: float | None = None  # that there are, if they are kept already

    @property
    def deliveries(self) -> float:
        return max((each.deliveries for each in self.figures.late.values()), default=0.0)

    def options(self) -> list[StateAdvice]:
        made = self.can.grouped
        shape = None if made is None else GroupsShape(made.kept, len(made.columns), self.groups)
        return candidates(self.can.flat, shape, self.figures, self.merge)


@dataclass(frozen=True)
class _Option:
    advice: StateAdvice
    until: int
    bytes: float
    gain: float


def review(
    ledger: Ledger,
    program: Program,
    budget: int,
    now: float,
    dead: Callable[[str], bool] = lambda holder: False,
    force: bool = False,
) -> dict[str, KeptChoice | None]:
    """Choose again what is kept, if there is reason to. Returns what has changed, by view; None: nothing is kept any more."""
    with ledger.database.reading() as r:
        known, late, before = choices(r), sum(late_arrivals(r).values()), reviewed(r)
    if not known and (not late or not budget):
        return {}
    if not force and before is not None and not _is_due(before, late, budget, now, set(known) - program.kept.keys()):
        return {}
    with ledger.database.reading() as r:
        wanted = _wanted(r, program, known, budget) if budget and program.keeping else {}
    changed: dict[str, KeptChoice | None] = {v: c for v, c in wanted.items() if _differs(known.get(v), c)}
    changed |= dict.fromkeys(known.keys() - wanted.keys())
    try:
        if changed:
            _write(ledger, program, known, changed, now, dead)
    except (Busy, DefinitionChanged):
        return {}  # somebody writes one of the tables: it is looked at again before long
    with ledger.database.writing(now) as w:
        note_review(w, late, budget)
    return changed


def _is_due(before: tuple[int, int, float], late: int, budget: int, now: float, lost: set[str]) -> bool:
    seen, was, at = before
    return late >= seen + max(1, seen // 4) or budget != was or not at <= now < at + _AGAIN or bool(lost)


def _differs(before: KeptChoice | None, now: KeptChoice) -> bool:
    if before is None or (before.join, before.groups, before.mark) != (now.join, now.groups, now.mark):
        return True
    return not now.until / 2 <= before.until <= now.until * 2


def _write(
    ledger: Ledger,
    program: Program,
    known: Mapping[str, KeptChoice],
    changed: dict[str, KeptChoice | None],
    now: float,
    dead: Callable[[str], bool],
) -> None:
    then = {**known, **changed}
    after = with_kept_states(program, {view: choice for view, choice in then.items() if choice is not None})
    names = {
        h.name
        for each in (program, after)
        for view in changed
        if view in each.views
        for h in each.alternative(view).kept_helpers
    }
    tables = {name: table for name, table in after.graph().tables.items() if name in names}
    ledger.keep_states(changed, tables, names, now, dead)


def _wanted(r: Reading, program: Program, known: Mapping[str, KeptChoice], budget: int) -> dict[str, KeptChoice]:
    looked = dict(_looked_at(r, program, known))
    marks = {name: state_mark(found.view) for name, found in looked.items()}
    curves = {name: curve_of_view(found, _still(known.get(name), marks[name])) for name, found in looked.items()}
    names = [*curves]
    given = [
        [KeptOption(0.0, 0.0), *(KeptOption(o.bytes, -o.gain, frozenset([str(n)])) for n, o in enumerate(curves[name]))]
        for name in names
    ]
    chosen = {}
    for name, option in zip(names, within_budget(given, budget), strict=True):
        if not option.kept:
            continue
        (number,) = option.kept
        best = curves[name][int(number)]
        advice, found = best.advice, looked[name]
        figures = (advice.bytes, advice.cost, advice.recompute, found.deliveries)
        chosen[name] = KeptChoice(name, advice.join, advice.groups, marks[name], best.until, *figures)
    return chosen


def _still(choice: KeptChoice | None, mark: str) -> KeptChoice | None:
    return choice if choice is not None and choice.mark == mark else None


def curve_of_view(found: ViewState, now: KeptChoice | None) -> list[_Option]:
    """What could be kept for how long, that pays."""
    options = []
    length = found.view.written.part
    for advice in found.options():
        kept_now = now is not None and (now.join, now.groups) == (advice.join, advice.groups)
        if not (advice.pays or (kept_now and advice.recompute > advice.cost)):
            continue
        for age in ages(found, advice):
            served = 1 - found.share(age)
            gain = served * (advice.recompute - advice.cost + advice.build) - advice.build
            if gain > 0:
                bytes = advice.bytes * (-(-age // length) + 1)
                options.append(_Option(advice, age, bytes, gain / length * (_LOYAL if kept_now else 1.0)))
    return options


def ages(found: ViewState, advice: StateAdvice) -> list[int]:
    """How long a part may be kept: at most until so little is still to come that nobody would keep it any more."""
    ages: list[int] = []
    longest = found.view.written.keep
    for age in AGES:
        if longest is not None and age >= longest:
            return [*ages, longest]
        ages.append(age)
        if age > found.known or not advice.with_fewer(found.share(age)).pays:
            break
    return ages


def _looked_at(r: Reading, program: Program, known: Mapping[str, KeptChoice]) -> dict[str, ViewState]:
    relations: Relations | None = None
    found: dict[str, ViewState] = {}
    reached = reached_by_late(r, program)
    for name, view in program.views.items():
        if name in known or is_worth_a_look(r, program, name, reached):
            relations = relations or Relations(program.with_kept({}))
            if name in program.usable and (state := view_state(r, program, relations, view)) is not None:
                found[name] = state
    return found


def reached_by_late(r: Reading, program: Program) -> frozenset[str]:
    """Tables in which rows come late, often enough to expect more, and all that is computed from them."""
    graph = program.graph()
    return graph.downstream(n for n, count in late_arrivals(r).items() if count >= FEWEST and n in graph.tables)


def is_worth_a_look(r: Reading, program: Program, name: str, reached: frozenset[str]) -> bool:
    """Found out without a parser."""
    table = program.usable.get(name)
    if not isinstance(table, Runnable) or table.written.query is not None:
        return False
    return not reached.isdisjoint(program.graph()[name].input_names) and _rows_read(r, table) >= SMALL


def _rows_read(r: Reading, view: Runnable) -> float:
    return sum(usual_rows(r, name) or 0 for name in {found.table for found in view.update.found.tables})


def view_state(r: Reading, program: Program, relations: Relations, view: CompiledView) -> ViewState | None:
    """None where nothing could be kept, or while an input has no rows to count."""
    can = keepable(view, relations, {name.lower(): table for name, table in program.tables.items()})
    return None if can is None else figures_of(r, program, relations, view, can)


def figures_of(
    r: Reading, program: Program, relations: Relations, view: CompiledView, can: Keepable
) -> ViewState | None:
    table = view.alternatives[0].table
    by_name = {name.lower(): each for name, each in program.usable.items()}
    rows: dict[int, float] = {}
    late: dict[int, ExpectedLate] = {}
    again: dict[int, float] = {}
    to_come: list[StillToCome] = []
    counts = row_counts(r)
    built = max(1, counts.get(view.name, (0, 0))[0])
    changing: list[int] = []
    for n, found in enumerate(table.update.found.tables):
        read = by_name.get(found.table.lower())
        usual = None if read is None else usual_rows(r, read.name)
        if read is None or not usual:
            return None
        span = None if found.reference is None else found.reference.requires(0)
        parts = 1 if span is None else span.hi - span.lo + 1
        rows[n] = float(usual * parts)
        if isinstance(read, Dimension):
            changing.append(n)
            again[n] = max(0, contents_seen(r, read.name) - 1) / built
            continue
        for source in _sources(program, read.name):
            if (seen := arrivals_of(r, source.name, source.part)) is None:
                continue
            expected = StillToCome(seen, source.late.accept)
            times = expected.deliveries(0)
            if times <= 0 or expected.seen(0) < FEWEST:
                continue
            to_come.append(expected)
            each = expected.rows(0) / times if isinstance(read, Source) else usual
            before = late.get(n, ExpectedLate(0.0, 0.0))
            late[n] = max(before, ExpectedLate(times * parts, each), key=lambda item: item.deliveries)
    reach = max((expected.known for expected in to_come), default=0.0)
    alive = max(1.0, reach / view.written.part)
    again = {n: again[n] * alive for n in changing if again[n]}
    result = float(usual_rows(r, view.name) or 1)
    figures = StateFigures(rows, late, result, again)
    groups = counts.get(f"{view.name}__grouped")
    merge = view.written.repair_by in ("auto", "merge") and relations.of(table).repair("merge").possible

    def share(age: float) -> float:
        first = max((expected.deliveries(0) for expected in to_come), default=0.0)
        left = max((expected.deliveries(age) for expected in to_come), default=0.0)
        return left / first if first else 0.0

    return ViewState(
        view, can, figures, merge, share, reach, groups=None if not groups or not groups[0] else groups[1] / groups[0]
    )


def _sources(program: Program, name: str) -> list[Source]:
    """A source itself, or those that a view is computed from."""
    names = program.graph().upstream([name])
    return [each for other in sorted(names) if isinstance(each := program.usable.get(other), Source)]
