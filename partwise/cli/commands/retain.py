"""Apply `keep`: remove old parts, and everything that only older as-of reads would need."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING

from partwise.cli.commands.compact import cleaned_json, show_cleaned
from partwise.cli.open_workspace import definitions_of, ledger_of, workspace_of
from partwise.cli.options import JsonOption, WorkspaceOption
from partwise.cli.views.show import as_json, moment_json, moment_text, plural, say, table
from partwise.object_store import is_s3
from partwise.parts import Range, part_text, range_text

if TYPE_CHECKING:
    from partwise.compile.program import Program
    from partwise.ledger.ledger import Ledger
    from partwise.upkeep.clean import Cleaned
    from partwise.upkeep.retain import Retained
    from partwise.workspace import Workspace


def command(workspace: WorkspaceOption = None, json: JsonOption = False) -> None:
    """Apply `keep` of sources and views, and keep helpers only as long as something may still read them.

    Removed parts count as expired, not as missing. A part that pending work needs is never removed. As-of reads reach back as far as
    the setting `history` says; what only older ones would need is removed from tables, logs and the ledger. Windows whose
    input has grown or shrunk many times since it was settled how they are kept are counted again before their next step.
    What is kept for late rows is chosen again, within the setting `state_budget`.

    \b
    Example:
      partwise retain
    """
    from partwise.choose.keeping import review
    from partwise.cli.upkeep_each import SkippedTables
    from partwise.ledger.write.lease_holding import is_dead
    from partwise.upkeep.retain import clean_up, floors, forget_files, give_up, retain
    from partwise.upkeep.versions import forget_versions

    where = workspace_of(workspace)
    definitions = definitions_of(where)
    done: list[Retained] = []
    cleaned: dict[str, Cleaned] = {}
    forgotten: dict[str, int] = {}
    tables = SkippedTables()
    with ledger_of(where, time.time()) as ledger:
        definitions = where.take_over(ledger, definitions, time.time())
        if review(ledger, definitions, where.settings.state_bytes, time.time(), is_dead, force=True):
            definitions = where.definitions(ledger)
        graph = ledger.graph()
        wanted = floors(ledger, definitions.usable)
        with tables.until_ctrl_c():
            for name in tables.through(wanted, "expiring parts of"):
                with tables.each(name):
                    if found := retain(ledger, where.warehouse, name, wanted[name], time.time):
                        done.append(found)
        given, rows = give_up(ledger, where.settings.history_seconds, time.time())
        with tables.until_ctrl_c():
            for name in tables.through(graph.order, "removing old files of"):
                with tables.each(name):
                    cleaned[name] = clean_up(ledger, where.warehouse, name, time.time)
                    if name in graph.forward:
                        forgotten[name] = forget_versions(ledger, where.warehouse, name, time.time)
                    if graph[name].kind == "source":
                        gone = partial(_is_gone, where)
                        rows += forget_files(ledger, where.warehouse, name, gone, time.time)
        again = _count_again(ledger, definitions)
    expired = [(r, range_text(Range(r.first, r.floor - 1), graph[r.table].length)) for r in done]
    if json:
        as_json(
            {
                "expired": [
                    {
                        "table": r.table,
                        "parts": text,
                        "first_kept": part_text(r.floor, graph[r.table].length),
                        "why": r.why,
                    }
                    for r, text in expired
                ],
                "removed": cleaned_json(cleaned),
                "ledger_rows": rows,
                "forgotten_versions": {name: count for name, count in forgotten.items() if count},
                "counted_again": sorted(again),
                "as_of_from": moment_json(given.at),
                "busy": sorted(tables.busy),
                "failed": tables.failed,
            }
        )
        tables.end()
        return
    if expired:
        shown = [(r.table, text, part_text(r.floor, graph[r.table].length), r.why) for r, text in expired]
        table(("table", "expired", "first kept", "why"), shown)
    else:
        say("Nothing has expired.")
    show_cleaned(cleaned)
    say(
        f"As-of reads reach back to {moment_text(given.at, where.settings.timezone)}; "
        f"{plural(rows, 'older row')} left the ledger.",
        "dim",
    )
    for name, count in forgotten.items():
        if count:
            say(f"{plural(count, 'version')} of {name} that no part reads any more: forgotten.")
    for name, (then, now) in again.items():
        was = "not counted before" if then is None else f"{then:,} when that was settled"
        say(f"How {name} is kept is looked at again before its next step: {now:,} rows in a part it reads, {was}.")
    tables.tell()
    tables.end()


def _count_again(ledger: Ledger, definitions: Program) -> dict[str, tuple[int | None, int]]:
    from partwise.choose.settled import to_count_again
    from partwise.ledger.records.strategies import count_again

    with ledger.database.reading() as r:
        found = to_count_again(r, definitions)
    if found:
        with ledger.database.writing(time.time()) as w:
            for view in found:
                count_again(w, view)
    return found


def _is_gone(where: Workspace, name: str) -> bool:
    """Of a store that is not S3 nothing is known here: what is there counts as there."""
    if is_s3(name):
        from partwise.storage.remote import Bucket

        folder, _, file = name.rpartition("/")
        return Bucket(folder).head(file) is None
    path = os.path.join(where.folder.absolute(), name)
    return "://" not in name and "://" not in where.settings.landing and not os.path.exists(path)
