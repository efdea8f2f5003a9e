"""Parts of a view as of one sequence: clean, stale, missing, or beyond what can be estimated.

clean     published, and exactly what the sources give
stale     published, but its inputs have changed, wherever that waits: in a policy, for people, in a failed step
missing   not published yet; its inputs exist
beyond    due, but not even its sample can be computed: an input is missing

A stale part is compared with what is published of it, a missing one with a stand-in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from partwise.compile.program import Sampled
from partwise.definitions.definitions import Sample
from partwise.fresh.asked.refused import Refused
from partwise.parts import FOREVER, Parts
from partwise.plan.closure import not_up_to_date
from partwise.plan.model import Facts, parts_of_due
from partwise.plan.next import parts_text
from partwise.plan.planner import look_around
from partwise.tables import Graph


@dataclass(frozen=True)
class PartStates:
    """`stand_ins`: for each missing part those that it is compared with, or with the mean of; if there are any."""

    clean: Parts
    stale: Parts
    missing: Parts
    beyond: Parts
    stand_ins: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def dirty(self) -> Parts:
        return self.stale | self.missing

    def within(self, chosen: Parts) -> PartStates:
        return PartStates(
            self.clean & chosen, self.stale & chosen, self.missing & chosen, self.beyond & chosen, self.stand_ins
        )


def states_of(graph: Graph, facts: Facts, now: float, view: str, sample: str) -> PartStates:
    """All parts of a view. What its sample has, or will have without anything new, is missing; the rest is beyond."""
    there, old = _existing(facts, view), not_up_to_date(graph, facts, [view]).get(view, Parts())
    look = look_around(graph, facts, now, [sample]).get(sample)
    able = _existing(facts, sample) | (Parts() if look is None else look.ready | look.failed)
    absent = old - there
    return PartStates(there - old, there & old, absent & able, absent - able)


def states_then(graph: Graph, facts: Facts, view: str, sample: str) -> PartStates:
    """The same as of an earlier moment: what its sample did not have then is beyond."""
    there, old = _existing(facts, view), not_up_to_date(graph, facts, [view]).get(view, Parts())
    absent, able = old - there, _existing(facts, sample)
    return PartStates(there - old, there & old, absent & able, absent - able)


class SampleBehind(Refused):
    """The sample of a part is older than its inputs."""


def with_stand_ins(
    states: PartStates, graph: Graph, facts: Facts, view: str, sampled: Sampled, rule: Sample
) -> PartStates:
    """The same with what missing parts are compared with. Raises SampleBehind where the sample of a part is not fresh."""
    length = graph[view].length
    read = sampled.fresh_tables
    old, was = not_up_to_date(graph, facts, read), sampled.was
    behind = Parts()
    for name in read:
        behind |= (states.dirty - _existing(facts, name)) | (states.dirty & old.get(name, Parts()))
    if behind:
        message = f"the sample of {view}[{parts_text(behind, length)}] is older than its inputs"
        raise SampleBehind(
            "sample-behind", message, "`partwise run` brings it up to date; `partwise plan` shows what waits"
        )
    settled = _existing(facts, was) - parts_of_due(facts.due().get(was, ()))
    if late := states.stale - settled:
        message = f"{view}[{parts_text(late, length)}] was published after the sample of what is published"
        raise SampleBehind("sample-behind", message, "`partwise run` brings it up to date")
    return replace(states, stand_ins=dict(_stand_ins(states, settled, rule, length)))


def _stand_ins(states: PartStates, settled: Parts, rule: Sample, length: int) -> list[tuple[int, tuple[int, ...]]]:
    built = settled & (states.clean | states.stale)
    if rule.stand_in == "none" or not built:
        return []
    if rule.stand_in == "ago":
        back = (rule.ago or 0) // length
        return [(p, (p - back,)) for p in states.missing if back and p - back in built]
    newest = tuple(islice((p for lo, hi in reversed(built.ranges) for p in range(hi, lo - 1, -1)), rule.mean or 1))
    return [(p, newest) for p in states.missing]


def _existing(facts: Facts, table: str) -> Parts:
    return facts.existing(table, -FOREVER, FOREVER)
