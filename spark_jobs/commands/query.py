"""Reads tables as of one moment."""

from __future__ import annotations

import csv as csvs
import json as jsons
import math
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from enum import StrEnum
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.cli.open_workspace import definitions_of, ledger_of, moment_of, workspace_of
from partwise.cli.options import JsonOption, WorkspaceOption
from partwise.cli.stop import Stop, wrong_use
from partwise.cli.views.show import as_json, moment_text, table
from partwise.workspace import Workspace

if TYPE_CHECKING:
    from partwise.ledger.ledger import Ledger
    from partwise.settings import Settings
    from partwise.storage.query import Pin, Result


class EngineName(StrEnum):
    duckdb = "duckdb"
    spark = "spark"


def command(
    sql: Annotated[str, typer.Argument(metavar="SQL")],
    as_of: Annotated[str | None, typer.Option("--as-of", metavar="TIME", help="UTC, or how long ago.")] = None,
    engine: Annotated[EngineName, typer.Option(help="DuckDB needs no JVM.")] = EngineName.duckdb,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
    csv: Annotated[bool, typer.Option("--csv", help="For spreadsheets.")] = False,
) -> None:
    """Reads tables by name, all as of one moment. Parts are filtered by `part_timestamp`.

    \b
    Example:
      partwise query "SELECT * FROM high_loss WHERE part_timestamp = '2026-10-03T10:05'"
      partwise query "SELECT count(*) FROM measurements" --as-of '2 hours'
    """
    if not sql.strip():
        raise wrong_use('SQL is empty; for example: partwise query "SELECT * FROM high_loss"')
    where = workspace_of(workspace)
    tables, absent = _tables(where, sql, as_of)
    try:
        found = _with_duckdb(sql, tables) if engine is EngineName.duckdb else _with_spark(where, sql, tables)
    except Stop as why:
        then = "at that moment" if as_of else "yet"
        raise Stop(f"{why}\nWithout any part {then}: {', '.join(absent)}" if absent else str(why)) from None
    if json:
        names = distinct(found.columns)
        as_json([dict(zip(names, map(plain, row), strict=True)) for row in found.rows])
    elif csv:
        writer = csvs.writer(sys.stdout)
        writer.writerow(found.columns)
        writer.writerows([_cell(value) for value in row] for row in found.rows)
    else:
        table(found.columns, [[_text(value) for value in row] for row in found.rows])


def _tables(where: Workspace, sql: str, as_of: str | None) -> tuple[dict[str, Pin], list[str]]:
    """Every table at its version of one moment; of sources only the parts that existed by then.

    Beside them, tables that the text seems to mention and that had no part by then.
    """
    from partwise.choose.settled import settled
    from partwise.ledger.read.as_of import readable
    from partwise.storage.paths import table_path
    from partwise.storage.query import Pin, mentioned

    written = definitions_of(where, quiet=True)
    if not where.has_ledger():
        raise Stop("There is nothing to read yet: no run has made a ledger. `partwise run` starts.")
    now = time.time()
    with ledger_of(where, now, looking=True) as ledger:
        moment = None if as_of is None else moment_of(as_of, now, "--as-of")
        _check_promise(ledger, moment, where.settings)
        definitions = settled(written, ledger.strategies())
        asked = mentioned(sql, definitions.usable)
        found = readable(ledger.database, definitions.usable, asked, moment)
    pins = {
        name: Pin(table_path(where.warehouse, name, at.version.generation), at.version.version, parts=at.parts)
        for name, at in found.items()
    }
    return pins, [name for name in asked if name not in found]


def _check_promise(ledger: Ledger, moment: float | None, settings: Settings) -> None:
    """Upkeep removes what is older than the setting `history`; half an answer would be worse than none."""
    from partwise.ledger.read.promise import promised

    with ledger.database.reading() as r:
        given = promised(r)
    if moment is not None and given is not None and moment < given.at:
        raise Stop(
            f"--as-of: reads reach back to {moment_text(given.at, settings.timezone)}; what was there before is not "
            f"kept any longer (setting `history`, now {settings.history})."
        )


def _with_duckdb(sql: str, tables: dict[str, Pin]) -> Result:
    from partwise.storage import StorageError
    from partwise.storage.query import BadQuery, query

    try:
        return query(sql, tables)
    except (BadQuery, StorageError) as why:
        raise Stop(str(why)) from None


def _with_spark(where: Workspace, sql: str, tables: dict[str, Pin]) -> Result:
    from partwise import storage
    from partwise.storage.query import Result, mentioned
    from spark_jobs.retry import SPARK_ERRORS, message_of
    from spark_jobs.session.session import session
    from spark_jobs.step import read

    settings = where.settings.spark
    try:
        opened = {name: storage.open_at(tables[name].path, tables[name].version) for name in mentioned(sql, tables)}
    except storage.StorageError as why:
        raise Stop(str(why)) from None
    spark = session(master=settings.master, remote=settings.remote, conf=settings.conf)
    try:
        for name, handle in opened.items():
            read.parts(spark, handle, tables[name].parts).createOrReplaceTempView(name)
        rows = spark.sql(sql)
        return Result(tuple(rows.columns), tuple(kind for _, kind in rows.dtypes), [tuple(r) for r in rows.collect()])
    except SPARK_ERRORS as why:
        known = ", ".join(sorted(tables)) or "none"
        raise Stop(f"{message_of(why).partition(';')[0].strip()}\nTables of this workspace: {known}") from None


def distinct(names: Sequence[str]) -> list[str]:
    """An object has each key once: the second `n` is `n_2`, as long as nobody else is called so."""
    found: list[str] = []
    for name in names:
        free = (f"{name}_{at}" for at in count(2))
        found.append(name if name not in found else next(x for x in free if x not in found and x not in names))
    return found


def plain(value: Any) -> Any:
    """A value as JSON has it, all the way down. JSON knows no NaN and no Infinity: they are null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, int | str | bool):
        return value
    if isinstance(value, datetime | date):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else str(plain(key)): plain(inner) for key, inner in value.items()}
    if hasattr(value, "asDict"):  # a struct of Spark
        return {name: plain(inner) for name, inner in value.asDict().items()}
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else str(value)


def _cell(value: Any) -> Any:
    """A value in a spreadsheet: what is nested is JSON there, and numbers are as they are."""
    found = value if isinstance(value, float) else plain(value)
    return jsons.dumps(found, ensure_ascii=False) if isinstance(found, dict | list) else found


def _text(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    return str(value)
