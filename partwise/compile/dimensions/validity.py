"""Dimensions whose rows are valid for a time: rows of other tables are joined with what was valid at their time.

    FROM sales[j] s JOIN prices p ON p.item = s.item
    FROM sales[j] s JOIN (every row of prices with when it begins and ends to be valid) p
                      ON (p.item = s.item) AND s.ts >= p.begins AND s.ts < p.ends

A row is valid until the next one of the same key is. What is valid at a time depends on no other time: a changed row
concerns the parts that hold its time, and no others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from partwise.compile.dimensions import TIMED, time_of_part
from partwise.compile.dimensions.joins import DimensionJoin, dimension_joins
from partwise.definitions.definitions import Definition, Dimension, Source
from partwise.sql.columns import place
from partwise.sql.parse import SqlProblem, TranslationError
from partwise.sql.references import Analysis, FoundReference, analyse
from partwise.sql.text import Piece, plain, quoted
from partwise.sql.types.declared import NUMBERS, base

#: Microseconds since 1970 from which on and until which a row is valid.
SINCE, UNTIL = "__valid_since", "__valid_until"
#: Before every time that there is: of rows that do not say from when on.
_EVER = -9000000000000000000


def at_their_time(text: str, analysis: Analysis, tables: Mapping[str, Definition]) -> str:
    """The statement in which each row meets what was valid at its time; the same text if it reads no such dimension.

    `tables` by lower-case name; those that are not among them have parts (helpers). Raises TranslationError.
    """
    read = {found.table.lower() for found in analysis.found.tables}
    timed = {name: table for name, table in tables.items() if name in read and isinstance(table, Dimension)}
    timed = {name: table for name, table in timed.items() if table.valid_from is not None}
    if not timed or analysis.tree is None:
        return text
    parts = [t.start for t in analysis.found.tables if not isinstance(tables.get(t.table.lower()), Dimension)]
    columns = _Columns(analysis, tables)
    joins = dimension_joins(text, analysis, dict.fromkeys(timed, TIMED), parts, columns)
    changes: list[tuple[int, int, str]] = []
    for join in joins:
        _refuse_stars(join, tables)
        dimension = timed[join.table.table.lower()]
        time = _time_of(join.to, tables.get(join.to.table.lower()))
        alias = quoted(join.table.alias or join.table.table)
        own = "" if join.table.alias else f" {alias}"
        changes.append((join.table.start, join.table.end, f"({_ranges(dimension, join.table.written)}){own}"))
        start, end = join.condition
        condition = Piece(text).cut(start, end)
        valid = f"{time} >= {alias}.{SINCE} AND ({alias}.{UNTIL} IS NULL OR {time} < {alias}.{UNTIL})"
        changes.append((condition.offset, condition.offset + len(condition.text), f"({condition.text}) AND {valid}"))
    return Piece(text).splice(changes)


class _Columns:
    """Columns of tables by the place of their names, as far as they are declared."""

    def __init__(self, analysis: Analysis, tables: Mapping[str, Definition]) -> None:
        self.at = {t.start: tables.get(t.table.lower()) for t in analysis.found.tables}

    def __call__(self, start: int) -> Collection[str] | None:
        table = self.at.get(start)
        if isinstance(table, Source | Dimension) and table.columns:
            return {plain(name) for name in table.columns}
        return None


def _ranges(dimension: Dimension, name: str) -> str:
    """The rows of a dimension, each with the time for which it is valid."""
    assert dimension.valid_from is not None
    begins = f"COALESCE(UNIX_MICROS(CAST({quoted(dimension.valid_from)} AS TIMESTAMP)), {_EVER}L)"
    keys = ", ".join(quoted(column) for column in dimension.key[:-1])
    following = (
        f"MIN({SINCE}) OVER (PARTITION BY {keys} ORDER BY {SINCE} RANGE BETWEEN 1L FOLLOWING AND UNBOUNDED FOLLOWING)"
    )
    return f"SELECT *, {following} AS {UNTIL} FROM (SELECT *, {begins} AS {SINCE} FROM {name})"


def _time_of(found: FoundReference, table: Definition | None) -> str:
    """Microseconds since 1970 of a row: its event time, or of a view when its part begins."""
    qualifier = quoted(found.alias or found.table)
    if not isinstance(table, Source):
        return time_of_part(qualifier)
    column = f"{qualifier}.{quoted(table.time.column)}"
    if table.time.unit is None:
        return f"UNIX_MICROS(CAST({column} AS TIMESTAMP))"
    factor = 1_000_000 if table.time.unit == "seconds" else 1_000
    kinds = {name.lower(): base(kind) for name, kind in table.columns.items()}
    kind = kinds.get(table.time.column.lower(), "bigint")
    if kind in ("double", "float"):
        return f"CAST({column} * {factor}D AS BIGINT)"
    if kind in NUMBERS and kind != "decimal":
        return f"CAST({column} AS BIGINT) * {factor}L"
    return f"CAST(FLOOR(CAST({column} AS DECIMAL(28,6)) * {factor}L) AS BIGINT)"


def _refuse_stars(join: DimensionJoin, tables: Mapping[str, Definition]) -> None:
    """`*` would show when rows are valid, too, and that of a view when its part begins."""
    hidden = {"", join.alias}
    if not isinstance(tables.get(join.to.table.lower()), Source):
        hidden.add(plain(join.to.alias or join.to.table))
    for item in join.select.expressions:
        if item.is_star and plain(getattr(item, "table", "") or "") in hidden:
            what = f"{join.table.table} is {TIMED.what}: columns have to be named beside it"
            raise TranslationError(
                SqlProblem(place(item)[0], TIMED.code, what, "name the columns that the result needs")
            )


def valid_text(text: str, index: str, tables: Mapping[str, Definition]) -> str:
    """The same for a text that nobody has analysed yet."""
    return at_their_time(text, analyse(text, index), tables)
