"""What somebody asks the page for, checked: each problem is one sentence."""

from __future__ import annotations

from dataclasses import dataclass

from partwise.parts import BadTime, Range, parse_part, parse_range
from partwise.spelling import as_spelled, nearest
from partwise.tables import DIMENSION_PART, Graph, Table

#: Seconds since 1970 that the calendar knows: years 1 to 9999.
EARLIEST, LATEST = -62_135_596_800, 253_402_300_799
MOST_CELLS = 2_000
#: Lengths of cells in seconds: from one second to a year of weeks.
LADDER = (
    *(1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200),
    *(86400, 172800, 604800, 1209600, 2419200, 4838400, 14515200, 31449600),
)


class BadAsk(Exception):
    """Something that cannot be answered; the message is meant for people."""


@dataclass(frozen=True, slots=True)
class HeatWindow:
    """From one moment up to another (seconds since 1970, the end not included), and seconds per cell."""

    begin: int
    end: int
    resolution: int


def window(begin: int, end: int, cells: int) -> HeatWindow:
    """The window, with the finest resolution that needs no more cells than requested."""
    if not EARLIEST <= begin <= LATEST or not EARLIEST <= end <= LATEST:
        raise BadAsk("from and to are seconds since 1970 within the years 1 to 9999.")
    if begin >= end:
        raise BadAsk(f"from ({begin}) must be before to ({end}).")
    if not 1 <= cells <= MOST_CELLS:
        raise BadAsk(f"cells is {cells}; expected 1 to {MOST_CELLS}.")
    return HeatWindow(begin, end, resolution(end - begin, cells))


def resolution(span: int, cells: int) -> int:
    each = -(-span // cells)
    return next((step for step in LADDER if step >= each), each)


def table_of(graph: Graph, name: str) -> Table:
    """The table that is meant; upper and lower case are the same."""
    found = as_spelled(name, graph.tables)
    if found is None:
        close = nearest(name, graph.tables)
        hint = f" Did you mean {close}?" if close else ""
        raise BadAsk(f"There is no table {name[:80]!r}.{hint}")
    return graph[found]


def part_of(table: Table, text: str | None) -> int:
    if table.kind == "dimension":
        return DIMENSION_PART
    if not text:
        raise BadAsk(f"Which part of {table.name}? Write for example part=2026-10-03T10:05.")
    return range_of(table, text).lo if ".." in text else _part(table, text)


def _part(table: Table, text: str) -> int:
    try:
        return _bounded(parse_part(text, table.length), table)
    except BadTime as why:
        raise BadAsk(_sentence("part", why)) from None


def range_of(table: Table, text: str) -> Range:
    try:
        found = parse_range(text, table.length)
    except BadTime as why:
        raise BadAsk(_sentence("range", why)) from None
    return Range(_bounded(found.lo, table), _bounded(found.hi, table))


def _bounded(part: int, table: Table) -> int:
    if not EARLIEST <= part * table.length <= LATEST:
        raise BadAsk(f"Part #{part} of {table.name} lies outside of the years 1 to 9999.")
    return part


def _sentence(name: str, why: BadTime) -> str:
    return f"{name}: {why}.".replace("?.", "?")
