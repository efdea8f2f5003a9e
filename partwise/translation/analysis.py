"""The narrowest helper that is still exact: which states can share one set of columns.

- Simulation: a higher state that can do whatever a lower one can, with runs that began no later, makes the
  lower one superfluous while it is alive. Unsound with aggregates restricted to a variable (the lower state
  may hold the greedier assignment of the same rows), so it is left out there.
- Exclusion: two states whose incoming edges contradict each other are never alive together.
States that pairwise do one or the other share a register: one set of columns and the number of the state.
"""

from __future__ import annotations

from dataclasses import dataclass

from partwise.translation.implication import contradicts, implies
from partwise.translation.machine import Edge, Machine


@dataclass(frozen=True, slots=True)
class Layout:
    """`registers`: the states of each, in ascending order; every state is in exactly one."""

    registers: tuple[tuple[int, ...], ...]
    simulated: frozenset[tuple[int, int]]
    exclusive: frozenset[tuple[int, int]]

    def of(self, state: int) -> int:
        return next(r for r, states in enumerate(self.registers) if state in states)


def analyse(machine: Machine, *, restricted: bool) -> Layout:
    simulated = frozenset() if restricted else simulation(machine)
    exclusive = exclusion(machine)
    registers: list[list[int]] = []
    for state in range(machine.size):
        for register in registers:
            if all((state, other) in simulated or (other, state) in exclusive for other in register):
                register.append(state)
                break
        else:
            registers.append([state])
    return Layout(tuple(tuple(r) for r in registers), simulated, exclusive)


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


def exclusion(machine: Machine) -> frozenset[tuple[int, int]]:
    """Pairs (low, high) of states that no row can enter together. A start has no previous row, so there only
    conditions on the row itself count; those are all that the start edge has."""
    return frozenset(
        (low, high)
        for high in range(machine.size)
        for low in range(high)
        if all(contradicts(a.atoms(), b.atoms()) for a in machine.into(low) for b in machine.into(high))
    )
