"""Whether some columns are a key of some parts: no NULL, no two rows alike. Looked up in the files, without Spark.

Spark would have to shuffle the rows to find out. Here the columns alone are read and hashed, and the hashes sorted,
which takes about a twentieth of what computing the part takes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from partwise.parts import Parts
from partwise.storage import schema as schemas
from partwise.storage.handle import Handle
from partwise.storage.query import rows_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: More rows than this are not looked at: their hashes would fill the memory.
MOST_ROWS = 20_000_000
#: Types of which equal values have equal hashes. Others (0.0 and -0.0, collations) are left to Spark.
_SURE = re.compile(r"string|long|integer|short|byte|boolean|date|timestamp|decimal\(.*\)")


def unique(handle: Handle, parts: Parts, columns: Sequence[str]) -> bool | None:
    """None: it cannot be told here, or there is a NULL. False may be wrong where two hashes happen to be equal; True is
    always right."""
    files = handle.files_of(parts)
    kinds = {name.lower(): kind for name, kind in schemas.fields(handle.schema)}
    sure = all(_SURE.fullmatch(str(kinds.get(column.lower()))) for column in columns)
    if not columns or not sure or sum(file.rows or MOST_ROWS for file in files) > MOST_ROWS:
        return None
    if not files:
        return True
    spans = " OR ".join(f"{schemas.PART} BETWEEN {lo} AND {hi}" for lo, hi in parts.ranges)
    mixed = any(not file.only_holds(parts) for file in files)
    connection = _connection().cursor()
    relation = rows_of(handle, files, connection, "looked at")
    return unique_in(relation, columns, f"WHERE {spans}" if mixed else "", connection)


def unique_in(
    relation: str, columns: Sequence[str], where: str = "", connection: DuckDBPyConnection | None = None
) -> bool | None:
    """The same of a relation that DuckDB reads; `where` in its words."""
    import duckdb

    names = ['"' + column.replace('"', '""') + '"' for column in columns]
    missing = " OR ".join(f"{name} IS NULL" for name in names)
    text = f"""SELECT hash({", ".join(names)}) AS h, {missing} AS missing
        FROM {relation} {where}"""
    try:
        found = (connection or _connection().cursor()).execute(text).fetchnumpy()
    except (duckdb.Error, OSError):  # a file that DuckDB cannot read, or a store that does not answer
        return None
    if found["missing"].any():
        return None
    hashes = found["h"]
    hashes.sort()
    return not bool((hashes[1:] == hashes[:-1]).any())


@cache
def _connection() -> DuckDBPyConnection:
    """To open one takes as long as to look at a small part."""
    import duckdb

    return duckdb.connect(":memory:")
