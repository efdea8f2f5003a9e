"""Reads tables as of one moment."""

from __future__ import annotations

import csv as csvs
import sys
import time
from datetime import date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.cli.opening import definitions_of, ledger_of, moment_of, workspace_of
from partwise.cli.options import JsonOption, WorkspaceOption
from partwise.cli.show import as_json, moment_text, table
from partwise.cli.stop import Stop
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
    where = workspace_of(workspace)
    tables, absent = _tables(where, sql, as_of)
    try:
        found = _with_duckdb(sql, tables) if engine is EngineName.duckdb else _with_spark(where, sql, tables)
    except Stop as why:
        then = "at that moment" if as_of else "yet"
        raise Stop(f"{why}\nWithout any part {then}: {', '.join(absent)}" if absent else str(why)) from None
    if json:
        as_json([dict(zip(found.columns, map(_plain, row), strict=True)) for row in found.rows])
    elif csv:
        writer = csvs.writer(sys.stdout)
        writer.writerow(found.columns)
        writer.writerows([_plain(value) for value in row] for row in found.rows)
    else:
        table(found.columns, [[_text(value) for value in row] for row in found.rows])


def _tables(where: Workspace, sql: str, as_of: str | None) -> tuple[dict[str, Pin], list[str]]:
    """Every table at its version of one moment; of sources only the parts that existed by then.

    Beside them, tables that the text seems to mention and that had no part by then.
    """
    from partwise.ledger.moment import readable
    from partwise.storage.paths import table_path
    from partwise.storage.query import Pin, mentioned

    definitions = definitions_of(where, quiet=True)
    if not where.has_ledger():
        raise Stop("There is nothing to read yet: no run has made a ledger. `partwise run` starts.")
    now = time.time()
    with ledger_of(where, now) as ledger:
        moment = None if as_of is None else moment_of(as_of, now, "--as-of")
        _check_promise(ledger, moment, where.settings)
        asked = mentioned(sql, definitions.usable)
        found = readable(ledger.database, definitions.usable, asked, moment)
    pins = {
        name: Pin(table_path(where.warehouse, name, at.version.generation), at.version.version, parts=at.parts)
        for name, at in found.items()
    }
    return pins, [name for name in asked if name not in found]


def _check_promise(ledger: Ledger, moment: float | None, settings: Settings) -> None:
    """Upkeep removes what is older than the setting `history`; half an answer would be worse than none."""
    from partwise.ledger.promise import promised

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
    from spark_jobs import read
    from spark_jobs.session import session
    from spark_jobs.trouble import SPARK_ERRORS, message_of

    settings = where.settings.spark
    spark = session(master=settings.master, remote=settings.remote, conf=settings.conf)
    for name in mentioned(sql, tables):
        pin = tables[name]
        read.parts(spark, storage.open_at(pin.path, pin.version), pin.parts).createOrReplaceTempView(name)
    try:
        rows = spark.sql(sql)
        return Result(tuple(rows.columns), tuple(kind for _, kind in rows.dtypes), [tuple(r) for r in rows.collect()])
    except SPARK_ERRORS as why:
        known = ", ".join(sorted(tables)) or "none"
        raise Stop(f"{message_of(why).partition(';')[0].strip()}\nTables of this workspace: {known}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat().replace("+00:00", "Z")
    return value if value is None or isinstance(value, int | float | str | bool | list | dict) else str(value)


def _text(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    return str(value)
