"""Complete the ledger after a crash, and report what was found."""

from __future__ import annotations

import time

from partwise.cli.open_workspace import definitions_of, ledger_of, workspace_of
from partwise.cli.options import JsonOption, WorkspaceOption
from partwise.cli.views.show import as_json, say


def command(workspace: WorkspaceOption = None, json: JsonOption = False) -> None:
    """Complete the ledger after a crash, and report what was found. Runs of views do the same automatically.

    Commits that the ledger does not know are adopted, leftovers of dead steps are removed, and what is due is
    compared with what the records of all parts say.

    \b
    Example:
      partwise reconcile
    """
    from partwise import storage
    from partwise.cli.upkeep_each import SkippedTables
    from partwise.damaged import damaged
    from spark_jobs.engine import Engine, adopt, sweep

    where = workspace_of(workspace)
    definitions = definitions_of(where)
    adopted: dict[str, int] = {}
    swept: dict[str, int] = {}
    tables = SkippedTables()
    with ledger_of(where, time.time()) as ledger:
        definitions = where.take_over(ledger, definitions, time.time())
        engine = Engine(None, ledger, definitions, where.warehouse)  # type: ignore[arg-type]  # nothing is computed
        for name in ledger.graph().order:
            path = engine.path(name, ledger.current(name).generation)
            if not storage.exists(path):
                continue
            with tables.each(name), engine.leased(name, adopting=False) as held:
                if count := adopt(engine, held):
                    adopted[name] = count
                if count := sweep(engine, held):
                    swept[name] = count
        broken = damaged(ledger, where.warehouse)
        again = ledger.rebuilding()
        repaired = sorted(ledger.audit(repair=True, now=time.time()))
    if json:
        as_json(
            {
                "adopted": adopted,
                "swept": swept,
                "busy": tables.busy,
                "failed": tables.failed,
                "repaired": repaired,
                "damaged": {item.table: item.found.text() for item in broken},
                "rebuilding": {name: parts.count for name, parts in again.items()},
            }
        )
        tables.end(bool(broken))
        return
    for name, count in adopted.items():
        say(f"  {name}: {count} commit(s) adopted that the ledger did not know")
    for name, count in swept.items():
        say(f"  {name}: leftovers of {count} dead step(s) removed")
    for name in repaired:
        say(f"  {name}: its due parts did not match its records; corrected", "yellow")
    for item in broken:
        say(f"  {item.text()}", "red")
    for name, parts in again.items():
        say(f"  {name}: {parts.count:,} parts to be made again; `partwise rebuild {name}` goes on with it", "yellow")
    tables.tell()
    if not (broken or again or adopted or swept or tables.busy or tables.failed or repaired):
        say("The ledger is complete.")
    tables.end(bool(broken))
