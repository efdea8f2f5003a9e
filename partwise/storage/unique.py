"""Whether no two rows of some parts are alike in some columns: looked up in the files, without Spark.

Spark would have to shuffle the rows to find out. Here the columns alone are read and hashed, and the hashes sorted,
which takes about a twentieth of what computing the part takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from partwise.parts import Parts
from partwise.storage import schema as schemas
from partwise.storage.table import Handle

#: More rows than this are not looked at: their hashes would fill the memory.
MOST_ROWS = 20_000_000
#: Types of which equal values have equal hashes. Others (0.0 and -0.0, collations) are left to Spark.
_SURE = re.compile(r"string|long|integer|short|byte|boolean|date|timestamp|decimal\(.*\)")


def unique(handle: Handle, parts: Parts, columns: Sequence[str]) -> bool | None:
    """None: it cannot be told here. "No" may be wrong where two hashes happen to be equal; "yes" is always right."""
    files = handle.files_of(parts)
    kinds = {name.lower(): kind for name, kind in schemas.fields(handle.schema)}
    sure = all(_SURE.fullmatch(str(kinds.get(column.lower()))) for column in columns)
    if not columns or not sure or sum(file.rows or MOST_ROWS for file in files) > MOST_ROWS:
        return None
    if not files:
        return True
    spans = " OR ".join(f"{schemas.PART} BETWEEN {lo} AND {hi}" for lo, hi in parts.ranges)
    mixed = any(not file.only_holds(parts) for file in files)
    return unique_in_files(handle.uris(files), columns, f"WHERE {spans}" if mixed else "")


def unique_in_files(uris: Iterable[str], columns: Sequence[str], where: str = "") -> bool | None:
    """The same of Parquet files; `where` in DuckDB's words."""
    import duckdb

    paths = ", ".join("'" + uri.replace("'", "''") + "'" for uri in uris)
    names = ", ".join('"' + column.replace('"', '""') + '"' for column in columns)
    text = f"SELECT hash({names}) AS h FROM read_parquet([{paths}], hive_partitioning = false) {where}"
    try:
        with duckdb.connect(":memory:") as connection:
            found = connection.execute(text).fetchnumpy()["h"]
    except duckdb.Error:  # a store that DuckDB cannot read
        return None
    found.sort()
    return not bool((found[1:] == found[:-1]).any())
