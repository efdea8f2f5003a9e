"""The narrowest helper that is still exact: which states can share one set of columns.

- Simulation: a higher state that can do whatever a lower one can, with runs that began no later, makes the
  lower one superfluous while it is alive. Unsound with aggregates restricted to a variable (the lower state
  may hold the greedier assignment of the same rows), so it is left out there.
- Exclusion: two states whose incoming edges contradict each other are never alive together.
States that pairwise do one or the other share a register: one set of columns and the number of the state.
- Sharing: where every row that enters or stays in states c+1..d could also have stayed in c, a run in d is a run in
  c too, with the same start. Of d only a flag is kept, its aggregates are those of c. Not with restricted aggregates
  either: the two may assign the same rows in different ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from partwise.compile.pattern.automaton import Edge, Machine
from partwise.compile.pattern.implication import contradicts, implies


@dataclass(frozen=True, slots=True)
class RegisterLayout:
    """`registers`: the states of each, in ascending order; every state is in exactly one.

    `shared`: a state that has a register of its own without aggregates -> the state whose aggregates it has.
    """

    registers: tuple[tuple[int, ...], ...]
    simulated: frozenset[tuple[int, int]]
    exclusive: frozenset[tuple[int, int]]
    shared: Mapping[int, int] = field(default_factory=dict)

    def of(self, state: int) -> int:
        return next(r for r, states in enumerate(self.registers) if state in states)


def analyse(machine: Machine, *, restricted: bool) -> RegisterLayout:
    simulated = frozenset() if restricted else simulation(machine)
    exclusive = exclusion(machine)
    owners = {} if restricted else sharing(machine)
    registers: list[list[int]] = []
    shared: dict[int, int] = {}

    def fits(state: int, register: list[int]) -> bool:
        """Whether the state may have the columns of this register. Those that others share must stay theirs."""
        return not any(other in shared for other in register) and all(
            (other, state) in exclusive or ((state, other) in simulated and other not in shared.values())
            for other in register
        )

    for state in range(machine.size):
        found = next((register for register in registers if fits(state, register)), None)
        if found is not None:
            found.append(state)
            continue
        registers.append([state])
        if state in owners:
            shared[state] = owners[state]
    return RegisterLayout(tuple(tuple(r) for r in registers), simulated, exclusive, shared)


def simulation(machine: Machine) -> frozenset[tuple[int, int]]:
    """Pairs (high, low) where `high` simulates `low`: the greatest relation that the edges respect."""
    last = machine.size - 1
    pairs = {(h, low) for h in range(machine.size) for low in range(h + 1) if not (low == last and h != last)}
    while True:
        kept = {(h, low) for h, low in pairs if all(_matched(machine, h, edge, pairs) for edge in machine.out_of(low))}
        if kept == pairs:
            return frozenset((h, low) for h, low in pairs if h != low)
        pairs = kept


def _matched(machine: Machine, high: int, edge: Edge, pairs: set[tuple[int, int]]) -> bool:
    return any(
        (other.target, edge.target) in pairs and implies(edge.atoms(), other.atoms()) for other in machine.out_of(high)
    )


def sharing(machine: Machine) -> dict[int, int]:
    """State -> the lowest state c that is alive with the same start whenever it is: c has a plus, and all edges into
    and on the states between imply that c stays."""
    found: dict[int, int] = {}
    for c in range(machine.size):
        stay = [edge.atoms() for edge in machine.into(c) if edge.source == c]
        for state in range(c + 1, machine.size):
            if not stay or not all(implies(edge.atoms(), stay[0]) for edge in machine.into(state)):
                break
            found.setdefault(state, c)
    return found


def exclusion(machine: Machine) -> frozenset[tuple[int, int]]:
    """Pairs (low, high) of states that no row can enter together. A start has no previous row, so there only
    conditions on the row itself count; those are all that the start edge has."""
    return frozenset(
        (low, high)
        for high in range(machine.size)
        for low in range(high)
        if all(contradicts(a.atoms(), b.atoms()) for a in machine.into(low) for b in machine.into(high))
    )
