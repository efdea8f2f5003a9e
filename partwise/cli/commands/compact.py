"""Merge the small files of old parts and remove files that no promised read needs."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.cli.open_workspace import definitions_of, ledger_of, table_of, workspace_of
from partwise.cli.options import JsonOption, WorkspaceOption, complete_tables
from partwise.cli.stop import wrong_use
from partwise.cli.views.show import as_json, plural, say, table
from partwise.parts import BadTime, seconds

if TYPE_CHECKING:
    from partwise.cli.upkeep_each import SkippedTables
    from partwise.upkeep.clean import Cleaned
    from partwise.upkeep.compact import Compacted


def command(
    name: Annotated[str | None, typer.Argument(metavar="TABLE", autocompletion=complete_tables)] = None,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="TIME", help="Leave newer files alone.")
    ] = "1 hour",
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Merge small files of old parts: same rows, fewer files, no revision, nothing downstream.

    Afterwards files that neither the tables as they are nor a promised as-of read (setting `history`) needs are
    removed. Tables that are being written just now are left for the next time; one that something is wrong with is named,
    the others continue, and the exit code is 1. Ctrl-C stops at once: what is merged stays so,
    also of a table that is half done, and the next call goes on.

    \b
    Example:
      partwise compact
      partwise compact measurements --older-than '5 minutes'
    """
    from partwise.choose.clustering import cluster_columns
    from partwise.cli.upkeep_each import SkippedTables
    from partwise.upkeep.compact import compact
    from partwise.upkeep.retain import clean_up, give_up

    where = workspace_of(workspace)
    definitions = definitions_of(where)
    age = _age(older_than)
    done: list[Compacted] = []
    cleaned: dict[str, Cleaned] = {}
    tables = SkippedTables()
    with ledger_of(where, time.time()) as ledger:
        definitions = where.take_over(ledger, definitions, time.time())
        graph = ledger.graph()
        names = list(graph.order) if name is None else [table_of(graph, definitions, name).name]
        give_up(ledger, where.settings.history_seconds, time.time())
        with tables.until_ctrl_c():
            for each in tables.through(names, "compacting"):
                with tables.each(each):
                    cluster, inside = partial(cluster_columns, graph, each), tables.inside
                    found = compact(ledger, where.warehouse, each, time.time, age, progress=inside, cluster=cluster)
                    if found:
                        done.append(found)
                    cleaned[each] = clean_up(ledger, where.warehouse, each, time.time)
    if json:
        as_json(_as_json(done, cleaned, tables))
    else:
        _show(done, cleaned, tables)
    tables.end()


def _show(done: list[Compacted], cleaned: dict[str, Cleaned], tables: SkippedTables) -> None:
    if done:
        rows = [(c.table, f"{c.before:,}", f"{c.after:,}", f"{c.bytes:,}") for c in done]
        table(("table", "files before", "after", "bytes written again"), rows)
    else:
        say("There are no small files to merge.")
    show_cleaned(cleaned)
    tables.tell()


def show_cleaned(cleaned: dict[str, Cleaned]) -> None:
    files, size = sum(c.files for c in cleaned.values()), sum(c.bytes for c in cleaned.values())
    logs = sum(c.logs for c in cleaned.values())
    if files or logs:
        say(f"Removed {plural(files, 'old file')} ({size:,} bytes) and {logs:,} old log entries.")


def cleaned_json(cleaned: dict[str, Cleaned]) -> dict[str, Any]:
    return {
        name: {"files": c.files, "bytes": c.bytes, "log_entries": c.logs, "generations": c.generations}
        for name, c in cleaned.items()
        if c.files or c.logs or c.generations
    }


def _as_json(done: list[Compacted], cleaned: dict[str, Cleaned], tables: SkippedTables) -> dict[str, Any]:
    merged = [{"table": c.table, "before": c.before, "after": c.after, "bytes": c.bytes} for c in done]
    return {"compacted": merged, "removed": cleaned_json(cleaned), "busy": sorted(tables.busy), "failed": tables.failed}


def _age(text: str) -> float:
    if text.split()[:1] == ["0"]:
        return 0.0
    try:
        return float(seconds(text))
    except BadTime as why:
        raise wrong_use(f"--older-than: {why}.") from None
