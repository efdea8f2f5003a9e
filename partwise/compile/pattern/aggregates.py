"""Aggregates of a pattern query -> measures: what has to be carried along while a run grows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from partwise.compile.pattern.automaton import Machine
from partwise.compile.pattern.implication import never_null
from partwise.sql.calls import Call
from partwise.sql.expressions import columns, row_problems
from partwise.sql.parse import SqlProblem, TranslationError
from partwise.sql.text import Piece, one_line, plain, quoted
from partwise.sql.types.known import Columns, average_type, is_number, sum_type, type_of
from partwise.sql.types.names import decimal_of

Kind = Literal["rows", "count", "sum", "min", "max", "first", "last"]
AGGREGATES = "COUNT(*), COUNT(x), COUNT_IF(x), SUM(x), AVG(x), MIN(x), MAX(x), FIRST(x), LAST(x)"


@dataclass(frozen=True, slots=True)
class Value:
    """An expression over one row. `condition` (FILTER) makes it NULL where it does not hold."""

    body: str
    uses: tuple[tuple[int, int, str], ...]
    condition: Value | None = None

    def write(self, column: Callable[[str], str]) -> str:
        text = self.body
        for start, end, name in sorted(self.uses, reverse=True):
            text = text[:start] + column(name) + text[end:]
        text = one_line(text)
        return text if self.condition is None else f"CASE WHEN {self.condition.write(column)} THEN {text} END"

    @property
    def column_names(self) -> list[str]:
        return [name for _, _, name in self.uses] + (self.condition.column_names if self.condition else [])


@dataclass(frozen=True, slots=True)
class Measure:
    """`variable`: only rows of this variable count (None: all rows of the run)."""

    kind: Kind
    value: Value | None
    variable: int | None
    type: str | None

    def lives_in(self, state: int) -> bool:
        return self.variable is None or state >= self.variable


#: COUNT(*): how many rows the run has.
LENGTH = Measure("rows", None, None, "bigint")


@dataclass(frozen=True, slots=True)
class Measured:
    """How a call is computed from measures in the final view; `{0}`, `{1}` stand for their columns."""

    measures: tuple[Measure, ...]
    formula: str


def measured(call: Call, machine: Machine, tables: list[str], known: Columns | None) -> Measured:
    """Raises where the call is not one that patterns have."""
    if call.name not in ("count", "count_if", "sum", "avg", "min", "max", "first", "last"):
        raise _refused(call, f"{call.name.upper()} is not supported over a pattern")
    if call.distinct:
        raise _refused(call, "DISTINCT is not supported over a pattern")
    if len(call.args) != 1:
        raise _refused(call, f"{call.name.upper()} over a pattern takes one expression")
    arg = call.args[0]
    star = _star_variable(arg, machine)
    if call.name == "count" and (star is not None or call.star) and call.filter is None:
        return Measured((Measure("rows", None, star, "bigint"),), "{0}")
    if star is not None or (call.star and call.name != "count"):
        raise _refused(call, f"* is not allowed in {call.name.upper()}")
    if call.name in ("first", "last") and (call.filter is not None or call.ignore_nulls):
        raise _refused(call, f"{call.name.upper()} over a pattern takes the row as it is: no FILTER, no IGNORE NULLS")
    value, variable, tree_type = _value(call, machine, tables, known)
    if call.name in ("count", "count_if"):
        return Measured((Measure("count", value, variable, "bigint"),), "{0}")
    if call.name in ("sum", "avg"):
        if not is_number(tree_type):
            what = f"is {tree_type}" if tree_type else "has no known type here"
            raise TranslationError(
                SqlProblem(arg.offset, "unknown-type", f"'{arg.text}' {what}; {call.name.upper()} needs a number",
                        f"say which: {call.name.upper()}(CAST({arg.text} AS DECIMAL(18,2))), or DOUBLE, or BIGINT")
            )  # fmt: skip
        total = Measure("sum", value, variable, sum_type(tree_type))
        if call.name == "sum":
            return Measured((total,), "{0}")
        count = Measure("count", value, variable, "bigint")
        if (found := decimal_of(tree_type)) is not None:
            if found[0] > 24 and found[1] > 2:
                raise TranslationError(
                    SqlProblem(arg.offset, "unknown-type", f"'{arg.text}' is {tree_type}; a sum of so many digits cannot be "
                            "divided without losing some", f"AVG(CAST({arg.text} AS DECIMAL(24,{min(found[1], 20)})))")
                )  # fmt: skip
            return Measured(
                (total, count), f"CAST({{0}} / NULLIF({{1}}, 0) AS {(average_type(tree_type) or '').upper()})"
            )
        return Measured((total, count), "CAST({0} AS DOUBLE) / NULLIF({1}, 0)")
    kinds: dict[str, Kind] = {"min": "min", "max": "max", "first": "first", "last": "last"}
    return Measured((Measure(kinds[call.name], value, variable, tree_type),), "{0}")


def _refused(call: Call, message: str) -> TranslationError:
    return TranslationError(SqlProblem(call.start, "unsupported-aggregate", message, f"supported: {AGGREGATES}"))


def _star_variable(arg: Piece, machine: Machine) -> int | None:
    """`b.*` -> the state of b."""
    words = arg.tokens
    if len(words) == 3 and words[1].text == "." and words[2].text == "*":
        return next((k for k, v in enumerate(machine.variables) if v.name == plain(words[0].text)), None)
    return None


def _value(
    call: Call, machine: Machine, tables: list[str], known: Columns | None
) -> tuple[Value, int | None, str | None]:
    names = [v.name for v in machine.variables]
    found = _variables(call.args[0], names, tables)
    if call.filter is not None:
        kept = _variables(call.filter, names, tables)
        # Of a variable's rows, a bare column in FILTER is that of the same row.
        found |= kept - {None} if found - {None} else kept
    if len(found) > 1:
        raise TranslationError(
            SqlProblem(call.start, "bad-aggregate", f"{call.name.upper()} mixes rows of several variables",
                    "use one variable (SUM(b.x)), or none for all matched rows (SUM(x))")
        )  # fmt: skip
    name = found.pop() if found else None
    arg = call.args[0]
    condition = _plain_value(call.filter, names, tables) if call.filter is not None else None
    if call.name == "count_if":
        both = _plain_value(arg, names, tables)
        both = both if condition is None else Value(both.body, both.uses, condition)
        value = Value("1", (), both)
    elif call.star:
        value = Value("1", (), condition)
    else:
        plain_value = _plain_value(arg, names, tables)
        value = Value(plain_value.body, plain_value.uses, condition)
    kind = type_of(_bare(arg, names, tables).tree, known) if not call.star else "int"
    return value, (names.index(name) if name is not None else None), kind


def _variables(piece: Piece, names: list[str], tables: list[str]) -> set[str | None]:
    """The variables whose rows an expression reads; None stands for columns without one."""
    if piece.text == "*":
        return set()
    problems = list(row_problems(piece, "an aggregate"))
    if problems:
        raise TranslationError(*problems)
    return {use.qualifier if use.qualifier in names else None for use in columns(piece, [*names, *tables])}


def _plain_value(piece: Piece, names: list[str], tables: list[str]) -> Value:
    uses = columns(piece, [*names, *tables])
    return Value(piece.text, tuple((u.start - piece.offset, u.end - piece.offset, u.name) for u in uses))


def _bare(piece: Piece, names: list[str], tables: list[str]) -> Piece:
    """The expression with bare columns, for finding its type."""
    return Piece(_plain_value(piece, names, tables).write(quoted))


def always_there(measure: Measure, machine: Machine) -> bool:
    """Whether no row that counts has NULL here, because the edges that take it in say so."""
    if measure.value is None or measure.value.condition is not None:
        return measure.value is None
    text = measure.value.write(lambda c: f"n.{quoted(c)}").lower()
    edges = [e for e in machine.edges if measure.variable is None or e.target == measure.variable]
    return all(never_null(edge.atoms(), text) for edge in edges)
