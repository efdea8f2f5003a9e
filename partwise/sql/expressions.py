"""Looking into an expression: which columns it reads, and whether a row alone decides its value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from partwise.spelling import did_you_mean
from partwise.sql.determinism import not_repeatable
from partwise.sql.parse import SqlProblem, TranslationError, tokenise
from partwise.sql.text import Piece, one_line, plain, quoted


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """A column where it is used. `start`..`end` covers the qualifier and the column, not fields of it."""

    qualifier: str | None
    name: str
    written: str
    start: int
    end: int


def columns(piece: Piece, qualifiers: Iterable[str]) -> list[ColumnUse]:
    """Every use of a column, in order. `v.x` is column x of v if v is one of `qualifiers`, else field x of column v."""
    known = set(qualifiers)
    found = []
    for node in piece.tree.find_all(exp.Column):
        names = [part for part in node.parts if isinstance(part, exp.Identifier)]
        if not names:
            continue  # `b.*`, looked at by whoever allows it
        if any("start" not in name.meta for name in names):
            raise TranslationError(
                SqlProblem(
                    piece.offset,
                    "bad-expression",
                    f"'{node.sql('spark')}' cannot be located",
                    "put backticks around it",
                )
            )
        first = plain(names[0].name)
        qualified = first in known and len(names) > 1
        column = names[1] if qualified else names[0]
        start, end = piece.offset + names[0].meta["start"], piece.offset + column.meta["end"] + 1
        written = piece.text[column.meta["start"] : column.meta["end"] + 1]
        found.append(ColumnUse(first if qualified else None, plain(column.name), written, start, end))
    return sorted(found, key=lambda use: use.start)


def spelled(piece: Piece, qualifiers: Iterable[str]) -> str:
    """The text on one line, with quotes around columns whose names would end a clause where they stand alone."""
    uses = [u for u in columns(piece, qualifiers) if not u.written.startswith("`")]
    return one_line(piece.splice((u.end - len(u.written), u.end, quoted(u.written)) for u in uses))


def row_problems(piece: Piece, where: str) -> Iterator[SqlProblem]:
    """Why an expression is not decided by one row (or two) alone."""
    tree = piece.tree
    if isinstance(tree, exp.Alias):
        last = piece.tokens[-1]
        yield SqlProblem(
            last.start, "bad-expression", f"'{last.text}' follows an expression", "is AND or a comma missing?"
        )
    if tree.find(exp.Select, exp.Subquery):  # EXISTS alone may be the function: exists(array, x -> x > 1)
        yield SqlProblem(piece.offset, "unsupported-expression", f"subqueries are not allowed in {where}",
                      "read the other table in a view of its own and query that view")  # fmt: skip
    elif tree.find(exp.Window):
        yield SqlProblem(piece.offset, "unsupported-expression", f"window functions are not allowed in {where}")
    elif tree.find(exp.AggFunc):
        yield SqlProblem(piece.offset, "unsupported-expression", f"aggregates are not allowed in {where}",
                      "conditions on aggregates go under HAVING")  # fmt: skip


def changing(text: str) -> list[SqlProblem]:
    """Functions that give another value each time, wherever in a query: a part must equal its recomputation."""
    return [SqlProblem(p.start, p.code, p.message, p.hint) for p in not_repeatable(tokenise(text).tokens)]


def previous_problem(piece: Piece) -> SqlProblem | None:
    """PREV where it cannot stand."""
    for token, after in zip(piece.tokens, piece.tokens[1:], strict=False):
        if token.keyword == "PREV" and after.text == "(":
            return SqlProblem(token.start, "unsupported-expression", "PREV compares a row with the one before it: it is only "
                           "allowed in WHERE of a pattern", "LAST(x) and FIRST(x) show rows of a match")  # fmt: skip
    return None


def unknown_columns(
    uses: Iterable[ColumnUse], known: Mapping[str | None, tuple[str, Mapping[str, str | None] | None]]
) -> Iterator[SqlProblem]:
    """Columns that their table does not have. `known`: qualifier -> (table, columns or None if unknown)."""
    for use in uses:
        table, names = known.get(use.qualifier, known.get(None, ("", None)))
        if names is None or use.name in {plain(name) for name in names}:
            continue
        hint = did_you_mean(use.name, names, f"its columns are {', '.join(names)}")
        yield SqlProblem(use.start, "unknown-column", f"{table} has no column {use.name}", hint)
