"""`[ROWS 100 PER src WITHIN 1 day]`: the last rows of each group, as text and as SQL.

Each part keeps the last rows of its groups in a helper; a window reads those of its parts and takes the last of them.
WITHIN bounds how far back a late row can matter: without it every repair would run to the newest part.
"""

from __future__ import annotations

from dataclasses import dataclass

from partwise.compile.model import InputTable
from partwise.compile.parse import WindowClause, seconds_of
from partwise.sql.parse import SqlProblem, TranslationError
from partwise.sql.text import Piece, plain, quoted

_FORM = "write [ROWS 100 PER src WITHIN 1 day]"


@dataclass(frozen=True, slots=True)
class LastRows:
    """The newest `count` rows per group `by`, newest by `order`, within a window."""

    count: int
    by: tuple[str, ...]
    order: tuple[str, ...]
    window: WindowClause

    def last(self, source: str, columns: tuple[str, ...], alias: str = "") -> str:
        """The last rows of each group of a relation, as a query."""
        order = ", ".join(f"{name} DESC" for name in self.order)
        place = f"ROW_NUMBER() OVER (PARTITION BY {', '.join(self.by)} ORDER BY {order}) AS __place"
        names = ", ".join(columns)
        return f"SELECT {names} FROM (SELECT {names}, {place} FROM {source}) WHERE __place <= {self.count}"


def columns_of(table: InputTable) -> tuple[str, ...]:
    return tuple(quoted(name) for name in table.columns or () if plain(name) not in ("part", "part_timestamp"))


def read_rows(inside: Piece, offset: int, table: InputTable) -> LastRows:
    tokens = inside.tokens
    per = next((t for t in tokens if t.upper == "PER"), None)
    within = next((t for t in tokens if t.upper == "WITHIN"), None)
    if within is None:
        what = "ROWS needs WITHIN: without it a late row would change every later part"
        raise TranslationError(SqlProblem(offset, "rows-window", what, _FORM))
    if per is None or not tokens or not tokens[0].text.isdigit() or int(tokens[0].text) < 1:
        raise TranslationError(SqlProblem(offset, "rows-window", "ROWS needs a number of rows and PER", _FORM))
    end = inside.offset + len(inside.text)
    by = inside.cut(per.end, within.start).split()
    if table.time is None or table.tie is None:
        what = f"ROWS needs a tie column: {table.name} does not say which of two rows of equal time is the last"
        hint = f"declare time: {{column: {table.time or 'event_time'}, tie: ...}} on {table.name}"
        raise TranslationError(SqlProblem(offset, "rows-window", what, hint))
    if table.columns is None:
        what = f"ROWS needs to know the columns of {table.name}"
        raise TranslationError(SqlProblem(offset, "rows-window", what, f"declare columns on {table.name}"))
    known = {plain(name): name for name in table.columns}
    for piece in by:
        if plain(piece.text) not in known:
            what = f"{table.name} has no column {piece.text or '(nothing)'}"
            raise TranslationError(
                SqlProblem(piece.offset, "unknown-column", what, f"its columns are {', '.join(known)}")
            )
    names = tuple(quoted(known[plain(piece.text)]) for piece in by)
    first = [table.time, table.tie]
    # Rows alike in time and tie are told apart by their values, so that the choice is the same each time.
    others = [n for n, kind in (table.columns or {}).items() if n not in first and _has_order(n, kind)]
    window = WindowClause(seconds_of(inside.cut(within.end, end)), None, offset)
    return LastRows(int(tokens[0].text), names, tuple(quoted(n) for n in [*first, *others]), window)


def _has_order(name: str, kind: str | None) -> bool:
    return plain(name) not in ("part", "part_timestamp") and "map<" not in (kind or "").lower()
