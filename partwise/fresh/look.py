"""Which moment an answer is of, and the states of parts then.

Now, if the sample is up to date; else the newest moment at which it was; or the one that is requested.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from partwise.compile.program import Sampled
from partwise.definitions.definitions import Sample
from partwise.fresh.adding.totals import chosen_parts
from partwise.fresh.asked.question import FreshQuestion
from partwise.fresh.asked.refused import Refused
from partwise.fresh.states import PartStates, SampleBehind, states_of, states_then, with_stand_ins
from partwise.ledger.database import Reading
from partwise.ledger.facts import LedgerFacts
from partwise.ledger.ledger import Ledger
from partwise.ledger.read.as_of import sequence_at
from partwise.ledger.read.newest_settled import Found, newest_settled, on_record
from partwise.ledger.read.past_facts import PastFacts
from partwise.plan.next import parts_text
from partwise.tables import Graph

_SHOWN = 3


@dataclass(frozen=True)
class Looked:
    """`note`: why the answer is not as of now, if it is not."""

    states: PartStates
    seq: int
    note: str = ""


@dataclass(frozen=True)
class Looking:
    """At one view with a sample."""

    view: str
    sampled: Sampled
    rule: Sample
    question: FreshQuestion
    length: int

    def at(self, ledger: Ledger, seq: int | None = None, moment: float | None = None) -> Looked:
        """Raises Refused."""
        with ledger.database.reading() as r:
            graph = ledger.graph_at(r)
            if self.view not in graph.tables or self.sampled.sample not in graph.tables:
                raise Refused(
                    "sample-behind", f"the sample of {self.view} is not built yet", "`partwise run` builds it"
                )
            if moment is not None and moment < r.at:
                seq = sequence_at(r, moment)
            if seq is not None and seq < r.seq:
                return Looked(self._then(r, graph, seq), seq)
            facts = LedgerFacts(r)
            states = self._chosen(states_of(graph, facts, time.time(), self.view, self.sampled.sample))
            try:
                return Looked(self._compared(states, graph, facts), r.seq)
            except SampleBehind as why:
                found = newest_settled(r, graph, dict.fromkeys(self.sampled.fresh_tables, states.dirty))
                if found.seq is None or found.seq >= r.seq:
                    raise
                try:
                    return Looked(self._then(r, graph, found.seq), found.seq, _note(graph, found))
                except Refused:
                    raise why from None

    def _then(self, r: Reading, graph: Graph, seq: int) -> PartStates:
        facts = PastFacts(r, seq)
        states = self._chosen(states_then(graph, facts, self.view, self.sampled.sample))
        if seq < on_record(r, graph.upstream([self.view, *self.sampled.fresh_tables])):
            message = "what was stale at that time is not on record: definitions or history changed since"
            raise Refused("not-on-record", message, "ask for a later time, or leave out --as-of")
        return self._compared(states, graph, facts)

    def _chosen(self, states: PartStates) -> PartStates:
        import duckdb

        with duckdb.connect(":memory:") as clock:
            clock.execute("SET TimeZone = 'UTC'")
            everything = states.clean | states.dirty | states.beyond
            return states.within(chosen_parts(clock, self.question, everything, self.length))

    def _compared(self, states: PartStates, graph: Graph, facts: LedgerFacts) -> PartStates:
        if not states.dirty:
            return states
        begins, own = facts.start(self.view), facts.start(self.sampled.sample)
        if graph[self.sampled.sample].self_references and begins != own:
            message = f"the sample of {self.view} does not begin where {self.view} begins, so its sums are others"
            raise Refused("sample-behind", message, "refresh the view")
        return with_stand_ins(states, graph, facts, self.view, self.sampled, self.rule)


def _note(graph: Graph, found: Found) -> str:
    shown = []
    for item in found.in_the_way[:_SHOWN]:
        table = graph[item.table]
        shown.append(
            f"{table.name}[{parts_text(item.parts, table.length)}] waits ({item.due.cause.text(graph, False)})"
        )
    return "the sample is not up to date: " + "; ".join(shown)
