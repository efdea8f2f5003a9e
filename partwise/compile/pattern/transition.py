"""One row moves a group's runs on: every column of the helper as an expression of the old columns and the row.

The same text serves the fold over many rows (`old` is the accumulator) and the join of one row with the helper
(`old` is the group's row of the part before). `new` is the row that comes in both.

Which edge wins where two lead into one state: stay, if that edge fires, else advance. With an aggregate that is
restricted to a variable, advance wins if both runs began with the same row (then they have the same length):
earlier variables take as many rows as they can.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from partwise.compile.pattern.aggregates import Measure, Value, always_there
from partwise.compile.pattern.automaton import Edge
from partwise.compile.pattern.registers import Register, RegisterShape
from partwise.sql.text import Piece, operand, quoted
from partwise.sql.types.names import decimal_of

OLD, NEW = "old.", "new."


@dataclass(frozen=True, slots=True)
class Branch:
    """One way to get into a state; `same_start` is the extra condition of the greedy rule."""

    edge: Edge
    same_start: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the helper: its expression, and its type where it is known.

    `sample` is an expression over a row that has the type of the column.
    """

    name: str
    value: str
    type: str | None
    sample: Value | None = None


def columns(shape: RegisterShape, without: frozenset[str] = frozenset()) -> list[Column]:
    """All columns besides the keys. Conditions in `without` are known to hold and not written."""
    found: list[Column] = []
    for register in shape.registers:
        branches = _branches(shape, register)
        key_type = "boolean" if register.flag else "bigint" if register.by_count else "int"
        keys = [_key(shape, register, b.edge) for b in branches]
        found.append(Column(register.key, _case(shape, branches, keys, key_type, without), key_type))
        for measure, name in register.fields.items():
            values = [_advanced(shape, measure, b.edge) for b in branches]
            # Only sums and counts can have another type than what they are made of.
            kind = measure.type if measure.kind in ("sum", "count", "rows") else None
            text = _case(shape, branches, values, kind, without)
            found.append(Column(name, text, measure.type, measure.value))
    for text, (name, kind) in shape.last.items():
        found.append(Column(name, _on_new(shape, text), kind, shape.last_values[text]))
    return found


def _on_new(shape: RegisterShape, text: str) -> str:
    return shape.last_values[text].write(lambda c: NEW + quoted(c))


def _branches(shape: RegisterShape, register: Register) -> list[Branch]:
    """In order of preference: the highest state first, which is what simulation asks for."""
    machine = shape.machine
    found: list[Branch] = []
    for state in reversed(register.states):
        edges = machine.into(state)
        stay = [e for e in edges if e.source == state]
        enter = [e for e in edges if e.source != state]
        before = state - 1
        rivals = shape.restricted and stay and before >= machine.first_plus
        if rivals and shape.of(before) is not register:  # in one register they are never alive together
            mine, other = shape.length(state, OLD), shape.length(before, OLD)
            found += [Branch(e, f"{other} = {mine}") for e in enter]
        found += [Branch(e) for e in (*stay, *enter)]
    return found


def _key(shape: RegisterShape, register: Register, edge: Edge) -> str | None:
    if register.flag:
        return "TRUE"
    if not register.by_count:
        return str(edge.target + 1)
    return "1" if edge.source is None else _plus_one(shape.length(edge.source, OLD))


def _plus_one(old: str) -> str:
    return str(int(old) + 1) if old.isdigit() else f"{old} + 1"


def _advanced(shape: RegisterShape, measure: Measure, edge: Edge) -> str | None:
    """The measure after taking in the new row along this edge; None where the state does not have it."""
    if not measure.lives_in(edge.target):
        return None
    old = shape.old(measure, edge.source, OLD) if edge.source is not None else None
    if measure.variable is not None and measure.variable != edge.target:
        return old
    if measure.kind == "rows":
        return "1" if old is None else _plus_one(old)
    assert measure.value is not None
    new = measure.value.write(lambda c: NEW + quoted(c))
    there = always_there(measure, shape.machine)
    if measure.kind == "count":
        one = "1" if there else f"IF({operand(new)} IS NULL, 0, 1)"
        return one if old is None else f"{old} + {one}"
    if measure.kind == "last":
        return None if measure.variable == edge.target else old
    if old is None:
        return new
    if measure.kind == "first":
        return old
    if measure.kind == "sum":
        return f"{old} + {operand(new)}" if there else f"COALESCE({old} + {operand(new)}, {old}, {new})"
    return f"{'LEAST' if measure.kind == 'min' else 'GREATEST'}({old}, {new})"


def _case(
    shape: RegisterShape, branches: list[Branch], values: list[str | None], kind: str | None, without: frozenset[str]
) -> str:
    """CASE over the branches; neighbours that differ only in the state they come from become one."""
    merged: list[tuple[Register | None, list[int], str, str | None]] = []
    for branch, value in zip(branches, values, strict=True):
        register = None if branch.edge.source is None else shape.of(branch.edge.source)
        conditions = [
            c.write(lambda name: NEW + quoted(name), lambda name: OLD + shape.last[quoted(name)][0])
            for c in branch.edge.conditions
            if c.canonical not in without
        ]
        text = " AND ".join([*conditions, *([branch.same_start] if branch.same_start else [])])
        if merged and register is not None and merged[-1][0] is register and merged[-1][2:] == (text, value):
            merged[-1][1].append(branch.edge.source if branch.edge.source is not None else -1)
        else:
            merged.append((register, [branch.edge.source] if branch.edge.source is not None else [], text, value))
    while merged and merged[-1][3] is None:
        merged.pop()
    if not merged:
        return f"CAST(NULL AS {kind.upper()})" if kind else "NULL"
    lines = []
    for register, states, conditions_text, value in merged:
        alive = [] if register is None else [register.alive(states, shape.machine.first_plus, OLD)]
        guard = " AND ".join([*alive, *([conditions_text] if conditions_text else [])])
        lines.append((guard, value or "NULL"))
    return _cast(_write_case(lines), kind, [value for *_, value in merged if value])


def _write_case(lines: list[tuple[str, str]]) -> str:
    text = ""
    for guard, value in lines:
        if not guard:
            return f"CASE{text} ELSE {value} END" if text else value
        text += f" WHEN {guard} THEN {value}"
    return f"CASE{text} END"


def _reads_old(text: str) -> bool:
    return any(a.text + b.text == OLD for a, b in pairwise(Piece(text).tokens))


def _cast(text: str, kind: str | None, values: list[str]) -> str:
    """Types must not move from step to step: Spark refuses a fold whose accumulator changes its type."""
    if kind is None:
        return text
    carried = any(_reads_old(value) for value in values)
    literal = kind == "boolean" or (kind == "int" and all(value.isdigit() for value in values))
    if (carried and decimal_of(kind) is None) or literal:
        return text
    return f"CAST({text} AS {kind.upper()})"
