"""Make a table again from what it was made from, whatever state its files are in."""

from __future__ import annotations

import json as jsons
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.backfill.bar import bar
from partwise.cli.open_workspace import definitions_of, ledger_of, table_of, workspace_of
from partwise.cli.options import JsonOption, TableArgument, WorkspaceOption, ask_first
from partwise.cli.stop import Stop
from partwise.cli.views.running import TerminalLine
from partwise.cli.views.show import plural, say

if TYPE_CHECKING:
    from partwise.ledger.records.running import Running
    from partwise.rebuild import Preview
    from spark_jobs.engine import Engine


def command(
    name: TableArgument,
    workspace: WorkspaceOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Goes ahead without asking.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only shows what would come back, and what would not.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Make a table again: a view from its inputs, a source or dimension from the files that are still in landing.

    It is written into a new folder, whatever state the old one is in. Readers keep the old content until the
    new one has all parts. What comes back as it was changes nothing downstream. A bar shows how far it is; Ctrl-C lets
    the running step finish, and `partwise run` or the same command goes on.

    \b
    Example:
      partwise rebuild total_loss
      partwise rebuild measurements --yes
    """
    from partwise.damaged import damaged
    from partwise.rebuild import preview

    where = workspace_of(workspace)
    definitions = definitions_of(where)
    with ledger_of(where, time.time()) as ledger:
        definitions = where.take_over(ledger, definitions, time.time())
        table = table_of(ledger.graph(), definitions, name)
        broken = damaged(ledger, where.warehouse, [n for n in table.input_names if n != table.name])
        if broken:
            raise Stop(f"{table.name} is computed from {broken[0].text()} first.")
        found = preview(ledger, where, definitions, table)
    if json:
        print(jsons.dumps({"plan": found.to_json()}), flush=True)
    else:
        _show(found)
    if dry_run:
        return
    if not found.parts and not found.running:
        say(f"{table.name} has no parts; there is nothing to make again.")
        return
    ask_first(yes or found.running)
    _carry_out(workspace, table.name, found, json)


def _show(found: Preview) -> None:
    if found.running:
        say(f"{found.table} is being made again already; {plural(found.parts, 'part')} left. This goes on with it.")
        return
    what = {"view": "computed again from its inputs", "source": "loaded again", "dimension": "loaded again"}[found.kind]
    say(f"{found.table}: {plural(found.parts, 'part')} {what}.")
    if found.files is not None:
        say(f"  {plural(found.files, 'file')} in landing to load them from")
    for line in found.gone[:10]:
        say(f"  cannot be had again: {line}", "red")
    if len(found.gone) > 10:
        say(f"  and {len(found.gone) - 10:,} more", "red")


def _carry_out(workspace: str | None, name: str, found: Preview, json: bool) -> None:
    from spark_jobs.commands._opening import engine_of, stopping

    with engine_of(workspace, [name]) as (engine, where), stopping() as stop:
        rebuilding = Rebuilding(engine, name, found.parts)
        if not found.running:
            with engine.leased(name, adopting=False) as held:
                engine.ledger.rebuild_again(held, engine.now())
        if found.kind == "view":
            failed = _compute(engine, name, stop, json, rebuilding)
        else:
            failed = _load(engine, where, name, json, rebuilding)
        rebuilding.line.clear()
        left = engine.ledger.rebuilding().get(name)
    if not json:
        if left:
            say(f"{name}: {plural(left.count, 'part')} not there yet; `partwise rebuild {name}` goes on.", "yellow")
        else:
            say(f"{name} is whole again.")
    if stop.is_set():
        raise typer.Exit(130)
    if failed or left:
        raise typer.Exit(1)


class Rebuilding:
    """A bar over all parts that come back; the ledger tells how many are there."""

    def __init__(self, engine: Engine, name: str, parts: int) -> None:
        self._engine, self._name, self._of = engine, name, parts
        self._left, self._began = parts, time.monotonic()
        self.line = TerminalLine()
        engine.progress, engine.loading = self._step, self._loading

    def _loading(self, table: str, files: int, of: int) -> None:
        self.line.tell(f"{table}: {plural(of, 'file')} being loaded again ...", often=False)

    def _step(self, step: Running) -> None:
        self._draw(step.done if step.table == self._name else 0)

    def ended(self) -> None:
        """A step is published."""
        left = self._engine.ledger.rebuilding().get(self._name)
        self._left = left.count if left else 0
        self._draw(0)

    def _draw(self, more: int) -> None:
        done = min(self._of, self._of - self._left + more)
        self.line.tell(f"{self._name} {bar(done, 0, self._of - done, time.monotonic() - self._began)}")


def _load(engine: Engine, where: Any, name: str, json: bool, rebuilding: Rebuilding) -> int:
    from spark_jobs.commands.ingest import show, to_json
    from spark_jobs.ingest import ingest

    [done] = ingest(engine, where, [name])
    rebuilding.line.clear()
    print(jsons.dumps(to_json(engine, done)), flush=True) if json else show(engine, done)
    return len(done.refused) + len(done.failed) + len(done.held)


def _compute(engine: Engine, name: str, stop: Any, json: bool, rebuilding: Rebuilding) -> int:
    from spark_jobs.commands.run import as_json, show, tell_trouble
    from spark_jobs.run import run

    failed = 0
    # What it is computed from may be waiting for a step, too.
    for outcome in run(engine, engine.definitions.graph().upstream([name]), stop):
        rebuilding.line.clear()
        failed += tell_trouble(outcome, json)
        if outcome.report is not None:
            failed += len(outcome.report.failed)
            print(jsons.dumps(as_json(outcome.report)), flush=True) if json else show(outcome.report)
        rebuilding.ended()
    return failed
