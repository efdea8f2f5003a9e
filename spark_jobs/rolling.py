"""A large rolling table moves on: only files of rows that came, went or have to move are written.

The rows are those of its grid, each with the last part that shows it (`partwise.compile.several.grid`); which files
there are is decided by `partwise.storage.wheel`. The digest of a file is in its name, so that of the table is a sum, and
nothing is read that stays. Without Spark: what is written is a small part of the table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from deltalake import Schema

from partwise import storage
from partwise.choose.rolling import by_wheel
from partwise.compile.several.shown import HELPER, LAST_PART, shown_for
from partwise.ledger.write.commit import Content
from partwise.parts import FOREVER, Parts, Range
from partwise.storage import File, Handle
from partwise.storage.arrow import dataset
from partwise.storage.schema import PART
from partwise.storage.staging import write
from partwise.storage.wheel import Turn, WheelCell, cell_of, turn
from spark_jobs.step.compute import Computing
from spark_jobs.step.digest import EMPTY, added
from spark_jobs.step.small import parquet

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class Turned:
    """`staged` files come and `removed` ones go; `moved` are paths of those that change no row."""

    staged: tuple[File, ...]
    removed: tuple[File, ...]
    moved: frozenset[str]
    digest: str
    live: tuple[File, ...]


def whole(computing: Computing, contents: Mapping[int, Content], files: Mapping[str, tuple[File, ...]]) -> Turned:
    """The staged files instead of all there are; no files at all if they hold the same rows."""
    handle, held = computing.own, {content.digest for content in computing.pin.before.values()}
    assert handle is not None
    (content,) = contents.values()
    if content.digest in held:
        return Turned((), (), frozenset(), content.digest, handle.files)
    staged = tuple(file for some in files.values() for file in some)
    return Turned(staged, handle.files, frozenset(), content.digest, staged)


def turn_wheel(computing: Computing, j: int, name: str) -> Turned | None:
    """Stage what changes in a rolling table at part j. None: it is written whole."""
    handle, grid = computing.own, _grid(computing)
    if handle is None or grid is None or j == computing.pin.start:
        return None
    cells = {file: named for file in handle.files if (named := cell_of(file.path)) is not None}
    is_wheel = len(cells) == len(handle.files)
    rows = sum(content.rows for content in computing.pin.before.values())
    if computing.pin.shown is None or not by_wheel(rows, is_wheel and bool(cells), computing.engine.wheel_rows):
        return None
    width = shown_for(computing.view.update.text)
    changed = Parts.of((j - width + 1, j))
    if is_wheel:
        before = computing.pin.shown
        changed &= before.changed[computing.view.name + HELPER] | Parts.of((before.parts.last + 1, FOREVER))
    found = turn([cell for cell, _ in cells.values()] if is_wheel else (), j, width, changed)
    made = carry_out(found, handle, grid, j, name, {cell: (file, digest) for file, (cell, digest) in cells.items()})
    going = {*found.gone, *found.shifted}
    removed = [file for file in handle.files if not is_wheel or cells[file][0] in going]
    kept = [file for file in handle.files if file not in removed]
    digests = [cells[file][1] for file in kept] + [digest for _, digest in made.values()]
    moved = {file.path for file in removed if is_wheel and cells[file][0] in found.shifted}
    moved |= {file.path for file, (cell, _) in made.items() if cell in found.settled}
    return Turned(tuple(made), tuple(removed), frozenset(moved), added([EMPTY, *digests]), (*kept, *made))


def _grid(computing: Computing) -> Handle | None:
    """The rows of the view with their last parts, where it is kept so."""
    name = computing.view.name + HELPER
    return computing.handle(name) if name in computing.pin.inputs else None


def carry_out(
    found: Turn, handle: Handle, grid: Handle, position: int, name: str, old: Mapping[WheelCell, tuple[File, str]]
) -> dict[File, tuple[WheelCell, str]]:
    """Write the files of a turn. Returns them with their cells and digests; a cell without rows has none.

    `old` are the files there are. Rows that are merged come from these, the others from the grid: which row of a file
    leaves when is known there alone.
    """
    import pyarrow as pa  # type: ignore[import-untyped]

    schema = pa.schema(Schema.from_json(handle.schema).to_arrow())
    made: dict[File, tuple[WheelCell, str]] = {}

    def keep(cell: WheelCell, rows: Any, digest: str) -> None:
        if not made:
            storage.begin(handle, name)
        made[write(handle, name, cell.name(digest), parquet(rows))] = (cell, digest)

    by_came: dict[Range, list[WheelCell]] = defaultdict(list)
    for cell in found.fresh:
        by_came[cell.came].append(cell)
    for cell in found.settled:
        if (merged := _merged(cell, found)) is None:
            by_came[cell.came].append(cell)
        else:
            files = [old[each] for each in merged]
            keep(cell, dataset(handle, [file for file, _ in files]).to_table(), added(digest for _, digest in files))
    last = _last_part(grid)
    for came, cells in by_came.items():
        rows = _rows(grid, came, max(position, min(c.ends.lo for c in cells)), max(c.ends.hi for c in cells))
        for cell in cells:
            wanted = _between(rows, last, cell.ends).select(schema.names).cast(schema)
            if wanted.num_rows:
                keep(cell, wanted, digest_of(wanted))
    return made


def _merged(cell: WheelCell, found: Turn) -> list[WheelCell] | None:
    """The old cells that a new one is put together from; None if one of them is split."""
    inside = [
        old
        for old in found.shifted
        if old.ends.lo <= cell.ends.lo <= old.ends.hi and cell.came.lo <= old.came.lo <= cell.came.hi
    ]
    return inside if all(old.ends == cell.ends for old in inside) else None


def _rows(grid: Handle, came: Range, first: int, last: int) -> Any:
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    ends = pc.field(_last_part(grid))
    inside = (pc.field(PART) >= came.lo) & (pc.field(PART) <= came.hi) & (ends >= first) & (ends <= last)
    return dataset(grid, grid.files_of(Parts.of(came))).to_table(filter=inside)


def _between(rows: Any, column: str, span: Range) -> Any:
    import pyarrow.compute as pc

    values = rows.column(column)
    return rows.filter(pc.and_(pc.greater_equal(values, span.lo), pc.less_equal(values, span.hi)))


def _last_part(grid: Handle) -> str:
    """The grid's last column."""
    assert grid.columns[-1].startswith(LAST_PART), grid.columns
    return grid.columns[-1]


@cache
def _engine() -> DuckDBPyConnection:
    """Opening one costs more than hashing a small file."""
    import duckdb

    return duckdb.connect(":memory:")


def digest_of(rows: Any) -> str:
    """Rows and the sums of two hashes of each, by DuckDB: equal rows of any order have equal digests.

    It is compared only with digests of tables that are kept in the same way.
    """
    columns = ", ".join('"' + name.replace('"', '""') + '"' for name in rows.column_names)
    sums = ", ".join(f"SUM(hash({salt}, {columns}))" for salt in (42, 7))
    connection = _engine().cursor()
    connection.register("rows", rows)
    count, *found = connection.execute(f"SELECT COUNT(*), {sums} FROM rows").fetchall()[0]
    connection.unregister("rows")
    return f"{count}:" + "".join(f"{int(each or 0) % 2**64:016x}" for each in found)
