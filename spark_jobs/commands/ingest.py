"""Load new files, close parts, find late rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.cli.open_workspace import errors_of
from partwise.cli.options import JsonOption, WorkspaceOption, complete_sources
from partwise.cli.views.running import Live
from partwise.cli.views.show import as_json, plural, say, spans_text
from partwise.parts import Parts, part_text

#: Lines of one kind that are shown of one table.
_MOST = 12

if TYPE_CHECKING:
    from partwise.tables import Table
    from spark_jobs.engine import Engine
    from spark_jobs.ingest import Ingested


def command(
    sources: Annotated[list[str] | None, typer.Argument(metavar="[SOURCE]...", autocompletion=complete_sources)] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Load new files, close parts, find late rows.

    \b
    Example:
      partwise ingest
      partwise ingest measurements --json
    """
    from spark_jobs.commands._opening import engine_of, names_of, stopping

    with engine_of(workspace, sources, "source", "dimension") as (engine, where), stopping() as stop:
        from spark_jobs.ingest.api import each
        from spark_jobs.run import PATIENCE

        names, wrong = names_of(engine, sources, "source", "dimension"), bool(errors_of(engine.definitions))
        live, found = Live(lambda: engine.definitions.graph()), []
        engine.loading, engine.loading_since = live.load, live.loading_since
        for item in each(engine, where, names, stop=stop.is_set, patience=PATIENCE):
            live.clear()
            found.append(item)
            if not json:
                show(engine, item)  # each as soon as it is loaded: the next one may take long
        if json:
            as_json({"sources": [to_json(engine, item) for item in found]})
        if stop.is_set():
            # What was loaded is committed; the rest is new to the next ingest as it was to this one.
            if not json:
                left = sum(item.left for item in found)
                files = f", with {plural(left, 'file')} still to load" if left else ""
                say(
                    f"Stopped after {plural(len(found), 'table')}{files}; the next `partwise ingest` goes on.", "yellow"
                )
            raise typer.Exit(130)
        # A source that is left out because of its definition is not loaded.
        if any(item.refused or item.failed or item.held for item in found) or (not sources and wrong):
            raise typer.Exit(1)


def to_json(engine: Engine, item: Ingested) -> dict[str, Any]:
    table = engine.definitions.graph()[item.source]

    def parts(found: Parts) -> list[str]:
        return [part_text(p, table.length) for p in found] if table.kind == "source" else [item.source for _ in found]

    return {
        "source": item.source,
        "files": item.files,
        "files_left": item.left,
        "rows": item.rows,
        "rows_added": item.row_change.added,
        "rows_removed": item.row_change.removed,
        "rows_changed": item.row_change.changed,
        "late_rows": item.late_rows,
        "quarantined": item.quarantined,
        "closed": parts(item.closed),
        "changed": parts(item.changed),
        "refused": [{"file": file, "message": message} for file, message in item.refused],
        "notes": item.notes,
        "failed": {parts(Parts.single(p))[0]: message for p, message in item.failed.items()},
        "held": [{"file": file, "message": message} for file, message in item.held],
        "warned": {parts(Parts.single(p))[0]: message for p, message in item.warned.items()},
        "rounded": item.rounded,
        "ignored_columns": item.ignored_columns,
        "same_content": len(item.same_content),
        "same_content_files": [{"file": file, "same_as": other} for file, other in item.same_content],
    }


def show_released(engine: Engine, item: Ingested) -> None:
    """What of the rows that were quarantined has been taken in."""
    if item.rows or item.quarantined:
        show(engine, replace(item, quarantined=0), f"{plural(item.rows, 'row')} taken in")
    else:
        say(f"  {item.source}: nothing was quarantined.")
    if item.quarantined:
        stay = "stays" if item.quarantined == 1 else "stay"
        say(f"  {item.source}: {plural(item.quarantined, 'row')} cannot be placed and {stay} quarantined.", "yellow")
        say("  Deliver the file again, corrected, or correct the definition and release once more.", "dim")


def show(engine: Engine, item: Ingested, first: str | None = None) -> None:
    table = engine.definitions.graph()[item.source]
    said = [first or f"{plural(item.files, 'file')}, {plural(item.rows, 'row')}"]
    change = item.row_change
    if change.removed or change.changed:
        counts = ((change.added, "added"), (change.removed, "removed"), (change.changed, "changed"))
        said.append(", ".join(f"{plural(count, 'row')} {what}" for count, what in counts if count))
    if table.kind == "source":
        if item.closed:
            said.append(f"closed {spans_text(item.closed, table.length)}")
        if item.late_rows:
            said.append(
                f"{plural(item.late_rows, 'late row')} in {spans_text(item.changed - item.closed, table.length)}"
            )
    elif item.changed:
        said.append("changed")
    if item.quarantined:
        said.append(f"{plural(item.quarantined, 'row')} quarantined (see `partwise quarantine {item.source}`)")
    if item.left:
        said.append(f"stopped with {plural(item.left, 'file')} still to load")
    say(f"  {item.source}: {'; '.join(said)}")
    for note in (*_losses(item), *item.notes):
        say(f"  {item.source}: {note}", "yellow")
    _some((f"{item.source}{_one(table, p)}: warning: {message}" for p, message in item.warned.items()), "yellow")
    _some((f"{item.source}{_one(table, p)} is held back: {message}" for p, message in item.failed.items()), "red")
    _some((f"{item.source}: {file} is held back: {message}" for file, message in item.held), "red")
    told = ((f"{file} was refused: " if file else "", message) for file, message in item.refused)
    _some((f"{item.source}: {refused}{message}" for refused, message in told), "red")


def _some(lines: Iterable[str], style: str) -> None:
    """Thousands of lines help nobody; --json has them all."""
    found = list(lines)
    for line in found[:_MOST]:
        say(f"  {line}", style)
    if len(found) > _MOST:
        say(f"  ... and {len(found) - _MOST:,} more like these (--json shows all)", style)


def _losses(item: Ingested) -> list[str]:
    """What of the files is not in the table as it was written, and what is in it twice."""
    said = []
    if item.rounded:
        said.append(f"{plural(item.rounded, 'value')} rounded to the declared decimals (rounded)")
    if item.ignored_columns:
        names = ", ".join(item.ignored_columns)
        said.append(f"not declared, so left out: {names} (ignored_columns)")
    said += [f"{file} has the same content as {other}, and was loaded as well" for file, other in item.same_content[:3]]
    if len(item.same_content) > 3:
        said.append(f"and {len(item.same_content) - 3} more files with the same content as another one")
    return said


def _one(table: Table, p: int) -> str:
    return f"[{part_text(p, table.length)}]" if table.kind == "source" else ""
