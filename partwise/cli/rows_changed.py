"""Which rows of a rolling table came and went since a given time: its two versions, compared as multisets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from partwise.cli.views.show import plural, say, table
from partwise.reading import NotKept, pinned

if TYPE_CHECKING:
    from partwise.storage.query import PinnedTable
    from partwise.workspace import Workspace

_OLD, _NEW = "rows before", "rows now"


@dataclass(frozen=True)
class RowsChanged:
    """`came` and `went` are rows with these columns, at most as many as were asked for; the counts are of all."""

    columns: tuple[str, ...]
    came: tuple[tuple[Any, ...], ...] = ()
    went: tuple[tuple[Any, ...], ...] = ()
    came_count: int = 0
    went_count: int = 0

    def to_json(self) -> dict[str, Any]:
        named = {
            word: [{c: _plain(v) for c, v in zip(self.columns, row, strict=True)} for row in rows]
            for word, rows in (("came", self.came), ("went", self.went))
        }
        return {**named, "came_count": self.came_count, "went_count": self.went_count}


def rows_changed(where: Workspace, name: str, moment: float, limit: int) -> RowsChanged | str:
    """What the table holds now and did not hold then, and the other way round; or why that cannot be told."""

    def wanted(names: list[str]) -> list[str]:
        return [name]

    try:
        with pinned(where, wanted, moment) as (before, _), pinned(where, wanted) as (now, _):
            return _compared(before.get(name), now.get(name), limit)
    except NotKept as why:
        return str(why)


def _compared(before: PinnedTable | None, now: PinnedTable | None, limit: int) -> RowsChanged:
    from partwise.storage.query import query

    if now is None or now.version is None:
        return RowsChanged(())
    if before is None or before.version is None or before.path != now.path:
        # Of a table that was made again with other columns no row is the same.
        before = replace(now, version=0)
    tables = {_OLD: before, _NEW: now}
    found: dict[str, Any] = {}
    for word, one, other in (("came", _NEW, _OLD), ("went", _OLD, _NEW)):
        rows = f'SELECT * FROM "{one}" EXCEPT ALL SELECT * FROM "{other}"'
        listed = query(f"{rows} ORDER BY ALL LIMIT {limit}", tables)
        found[word] = tuple(listed.rows)
        found[f"{word}_count"] = int(query(f"SELECT COUNT(*) FROM ({rows})", tables).rows[0][0])
    return RowsChanged(listed.columns, **found)


def show(found: RowsChanged) -> None:
    say(f"{plural(found.came_count, 'row')} came, {plural(found.went_count, 'row')} went.", "bold")
    rows = [(sign, *map(_text, row)) for sign, some in (("+", found.came), ("-", found.went)) for row in some]
    if rows:
        table(("", *found.columns), rows)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
