"""The columns of a pattern's helper: names, and what they mean in each state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from partwise.compile.pattern.aggregates import LENGTH, Measure, Value
from partwise.compile.pattern.automaton import Machine
from partwise.compile.pattern.narrow import RegisterLayout
from partwise.compile.select import Names
from partwise.sql.text import quoted


@dataclass(frozen=True)
class Register:
    """States that share columns. `key` tells which of them is alive (NULL: none).

    Where the length of the run gives the state (`by_count`), the key is the length itself: before the first plus
    variable a run of k rows is in state k-1, and at most one state of the register lies beyond.
    A `flag` has no columns besides its key, which is TRUE: its state has the aggregates of another one.
    """

    states: tuple[int, ...]
    key: str
    by_count: bool
    flag: bool = False
    fields: dict[Measure, str] = field(default_factory=dict)

    def alive(self, states: Sequence[int], first_plus: int, prefix: str) -> str:
        """The condition that one of these states is alive."""
        name = prefix + self.key
        wanted = sorted(states)
        if tuple(wanted) == self.states:
            return f"{name} IS NOT NULL"
        numbers = [state + 1 for state in wanted]
        beyond = self.by_count and wanted[-1] >= first_plus
        if beyond and len(numbers) == numbers[-1] - numbers[0] + 1:
            return f"{name} >= {numbers[0]}"
        if beyond:
            low = numbers[:-1]
            inner = f"{name} = {low[0]}" if len(low) == 1 else f"{name} IN ({', '.join(map(str, low))})"
            return f"({inner} OR {name} >= {numbers[-1]})"
        return f"{name} = {numbers[0]}" if len(numbers) == 1 else f"{name} IN ({', '.join(map(str, numbers))})"


@dataclass(frozen=True)
class RegisterShape:
    """All columns of the helper besides the group's keys. `last`: columns of the newest row, once per group."""

    machine: Machine
    registers: tuple[Register, ...]
    last: dict[str, tuple[str, str | None]]  # text of the expression over bare columns -> (name, type)
    last_values: dict[str, Value]
    restricted: bool
    shared: Mapping[int, int] = field(default_factory=dict)

    def of(self, state: int) -> Register:
        return next(r for r in self.registers if state in r.states)

    def length(self, state: int, prefix: str) -> str:
        """The length of the run that is in `state`."""
        found = self.old(LENGTH, state, prefix)
        assert found is not None
        return found

    def old(self, measure: Measure, state: int, prefix: str) -> str | None:
        """A measure of the run that is in `state` before the new row; None if it has none yet."""
        if not measure.lives_in(state):
            return None
        register = self.of(self.shared.get(state, state))
        if measure.kind == "last" and (measure.variable is None or measure.variable == state):
            assert measure.value is not None
            return prefix + self.last[measure.value.write(quoted)][0]
        if measure == LENGTH:
            if register.by_count:
                return prefix + register.key
            if state < self.machine.first_plus:
                return str(state + 1)
        return prefix + register.fields[measure]


def shape(
    machine: Machine,
    layout: RegisterLayout,
    measures: dict[Measure, str],
    last: dict[str, tuple[str, str | None]],
    last_values: dict[str, Value],
    taken: list[str],
    restricted: bool,
) -> RegisterShape:
    """`measures`: with the name each would like to have; `last`: expression -> (wished name, type)."""
    names = Names([*taken, "old", "new"])  # the generated SQL calls its rows so
    first = machine.first_plus
    counted = LENGTH in measures and first < machine.size  # without a plus the length is known
    registers = []
    for states in layout.registers:
        many = len(layout.registers) > 1
        suffix = "_" + "_".join(machine.variables[s].name for s in states) if many else ""
        flag = any(s in layout.shared for s in states)
        by_count = not flag and counted and sum(s >= first for s in states) <= 1
        wish = "reached" if flag else measures[LENGTH] if by_count else "state"
        key = quoted(names.new(wish + suffix))
        fields = {
            m: quoted(names.new(wished + suffix))
            for m, wished in measures.items()
            if not flag and any(_has_column(m, s, first, by_count, counted) for s in states)
        }
        registers.append(Register(states, key, by_count, flag, fields))
    named = {text: (quoted(names.new(wished)), kind) for text, (wished, kind) in last.items()}
    return RegisterShape(machine, tuple(registers), named, last_values, restricted, layout.shared)


def _has_column(measure: Measure, state: int, first_plus: int, by_count: bool, counted: bool) -> bool:
    if not measure.lives_in(state):
        return False
    if measure.kind == "last" and (measure.variable is None or measure.variable == state):
        return False
    if measure == LENGTH:
        return counted and not by_count and state >= first_plus
    return True
