"""Ad-hoc SQL by DuckDB over pinned versions of tables, without a JVM.

Each table is a view over exactly the files of its version, so a query over several tables sees all
of them from one snapshot, whatever is being committed meanwhile. Local files DuckDB reads by itself, those of an object
store through pyarrow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partwise.object_store import explained, is_remote, meaning
from partwise.parts import Parts
from partwise.storage import schema as schemas
from partwise.storage.errors import StoreProblem
from partwise.storage.files import folder

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]
    from duckdb import DuckDBPyConnection

    from partwise.storage.handle import File, Handle

_TYPES = {
    "string": "VARCHAR",
    "long": "BIGINT",
    "integer": "INTEGER",
    "short": "SMALLINT",
    "byte": "TINYINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
}


#: For an unknown table DuckDB proposes the nearest name it knows, which may be one of its own that nobody requested.
_SYSTEM = re.compile(r'\nDid you mean "(?:pg_|duckdb_|sqlite_|information_schema)[^\n]*')
#: The end of the names by which DuckDB knows what it reads through pyarrow.
_STORE = " in the store"
_NEAR = re.compile(r'at or near "([^"]+)"')


class BadQuery(Exception):
    """The SQL could not be run; the message is DuckDB's, with the names that are known."""


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A table as a query sees it. Without a version it is empty and has the given schema.

    `parts` are the parts that exist: a source's table also holds rows of parts that are not closed yet.
    """

    path: str
    version: int | None
    schema: str | None = None
    parts: Parts | None = None


@dataclass(frozen=True, slots=True)
class Result:
    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    sequence: int | None = None  # of the ledger, as of which the tables were read


def query(sql: str, tables: Mapping[str, PinnedTable]) -> Result:
    """Runs one statement. Times are in UTC. Raises BadQuery, NoTable."""
    import duckdb

    with connect(sql, tables) as connection:
        try:
            found = connection.execute(sql)
            if found is None or not found.description:  # a comment, or nothing but a semicolon
                return Result((), (), [])
            columns = tuple(str(column[0]) for column in found.description)
            types = tuple(str(column[1]) for column in found.description)
            return Result(columns, types, found.fetchall())
        except (duckdb.Error, OSError) as why:
            _tell_of_store(str(why), tables)
            if not isinstance(why, duckdb.Error):
                raise
            raise _refused(why, tables) from why


def arrow(sql: str, tables: Mapping[str, PinnedTable]) -> pa.Table:
    """What one statement gives as Arrow: columns keep their types, and nothing is copied row by row. Times are in UTC.

    Raises BadQuery, StorageError.
    """
    import duckdb
    import pyarrow as pa

    with connect(sql, tables) as connection:
        try:
            found = connection.sql(sql)
            return pa.table({}) if found is None else found.to_arrow_table()
        except (duckdb.Error, OSError) as why:
            _tell_of_store(str(why), tables)
            if not isinstance(why, duckdb.Error):
                raise
            raise _refused(why, tables) from why


def _tell_of_store(said: str, tables: Mapping[str, PinnedTable]) -> None:
    """Raises StoreProblem if the store is to blame for what was said, and not the query."""
    path = next((pin.path for pin in tables.values() if is_remote(pin.path)), None)
    if path is None:
        return
    if meaning(said) is not None:
        raise StoreProblem(explained(path, said))
    if _STORE in said:
        # pyarrow keeps the store's reasons to itself: asked directly, it says them again.
        folder(path).read("_delta_log/_last_checkpoint")


def _refused(why: Exception, tables: Iterable[str]) -> BadQuery:
    """A table may be called like a word of DuckDB's SQL that Spark's does not know: `anti`, `asof`, `pivot`."""
    names = sorted(tables)
    near = _NEAR.search(str(why))
    taken = next((name for name in names if near is not None and name.lower() == near[1].lower()), None)
    quotes = (
        "" if taken is None else f'\n{taken} is a word of DuckDB\'s SQL: write the table in double quotes, "{taken}".'
    )
    return BadQuery(f"{_SYSTEM.sub('', str(why))}{quotes}\nTables of this workspace: {', '.join(names) or 'none'}")


def connect(sql: str, tables: Mapping[str, PinnedTable]) -> DuckDBPyConnection:
    """A connection in which the tables that the text mentions are views."""
    import duckdb

    connection = duckdb.connect(":memory:")
    connection.execute("SET TimeZone = 'UTC'")
    for name in mentioned(sql, tables):
        connection.execute(f"CREATE VIEW {_quoted(name)} AS {_select(name, tables[name], connection)}")
    return connection


def mentioned(sql: str, names: Iterable[str]) -> list[str]:
    """Which of these tables the text may be about: any word in it may be a name.

    Opening a thousand tables for a query over two would take a second.
    """
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    return [name for name in names if set(re.findall(r"\w+", name.lower())) <= words]


def _select(name: str, pin: PinnedTable, connection: DuckDBPyConnection) -> str:
    from partwise.storage.table import open_at

    if pin.version is None:
        if pin.schema is None:
            raise ValueError("a table without a version needs a schema")
        return _empty(pin.schema)
    handle = open_at(pin.path, pin.version)
    files = handle.files if pin.parts is None else handle.files_of(pin.parts)
    if not files:
        return _empty(handle.schema)
    columns = ", ".join(_quoted(name) for name in handle.columns)
    hidden = [] if pin.parts is None else [f for f in files if not f.only_holds(pin.parts)]
    where = f" WHERE {_in_parts(pin.parts)}" if pin.parts is not None and hidden else ""
    return f"SELECT {columns} FROM {rows_of(handle, files, connection, name)}{where}"


def rows_of(handle: Handle, files: Sequence[File], connection: DuckDBPyConnection, name: str) -> str:
    """What DuckDB reads these files of a table by. `name` is of no other relation in this connection."""
    if is_remote(handle.path):
        from partwise.storage.arrow import dataset

        connection.register(f"{name}{_STORE}", dataset(handle, files))
        return _quoted(f"{name}{_STORE}")
    return parquet(handle.uris(files))


def parquet(paths: Iterable[str]) -> str:
    """Local files. Nothing may be guessed from paths: `a=1` in a folder's name is no column."""
    return f"read_parquet([{', '.join(map(_text, paths))}], hive_partitioning = false)"


def _in_parts(parts: Parts) -> str:
    spans = (f"{schemas.PART} BETWEEN {lo} AND {hi}" for lo, hi in parts.ranges)
    return f"({' OR '.join(spans)})"


def _empty(schema: str) -> str:
    columns = ", ".join(f"CAST(NULL AS {_type(kind)}) AS {_quoted(name)}" for name, kind in schemas.fields(schema))
    return f"SELECT {columns} WHERE false"


def _type(kind: Any) -> str:
    if isinstance(kind, str):
        return _TYPES.get(kind, kind)  # decimal(p,s) is written the same
    if kind["type"] == "array":
        return f"{_type(kind['elementType'])}[]"
    if kind["type"] == "map":
        return f"MAP({_type(kind['keyType'])}, {_type(kind['valueType'])})"
    return "STRUCT(" + ", ".join(f"{_quoted(f['name'])} {_type(f['type'])}" for f in kind["fields"]) + ")"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
