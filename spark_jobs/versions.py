"""Versions of forward dimensions that others have taken the place of: the parts of a table of their own.

What a dimension held can be read by its Delta version only until somebody cleans up. So before other content takes its
place, it is copied: the part of a version is the sequence that made it, which is its name in the ledger as well. A copy is
made once and never changed; whoever crashes before the dimension itself was committed leaves one that the next load finds.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterable

from pyspark.sql import DataFrame

from partwise import storage
from partwise.ledger.read.pin import Superseded
from partwise.parts import Parts
from partwise.storage import Handle, StorageError
from partwise.storage import schema as schemas
from spark_jobs.engine import Engine
from spark_jobs.step import read
from spark_jobs.step.stage import stage

log = logging.getLogger("partwise.versions")


class VersionLost(Exception):
    """A version that cannot be read any more; the message is meant for people."""


def rows_of(engine: Engine, dimension: str, version: Superseded, current: Handle) -> DataFrame:
    """The rows of a version, with the columns that the dimension has now. Raises VersionLost."""
    if not version.rows:
        return read.files(engine.spark, current, ())
    schema = current.schema
    kept, one = _opened(engine, dimension), Parts.single(version.seq)
    if kept is not None and kept.files_of(one):
        return fitted(read.parts(engine.spark, kept, one), schema)
    held = _held(engine, dimension, version)
    if held is None:
        raise VersionLost(
            f"The version of {dimension} that these parts read is lost: neither {engine.versions_path(dimension)} "
            f"nor the table itself has it. With `change: retroactive` the newest version counts for all parts."
        )
    return fitted(read.parts(engine.spark, held), schema)


def keep(engine: Engine, dimension: str, current: Handle | None, versions: Iterable[Superseded]) -> None:
    """Copy those of these versions that are not copied yet; the last one is in `current`, if that is given.

    Raises Conflict if somebody else does it at the same time.
    """
    wanted = [version for version in versions if version.rows]
    kept = _opened(engine, dimension)
    missing = [v for v in wanted if kept is None or not kept.files_of(Parts.single(v.seq))]
    for version in missing:
        last = current is not None and version is wanted[-1]
        held = current if last else _held(engine, dimension, version)
        if held is None:
            log.warning("version %s of %s is lost and cannot be kept", version.seq, dimension)
            continue
        schema = _with_part(current.schema if current is not None else held.schema)
        handle = _with_columns(engine, storage.create(engine.versions_path(dimension), schema), schema)
        rows = read.parts(engine.spark, held).selectExpr(
            f"{version.seq}L AS {schemas.PART}",
            f"timestamp_seconds({version.loaded:.3f}) AS {schemas.PART_TIMESTAMP}",
            "*",
        )
        name = uuid.uuid4().hex[:16]
        files = stage(fitted(rows, schema), handle, name, expected=version.rows)
        storage.commit(handle, files, (), {"kind": "version", "seq": version.seq})
        storage.finish(handle.path, name)
        engine.passed("kept")


def fitted(rows: DataFrame, schema: str) -> DataFrame:
    """With exactly these columns: new ones are NULL, as in rows of a source that were there before."""
    have = {field.name.lower(): field for field in rows.schema}
    columns = []
    for name, kind in schemas.fields(schema):
        before = have.get(name.lower())
        found = "NULL" if before is None else schemas.quoted(before.name)
        if before is None or before.dataType.jsonValue() != kind:
            found = f"try_cast({found} AS {schemas.sql_type(kind)})"
        columns.append(f"{found} AS {schemas.quoted(name)}")
    return rows.selectExpr(*columns)


def _with_columns(engine: Engine, handle: Handle, schema: str) -> Handle:
    """The copies, with the columns that the dimension has by now."""
    if schemas.normal(handle.schema) == schema:
        return handle
    name = uuid.uuid4().hex[:16]
    rows = fitted(read.parts(engine.spark, handle), schema)
    files = stage(rows, handle, name, schema=schema, expected=handle.rows)
    storage.replace(handle, schema, files, {"kind": "version"})
    storage.finish(handle.path, name)
    return storage.open_at(handle.path)


def _with_part(schema: str) -> str:
    return schemas.normal(
        json.dumps({"type": "struct", "fields": [*schemas.part_fields(), *json.loads(schema)["fields"]]})
    )


def _opened(engine: Engine, dimension: str) -> Handle | None:
    path = engine.versions_path(dimension)
    return storage.open_at(path) if storage.exists(path) else None


def _held(engine: Engine, dimension: str, version: Superseded) -> Handle | None:
    """The dimension's own table as it was, as long as nobody has cleaned up."""
    try:
        return engine.open(dimension, version.at)
    except StorageError:
        return None
