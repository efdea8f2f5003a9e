"""Few changed keys: all of them exactly, instead of an estimate.

A stale part was computed from versions of its inputs that the ledger knows. What has changed in them since is in files
that one version has and the other has not, so nothing else is looked at. Where every changed input carries the key, the
keys of changed rows are all that can differ: their rows are computed from the inputs, those of the others stay.

Nothing is taken on trust: sampled keys that differ must be among those found, and computed rows must be those of the
sample. Otherwise there is an estimate, as for many changed keys.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, select

from partwise.compile.program import CompiledView, Program, Sampled
from partwise.compile.relations import Relations
from partwise.compile.sample.generate import HASH, basis
from partwise.compile.sample.hashing import threshold
from partwise.fresh.adding.compared import in_parts, quoted
from partwise.fresh.adding.exactly import NotAlike, alike
from partwise.fresh.states import PartStates
from partwise.ledger.ledger import Ledger
from partwise.ledger.read.as_of import versions_at
from partwise.ledger.read.pin import Version
from partwise.ledger.schema import part as part_table
from partwise.object_store import is_remote
from partwise.parts import Parts
from partwise.storage import StorageError, open_at
from partwise.storage.files import folder
from partwise.storage.handle import File, Handle
from partwise.storage.paths import table_path
from partwise.storage.query import parquet

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: More keys are estimated: an interval is quicker than to compute them.
MOST_KEYS, MOST_ROWS = 1_000, 200_000
_PARTS = select(part_table.c.part, part_table.c.as_of, part_table.c.changed_seq, part_table.c.fingerprint).where(
    part_table.c.table == bindparam("t"), part_table.c.part.between(bindparam("lo"), bindparam("hi"))
)


@dataclass(frozen=True)
class _Input:
    """A reference that carries the key: of which table, which parts of it, by which SQL."""

    name: str
    parts: Parts | None
    key: str


def may_be_few(sampled: Sampled, states: PartStates) -> bool:
    """Of a part that is not built yet all keys are new."""
    return bool(states.stale) and not states.missing and len(sampled.key) == 1 and sampled.key[0][1] != "timestamp"


def changed_keys(
    connection: DuckDBPyConnection,
    ledger: Ledger,
    warehouse: str,
    program: Program,
    view: CompiledView,
    sampled: Sampled,
    states: PartStates,
    seq: int,
) -> frozenset[str | None] | None:
    """All keys of which stale parts may have other rows by now, as text; None if they are many, or are not known."""
    graph = program.graph()
    if not may_be_few(sampled, states) or any(graph[n].forward or graph[n].timed for n in graph.upstream([view.name])):
        return None
    try:
        found: set[str | None] = set()
        for at, parts in _computed_as_of(ledger, view.name, states.stale, seq).items():
            found |= _changed_since(connection, ledger, warehouse, program, view, sampled, parts, at, seq)
            if len(found) > MOST_KEYS:
                return None
        _deny_others(connection, view.name, sampled, states.stale, found)
    except (NotAlike, StorageError):
        return None
    return frozenset(found)


def _computed_as_of(ledger: Ledger, view: str, stale: Parts, seq: int) -> Mapping[int, Parts]:
    """Parts by the sequence that they were computed as of. Raises NotAlike where that is not what was published at `seq`."""
    today = ledger.graph()[view].fingerprint
    found: dict[int, list[int]] = defaultdict(list)
    with ledger.database.reading() as r:
        for row in r.on.execute(_PARTS, {"t": view, "lo": stale.first, "hi": stale.last}):
            if row.part not in stale:
                continue
            if row.fingerprint != today or row.as_of > seq or row.changed_seq > seq:
                raise NotAlike("it was computed in another way, or later")
            found[row.as_of].append(row.part)
    return {at: Parts.single(*parts) for at, parts in found.items()}


def _changed_since(
    connection: DuckDBPyConnection,
    ledger: Ledger,
    warehouse: str,
    program: Program,
    view: CompiledView,
    sampled: Sampled,
    parts: Parts,
    before: int,
    seq: int,
) -> set[str | None]:
    with ledger.database.reading() as r:
        then, now = versions_at(r, before), versions_at(r, seq)
    found: set[str | None] = set()
    for item in _inputs(program, view, sampled, parts):
        old, new = then.get(item.name), now.get(item.name)
        if old == new:
            continue
        found |= _keys_between(connection, warehouse, item, old, new)
    return found


def _inputs(program: Program, view: CompiledView, sampled: Sampled, parts: Parts) -> list[_Input]:
    """References of the query; those that do not carry the key have an empty `key`."""
    table = basis(view)
    carried = Relations(program).of(table).carried
    spelled = {name.lower(): name for name in program.usable}
    made = []
    for n, reference in enumerate(table.update.found.tables):
        read = None
        if reference.reference is not None:
            read = Parts.of(*(reference.reference.requires(p) for p in parts))
        name = spelled.get(reference.table.lower(), reference.table)
        made.append(_Input(name, read, carried.get(n, {}).get(sampled.key[0][0], "")))
    return made


def _keys_between(
    connection: DuckDBPyConnection, warehouse: str, item: _Input, old: Version | None, new: Version | None
) -> set[str | None]:
    """Of rows that one version has and the other has not. Raises NotAlike."""
    if old is None or new is None or old.version is None or new.version is None or old.generation != new.generation:
        raise NotAlike(f"{item.name} was made again")
    path = table_path(warehouse, item.name, new.generation)
    if is_remote(path):
        raise NotAlike("files in a store are not compared")
    one, other = open_at(path, old.version), open_at(path, new.version)
    gone, came = _only(one, other, item.parts), _only(other, one, item.parts)
    if not gone and not came:
        return set()
    counts = [file.rows for file in (*gone, *came)]
    if not item.key or one.schema != other.schema or None in counts or sum(c or 0 for c in counts) > MOST_ROWS:
        raise NotAlike(f"what changed in {item.name} is not known by key")
    root = folder(path)
    if any(root.size(file.path) is None for file in gone):
        raise NotAlike(f"{item.name} has lost the files that were read")
    columns = ", ".join(quoted(c) for c in other.columns if c != "_file")
    before, after = (_rows(handle, files, columns, item.parts) for handle, files in ((one, gone), (other, came)))
    key = alike(f"SELECT {item.key} AS k FROM t")
    rows = f"(({before} EXCEPT ALL {after}) UNION ALL ({after} EXCEPT ALL {before}))"
    found = connection.execute(
        f"WITH t AS {rows} SELECT DISTINCT CAST(k AS VARCHAR) FROM ({key}) LIMIT {MOST_KEYS + 1}"
    ).fetchall()
    return {None if row[0] is None else str(row[0]) for row in found}


def _only(one: Handle, other: Handle, parts: Parts | None) -> list[File]:
    """Files that one version has alone."""
    there = {file.path for file in other.files}
    return [file for file in (one.files if parts is None else one.files_of(parts)) if file.path not in there]


def _rows(handle: Handle, files: list[File], columns: str, parts: Parts | None) -> str:
    if not files:
        files = list(handle.files[:1])
        return f"SELECT {columns} FROM {parquet(handle.uris(files))} WHERE FALSE" if files else _nothing()
    where = "" if parts is None else f" WHERE {in_parts(parts)}"
    return f"SELECT {columns} FROM {parquet(handle.uris(files))}{where}"


def _nothing() -> str:
    raise NotAlike("one of the versions has no files")


def _deny_others(
    connection: DuckDBPyConnection, view: str, sampled: Sampled, stale: Parts, keys: set[str | None]
) -> None:
    """Sampled keys whose fresh rows are not the published ones must be among those that changed. Raises NotAlike."""
    columns = [(str(row[0]), str(row[1])) for row in connection.execute(f"DESCRIBE {quoted(view)}").fetchall()]
    # Doubles may have been added in another order.
    own = ", ".join(
        f"CAST({quoted(c)} AS FLOAT) AS {quoted(c)}" if kind == "DOUBLE" else quoted(c)
        for c, kind in columns
        if c.lower() != "part_timestamp"
    )
    there = in_parts(stale)
    fresh = f"SELECT {own} FROM {quoted(sampled.sample)} WHERE {there} AND {HASH} <= {threshold(sampled.ratio)}"
    was = f"SELECT {own} FROM {quoted(sampled.was)} WHERE {there}"
    differing = f"(({fresh} EXCEPT ALL {was}) UNION ALL ({was} EXCEPT ALL {fresh}))"
    key = quoted(sampled.key[0][0])
    rows = connection.execute(f"SELECT DISTINCT CAST({key} AS VARCHAR) FROM {differing}").fetchall()
    if any((None if row[0] is None else str(row[0])) not in keys for row in rows):
        raise NotAlike("other keys of the sample differ")
