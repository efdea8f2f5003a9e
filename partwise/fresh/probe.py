"""Coverage is measured: when parts were refreshed, what the sample said of them before is compared with what they are.

Everything is read as of the sequence that the step was pinned to, so the sample is of the same inputs, or it is not
asked. Probes are COUNT(*) and the SUM of every column that has a bound. Nothing here may disturb a step.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from partwise.compile.program import CompiledView, Sampled
from partwise.fresh.adding.compared import Compared
from partwise.fresh.adding.totals import Adding
from partwise.fresh.asked.question import FreshQuestion, ask
from partwise.fresh.asked.refused import Refused
from partwise.fresh.deciding import Deciding
from partwise.fresh.look import Looked, Looking
from partwise.fresh.read import connected
from partwise.ledger.ledger import Ledger
from partwise.ledger.read.as_of import readable, time_of
from partwise.ledger.records.estimates import EstimateCheck, record
from partwise.parts import Parts
from partwise.storage.paths import table_path
from partwise.storage.query import PinnedTable, connect

if TYPE_CHECKING:
    from partwise.fresh.answer import FreshAnswer, FreshCell

log = logging.getLogger("partwise.fresh")

#: So many parts of a step are compared, the newest ones: a step may compute thousands.
MOST = 4
ROWS = "rows"
#: Sums of doubles in another order differ in the last digits.
_ROUNDING = 1e-9


def compare_estimates(
    ledger: Ledger, warehouse: str, view: CompiledView, sampled: Sampled, parts: Parts, seq: int, now: float
) -> None:
    """Record what was estimated of parts that are published now, as of the sequence that their step was pinned to."""
    try:
        found = probe(ledger, warehouse, view, sampled, parts, seq)
        if found:
            with ledger.database.writing(now) as w:
                record(w, view.name, found)
    except Exception:
        # The parts are published; that nobody measured the estimates is no reason to compute them again.
        log.warning("%s: its estimates could not be compared with the refresh", view.name, exc_info=True)


def probe(
    ledger: Ledger, warehouse: str, view: CompiledView, sampled: Sampled, parts: Parts, seq: int
) -> list[EstimateCheck]:
    """Of these parts, which are published by now, as they were estimated as of `seq`."""
    question = ask(_sql(view, sampled), sampled.key)
    try:
        looked = _looking(view, sampled, question).at(ledger, seq)
    except Refused:
        return []  # the sample was behind as well: it would have refused
    found: list[EstimateCheck] = []
    for part in list(looked.states.dirty & parts)[-MOST:]:
        try:
            answer = _answer(ledger, warehouse, view, sampled, question, looked, part)
        except Refused:
            continue  # nothing was published yet
        truth = _truth(ledger, warehouse, view.name, part, question)
        for row in answer.rows:
            for (name, cell), right in zip(row.cells.items(), truth, strict=True):
                if cell.method not in (None, "exact", "bound"):
                    found.append(_check(part, name, seq, cell, right, sampled.ratio))
    return found


def part_answer(
    ledger: Ledger, warehouse: str, view: CompiledView, sampled: Sampled, part: int
) -> tuple[FreshAnswer | None, float]:
    """What is estimated of one part now, and as of which time; None if it is clean or cannot be estimated. Raises Refused."""
    question = ask(_sql(view, sampled), sampled.key)
    looked = _looking(view, sampled, question).at(ledger)
    with ledger.database.reading() as r:
        at = time_of(r, looked.seq)
    if part not in looked.states.dirty:
        return None, at
    return _answer(ledger, warehouse, view, sampled, question, looked, part), at


def _looking(view: CompiledView, sampled: Sampled, question: FreshQuestion) -> Looking:
    assert view.written.sample is not None
    return Looking(view.name, sampled, view.written.sample, question, view.written.part)


def _answer(
    ledger: Ledger,
    warehouse: str,
    view: CompiledView,
    sampled: Sampled,
    question: FreshQuestion,
    looked: Looked,
    part: int,
) -> FreshAnswer:
    states = looked.states.within(Parts.single(part))
    with connected(ledger, warehouse, view.name, sampled, states, looked.seq) as connection:
        adding = Adding(Compared(connection, question, sampled, states, view.written.part))
        return Deciding(question, sampled, states, view.written.part).answer(adding.all())


def _check(part: int, name: str, seq: int, cell: FreshCell, truth: float, ratio: float) -> EstimateCheck:
    slack = _ROUNDING * max(abs(truth), abs(cell.estimate))
    covered = cell.low - slack <= truth <= cell.high + slack
    return EstimateCheck(part, name, seq, cell.published, cell.estimate, cell.low, cell.high, truth, covered, ratio)


def _sql(view: CompiledView, sampled: Sampled) -> str:
    own = {c.lower() for c in view.columns or ()} - {ROWS}
    sums = "".join(f", SUM({_quoted(c)}) AS {_quoted(c)}" for c in sampled.sized if c.lower() in own)
    return f"SELECT COUNT(*) AS {ROWS}{sums} FROM {_quoted(view.name)}"


def _truth(ledger: Ledger, warehouse: str, view: str, part: int, question: FreshQuestion) -> list[float]:
    at = readable(ledger.database, [view], [view])[view]
    pin = PinnedTable(table_path(warehouse, view, at.version.generation), at.version.version, parts=at.parts)
    with connect(view, {view: pin}) as connection:
        row = connection.execute(
            f"SELECT {', '.join(question.written)} FROM {_quoted(view)} WHERE part = {part}"
        ).fetchone()
    return [float(value or 0) for value in row or ()]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
