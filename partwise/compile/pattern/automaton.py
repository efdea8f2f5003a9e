"""Pattern query -> state machine.

State k means: a run of consecutive rows, ending at the newest one, matches the first k+1 variables. Edges:
start (the row alone may be variable 0), advance k-1 -> k, and stay k -> k for variables with a plus.
The paper puts a one-row condition of a plus variable on its self edge only; it belongs on the edge that
enters the state as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from partwise.compile.parse import Variable
from partwise.compile.pattern.implication import Atom, atoms, contradicts
from partwise.sql.expressions import ColumnUse, columns, row_problems
from partwise.sql.parse import SqlProblem, TranslationError
from partwise.sql.text import Piece, conjunct, one_line, plain, quoted
from partwise.sql.types.known import Columns, is_number, type_of

CONDITIONS = (
    "a condition may use one variable (a.x > 5), a variable and the one before it (b.x > a.x), "
    "a plus variable and its previous row (b.x > PREV(b.x)), or no variable (it then filters the rows)"
)


@dataclass(frozen=True, slots=True)
class Use:
    """A column of the new row, or (`previous`) of the row before it."""

    column: str
    previous: bool
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class Condition:
    """One conjunct of WHERE. `calls` are the places of PREV( and )."""

    piece: Piece
    uses: tuple[Use, ...]
    calls: tuple[tuple[int, int], ...]
    columns: Columns | None

    def write(self, new: Callable[[str], str], previous: Callable[[str], str]) -> str:
        changes = [(u.start, u.end, previous(u.column) if u.previous else new(u.column)) for u in self.uses]
        changes += [(start, end, "") for start, end in self.calls]
        return conjunct(one_line(self.piece.splice(changes)))

    @cached_property
    def canonical(self) -> str:
        return self.write(lambda c: f"n.{quoted(c)}", lambda c: f"p.{quoted(c)}")

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        def numeric(tree: exp.Expression) -> bool:
            return is_number(type_of(tree, self.columns))

        return atoms(Piece(self.canonical).tree, numeric)

    @property
    def on_previous(self) -> bool:
        return any(use.previous for use in self.uses)


@dataclass(frozen=True, slots=True)
class Edge:
    """From state `source` (None: a run starts here) to state `target`, where all conditions hold."""

    source: int | None
    target: int
    conditions: tuple[Condition, ...]

    def atoms(self) -> list[Atom]:
        return [atom for condition in self.conditions for atom in condition.atoms]

    def text(self) -> str:
        return " AND ".join(condition.canonical for condition in self.conditions) or "TRUE"


@dataclass(frozen=True, slots=True)
class Machine:
    variables: tuple[Variable, ...]
    edges: tuple[Edge, ...]
    filters: tuple[Condition, ...]

    @property
    def size(self) -> int:
        return len(self.variables)

    @property
    def first_plus(self) -> int:
        """The first variable with a plus (the number of variables if there is none)."""
        return next((k for k, v in enumerate(self.variables) if v.plus), self.size)

    def into(self, state: int) -> list[Edge]:
        return [edge for edge in self.edges if edge.target == state]

    def out_of(self, state: int) -> list[Edge]:
        return [edge for edge in self.edges if edge.source == state]

    def describe(self) -> str:
        """The machine as text, one edge a line."""
        names = [v.name for v in self.variables]
        lines = [
            f"{'start' if e.source is None else names[e.source]} -> {names[e.target]}: {e.text()}" for e in self.edges
        ]
        return "\n".join([*lines, *(f"rows: {f.canonical}" for f in self.filters)])


def build(variables: tuple[Variable, ...], where: Piece | None, tables: list[str], known: Columns | None) -> Machine:
    """Sort every conjunct of WHERE to its edges. Raises with every problem."""
    one: dict[int, list[Condition]] = {k: [] for k in range(len(variables))}
    two: dict[int, list[Condition]] = {k: [] for k in range(len(variables))}
    prev: dict[int, list[Condition]] = {k: [] for k in range(len(variables))}
    filters: list[Condition] = []
    problems: list[SqlProblem] = []
    index = {v.name: k for k, v in enumerate(variables)}
    for piece in where.conjuncts() if where is not None else []:
        try:
            place, at, condition = _sort(piece, variables, index, tables, known)
        except TranslationError as error:
            problems += error.problems
            continue
        {"one": one, "two": two, "prev": prev}[place][at].append(condition) if place != "filter" else filters.append(
            condition
        )
    if problems:
        raise TranslationError(*problems)
    edges = [Edge(None, 0, tuple(one[0]))]
    for k, variable in enumerate(variables):
        if k:
            edges.append(Edge(k - 1, k, (*one[k], *two[k])))
        if variable.plus:
            edges.append(Edge(k, k, (*one[k], *prev[k])))
    machine = Machine(variables, tuple(edges), tuple(filters))
    _refuse_impossible(machine)
    return machine


def _sort(
    piece: Piece, variables: tuple[Variable, ...], index: Mapping[str, int], tables: list[str], known: Columns | None
) -> tuple[str, int, Condition]:
    """Where a conjunct belongs: ("one" | "two" | "prev" | "filter", state, condition)."""
    problems = list(row_problems(piece, "a pattern condition"))
    inside, marks = _previous_calls(piece)
    uses = columns(piece, [*index, *tables])
    named = [use for use in uses if use.qualifier in index]
    states = sorted({index[use.qualifier] for use in named if use.qualifier is not None})
    strange = [use for use in uses if is_unknown_variable(piece, use, known)]
    if strange:
        problems += [no_variable(use, variables) for use in strange]
    elif named and len(named) < len(uses):
        loose = next(use for use in uses if use.qualifier not in index)
        problems.append(SqlProblem(loose.start, "bad-condition", f"'{piece.text}' mixes variables with the bare column "
                                f"{loose.written}", f"write {variables[states[0]].name}.{loose.written}"))  # fmt: skip
    elif len(states) > 2 or (len(states) == 2 and states[1] - states[0] > 1):
        names = ", ".join(variables[k].name for k in states)
        problems.append(SqlProblem(piece.offset, "bad-condition", f"'{piece.text}' compares variables that are not "
                                f"neighbours: {names}", CONDITIONS))  # fmt: skip
    elif marks and (len(states) != 1 or not variables[states[0]].plus):
        problems.append(SqlProblem(piece.offset, "bad-condition", f"PREV in '{piece.text}' must be of a plus variable, "
                                "compared with the same variable", CONDITIONS))  # fmt: skip
    if problems:
        raise TranslationError(*problems)
    last = states[-1] if states else 0

    def use_of(use: ColumnUse) -> Use:
        before = len(states) == 2 and use.qualifier is not None and index[use.qualifier] < last
        in_call = any(a <= use.start < b for a, b in inside)
        return Use(plain(use.written), before or in_call, use.start, use.end)

    condition = Condition(piece, tuple(map(use_of, uses)), tuple(marks), known)
    place = "filter" if not states else "prev" if marks else "two" if len(states) == 2 else "one"
    return place, last, condition


def is_unknown_variable(piece: Piece, use: ColumnUse, known: Columns | None) -> bool:
    """`c.loss` where neither a variable nor a column is called c."""
    dotted = piece.text[use.end - piece.offset :].startswith(".")
    return dotted and use.qualifier is None and known is not None and use.name not in map(plain, known)


def no_variable(use: ColumnUse, variables: tuple[Variable, ...]) -> SqlProblem:
    names = ", ".join(v.name for v in variables)
    return SqlProblem(use.start, "bad-condition", f"there is no variable {use.written}", f"the variables are {names}")


def _previous_calls(piece: Piece) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """What PREV(...) encloses, and the places of `PREV(` and `)`; the parentheses stay around a formula."""
    inside: list[tuple[int, int]] = []
    marks: list[tuple[int, int]] = []
    tokens = piece.tokens
    for at, token in enumerate(tokens[:-1]):
        if token.upper != "PREV" or tokens[at + 1].text != "(":
            continue
        close = next(t for t in tokens[at + 2 :] if t.text == ")" and t.depth == tokens[at + 1].depth)
        if any(a <= token.start < b for a, b in inside):
            raise TranslationError(
                SqlProblem(token.start, "bad-condition", "PREV is not allowed inside PREV: only the row before is kept",
                        "compare two rows that follow each other, or give each row a variable of its own")
            )  # fmt: skip
        inner = piece.cut(tokens[at + 1].end, close.start)
        if len(inner.split()) != 1 or not inner.text:
            raise TranslationError(SqlProblem(token.start, "bad-condition", "PREV takes one expression", CONDITIONS))
        inside.append((inner.offset, close.start))
        simple = all(t.word or t.text == "." for t in inner.tokens)
        marks += [(token.start, tokens[at + 1].end), (close.start, close.end)] if simple else [(token.start, token.end)]
    return inside, marks


def _refuse_impossible(machine: Machine) -> None:
    """An edge that never fires makes the whole pattern empty: surely a mistake."""
    problems = []
    for edge in machine.edges:
        for at, condition in enumerate(edge.conditions):
            others = [c for c in edge.conditions[: at + 1] if contradicts(c.atoms, condition.atoms)]
            if others:
                problems.append(
                    SqlProblem(condition.piece.offset, "impossible-condition",
                            f"'{condition.piece.text}' and '{others[0].piece.text}' can never both hold, so nothing would match",
                            "a pattern is one sequence: every variable must be possible")
                )  # fmt: skip
            elif any(a.left == "false" and a.relations == {1} and a.right is None for a in condition.atoms):
                problems.append(
                    SqlProblem(condition.piece.offset, "impossible-condition", "this condition never holds")
                )
    if problems:
        raise TranslationError(*problems)
