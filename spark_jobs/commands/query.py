"""Query tables, all from one snapshot."""

from __future__ import annotations

import csv as csvs
import json as jsons
import math
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from enum import StrEnum
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.cli.as_of import as_of, meant_by, tell_sequence
from partwise.cli.open_workspace import definitions_of, ledger_of, workspace_of
from partwise.cli.options import JsonOption, WorkspaceOption
from partwise.cli.stop import Stop, wrong_use
from partwise.cli.views.show import as_json, table
from partwise.workspace import Workspace

if TYPE_CHECKING:
    from partwise.ledger.ledger import Ledger
    from partwise.ledger.records.readers import Moment
    from partwise.storage.query import PinnedTable, Result


class EngineName(StrEnum):
    duckdb = "duckdb"
    spark = "spark"


def command(
    sql: Annotated[str, typer.Argument(metavar="SQL")],
    moment: Annotated[
        str | None, typer.Option("--as-of", metavar="TIME|@N", help="UTC, how long ago, or a sequence of the ledger.")
    ] = None,
    settled: Annotated[
        str | None,
        typer.Option(
            "--settled",
            metavar="[=wait]",
            help="As of the newest sequence at which nothing was stale that the query may read; =wait waits for one.",
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="As after a refresh: estimated from the sample of a view, with intervals.")
    ] = False,
    confidence: Annotated[str, typer.Option(metavar="PERCENT", help="Of the intervals of --fresh.")] = "95",
    within: Annotated[
        str | None, typer.Option(metavar="SHARE", help="With --fresh: no wider intervals than this, for example 1%.")
    ] = None,
    ratio: Annotated[
        str | None, typer.Option(metavar="SHARE", help="With --fresh: use only this share of the keys, for example 1%.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--now", help="With --fresh: wait until the sample itself is up to date.")
    ] = False,
    engine: Annotated[EngineName, typer.Option(help="DuckDB needs no JVM.")] = EngineName.duckdb,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Query tables by name, all from one snapshot. Filter parts by `part_timestamp`.

    The same sequence of the ledger gives the same answer, whenever it is asked. The answer names its sequence on stderr:
    `--as-of @N` repeats it, and `partwise now` shows the newest.

    While late rows make their way, a view may be behind what it reads. With --settled every part that the query may
    read is exactly what the sources gave at that sequence.

    With --fresh the answer is what the view would give if it were refreshed now, estimated from its sample (`sample:` in
    its definition) with an interval, or exact where nothing is stale. See docs/fresh_answers.md.

    \b
    Example:
      partwise query "SELECT * FROM high_loss WHERE part_timestamp = '2026-10-03T10:05'"
      partwise query "SELECT count(*) FROM measurements" --as-of '2 hours'
      partwise query "SELECT count(*) FROM measurements" --as-of @118
      partwise query "SELECT * FROM high_loss WHERE part_timestamp >= '2026-10-03T10:00'" --settled
      partwise query --fresh "SELECT region, SUM(revenue) FROM revenue GROUP BY region" --within 1%
    """
    if not sql.strip():
        raise wrong_use('SQL is empty; for example: partwise query "SELECT * FROM high_loss"')
    where = workspace_of(workspace)
    if fresh:
        from partwise.cli.fresh import answer_fresh

        if settled is not None or csv or engine is not EngineName.duckdb:
            raise wrong_use("--fresh is answered by DuckDB, with intervals: leave out --settled, --csv and --engine.")
        if wait and moment is not None:
            raise wrong_use("--now waits for the present, and --as-of is about the past: leave one of them out.")
        answer_fresh(where, sql, confidence, within, ratio, moment, wait, json)
        return
    if within is not None or ratio is not None or wait:
        raise wrong_use("--within, --ratio and --now are about intervals: they go with --fresh.")
    found, at, notes = _answer(where, sql, moment, engine, settled)
    tell_sequence(at, *notes)
    if json:
        names = distinct(found.columns)
        as_json([dict(zip(names, map(plain, row), strict=True)) for row in found.rows])
    elif csv:
        writer = csvs.writer(sys.stdout)
        writer.writerow(found.columns)
        writer.writerows([_cell(value) for value in row] for row in found.rows)
    else:
        table(found.columns, [[_text(value) for value in row] for row in found.rows])


def _answer(
    where: Workspace, sql: str, text: str | None, engine: EngineName, settling: str | None
) -> tuple[Result, Moment, list[str]]:
    """The rows, the time as of which they were read, and what is worth knowing about it."""
    from partwise.choose.settled import settled
    from partwise.storage.query import mentioned

    written = definitions_of(where, quiet=True)
    if not where.has_ledger():
        raise Stop("There is nothing to read yet: no run has made a ledger. `partwise run` starts.")
    now = time.time()
    seq, moment = meant_by(text, now)
    if settling is not None and text is not None:
        raise wrong_use("--settled finds the time by itself: leave out --as-of, or --settled.")
    with ledger_of(where, now, looking=True) as ledger:
        usable = settled(written, ledger.strategies()).usable
        asked = mentioned(sql, usable)
        newer = ""
        if settling is not None:
            from partwise.cli.settled import settled_sequence

            dialect = "duckdb" if engine is EngineName.duckdb else "spark"
            seq, newer = settled_sequence(ledger, sql, asked, dialect, settling)
        with as_of(ledger, where.settings, seq, moment) as at:
            tables, notes = _tables(where, ledger, usable, asked, at.seq)
            notes += [newer] if newer else []
            absent = [name for name in asked if name not in tables]
            try:
                found = _with_duckdb(sql, tables) if engine is EngineName.duckdb else _with_spark(where, sql, tables)
            except Stop as why:
                if not absent:
                    raise
                then = "at that time" if text else "yet"
                said = f"Without any part {then}: {', '.join(absent)}. `partwise plan` shows what is waited for."
                # The engine was told of no such table: what it says about that helps nobody.
                raise Stop(said if _not_there(str(why), absent) else f"{why}\n{said}") from None
    return found, at, notes


def _not_there(said: str, names: Collection[str]) -> bool:
    """Whether this is all that is wrong: one of these tables was not found."""
    first = said.partition("\n")[0].lower()
    words = ("does not exist", "table_or_view_not_found")
    return any(word in first for word in words) and any(name.lower() in first for name in names)


def _tables(
    where: Workspace, ledger: Ledger, names: Collection[str], asked: Collection[str], seq: int
) -> tuple[dict[str, PinnedTable], list[str]]:
    """Every table at its version of one sequence; of sources only the parts that existed by then."""
    from partwise.ledger.read.as_of import readable
    from partwise.storage.paths import table_path
    from partwise.storage.query import PinnedTable

    found = readable(ledger.database, names, asked, seq)
    notes = [f"{name} is being built again, and read as it was before" for name, at in found.items() if at.rebuilding]
    pins = {
        name: PinnedTable(table_path(where.warehouse, name, at.version.generation), at.version.version, parts=at.parts)
        for name, at in found.items()
    }
    return pins, notes


def _with_duckdb(sql: str, tables: dict[str, PinnedTable]) -> Result:
    from partwise.storage import StorageError, StoreProblem
    from partwise.storage.query import BadQuery, query

    try:
        return query(sql, tables)
    except StoreProblem as why:
        raise Stop(str(why)) from None  # nothing is known to be wrong with a table
    except StorageError as why:
        raise Stop(f"{why}; {_WAY_BACK}") from None
    except BadQuery as why:
        raise Stop(f"{why}{hint(sql, tables)}") from None


#: What to type when a table cannot be read.
_WAY_BACK = "`partwise status` says what is wrong with it, `partwise rebuild TABLE` makes it again"


def hint(sql: str, tables: Collection[str]) -> str:
    """What people bring along from definitions, or from other warehouses."""
    from partwise.storage.query import mentioned

    if (first := sql.split()[0].upper()) in _WRITING:
        return f"\n`partwise query` only reads: {first} is no query. Tables are changed by their files and definitions."
    for name in mentioned(sql, tables):
        if f"{name}[".lower() in sql.lower().replace(" ", ""):
            return f"\nReferences such as {name}[j] belong in definitions; here, write WHERE part_timestamp = '...'."
    return ""


_WRITING = frozenset(["INSERT", "UPDATE", "DELETE", "DROP", "CREATE", "ALTER", "TRUNCATE", "MERGE", "COPY", "ATTACH"])


def _with_spark(where: Workspace, sql: str, tables: dict[str, PinnedTable]) -> Result:
    from partwise import storage
    from partwise.storage.query import Result, mentioned
    from spark_jobs.retry import SPARK_ERRORS, message_of
    from spark_jobs.session.session import session
    from spark_jobs.step import read

    settings = where.settings.spark
    try:
        opened = {name: storage.open_at(tables[name].path, tables[name].version) for name in mentioned(sql, tables)}
    except storage.StoreProblem as why:
        raise Stop(str(why)) from None
    except storage.StorageError as why:
        raise Stop(f"{why}; {_WAY_BACK}") from None
    spark = session(master=settings.master, remote=settings.remote, conf=where.spark_conf)
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
