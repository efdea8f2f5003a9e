"""A fresh answer of two views that are joined on the key of their samples, as of one sequence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from partwise.compile.program import CompiledView, Program, Sampled
from partwise.fresh.adding.pairs import JoinedCompared, both_states
from partwise.fresh.adding.totals import Adding, names_of
from partwise.fresh.answer import FreshAnswer
from partwise.fresh.asked.joined import Joinable, ask_joined
from partwise.fresh.asked.question import views_of
from partwise.fresh.asked.refused import not_answerable
from partwise.fresh.deciding import Deciding
from partwise.fresh.look import Looking
from partwise.fresh.read import FreshRequest, connected_to, exact, look, refuse_ratio, sampled_view

if TYPE_CHECKING:
    from partwise.fresh.read import Registered
    from partwise.ledger.ledger import Ledger
    from partwise.ledger.records.readers import Moment


def fresh_joined(
    program: Program, ledger: Ledger, warehouse: str, sql: str, registered: Registered, wanted: FreshRequest
) -> tuple[FreshAnswer, Moment]:
    """Raises Refused, and what DuckDB says of the query."""
    (one, first), (other, second) = (sampled_view(program, name) for name in views_of(sql))
    for view, sampled in ((one, first), (other, second)):
        refuse_ratio(view, sampled, wanted)
    length = one.written.part
    if length != other.written.part:
        raise not_answerable("a join of views whose parts differ in length", "")
    asked = ask_joined(sql, (_joinable(one, first), _joinable(other, second)))
    looking = tuple(
        Looking(view.name, sampled, view.written.sample, question, length)
        for (view, sampled), question in zip(((one, first), (other, second)), asked.sides, strict=True)
        if view.written.sample is not None
    )
    looked = [look(each, ledger, wanted) for each in looking]
    if looked[0].seq != looked[1].seq:  # one of the samples was behind: both as of the earlier sequence
        earlier = replace(wanted, seq=min(each.seq for each in looked), moment=None, wait=False)
        looked = [
            replace(look(each, ledger, earlier), note=was.note) for each, was in zip(looking, looked, strict=True)
        ]
    states, ratio = (looked[0].states, looked[1].states), min(first.ratio, second.ratio)
    ratio = ratio if wanted.ratio is None else wanted.ratio
    together = both_states(*states)
    tables = [one.name, other.name]
    if together.dirty:
        tables = [*names_of(first, one.name), *names_of(second, other.name)]
    tables = list(dict.fromkeys(tables))
    seq = min(each.seq for each in looked)
    with registered(seq) as at, connected_to(ledger, warehouse, tables, seq) as connection:
        compared = JoinedCompared(connection, asked, (first, second), states, length, ratio)
        deciding = Deciding(
            asked.question, _both(first, second, ratio), together, length, wanted.confidence, wanted.within, ratio
        )
        if together.dirty:
            found = deciding.answer(Adding(compared).all())
        else:
            found = exact(connection, deciding, compared.published)
        note = "; ".join(dict.fromkeys(each.note for each in looked if each.note))
        return replace(found, note=note, length=length), at


def _joinable(view: CompiledView, sampled: Sampled) -> Joinable:
    return Joinable(view.name, view.columns or (), sampled.key)


def _both(one: Sampled, other: Sampled, ratio: float) -> Sampled:
    """What is said of both samples."""
    sized = tuple(dict.fromkeys([*one.sized, *other.sized]))
    return replace(one, ratio=ratio, keep=min(one.keep, other.keep), unique=False, sized=sized)
