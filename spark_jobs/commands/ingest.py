"""Load new files, close parts, find late rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.cli.options import JsonOption, WorkspaceOption, complete_sources
from partwise.cli.views.show import as_json, plural, say, spans_text
from partwise.parts import Parts, part_text

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
    from spark_jobs.commands._opening import engine_of, names_of

    with engine_of(workspace, sources, "source", "dimension") as (engine, where):
        from spark_jobs.ingest import ingest

        found = ingest(engine, where, names_of(engine, sources, "source", "dimension"))
        if json:
            as_json({"sources": [to_json(engine, item) for item in found]})
        else:
            for item in found:
                show(engine, item)
        if any(item.refused or item.failed or item.held for item in found):
            raise typer.Exit(1)


def to_json(engine: Engine, item: Ingested) -> dict[str, Any]:
    table = engine.definitions.graph()[item.source]

    def parts(found: Parts) -> list[str]:
        return [part_text(p, table.length) for p in found] if table.kind == "source" else [item.source for _ in found]

    return {
        "source": item.source,
        "files": item.files,
        "rows": item.rows,
        "late_rows": item.late_rows,
        "quarantined": item.quarantined,
        "closed": parts(item.closed),
        "changed": parts(item.changed),
        "refused": [{"file": file, "message": message} for file, message in item.refused],
        "notes": item.notes,
        "failed": {parts(Parts.single(p))[0]: message for p, message in item.failed.items()},
        "held": [{"file": file, "message": message} for file, message in item.held],
        "warned": {parts(Parts.single(p))[0]: message for p, message in item.warned.items()},
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
    say(f"  {item.source}: {'; '.join(said)}")
    for note in item.notes:
        say(f"  {item.source}: {note}", "yellow")
    for p, message in item.warned.items():
        say(f"  {item.source}{_one(table, p)}: warning: {message}", "yellow")
    for p, message in item.failed.items():
        say(f"  {item.source}{_one(table, p)} is held back: {message}", "red")
    for file, message in item.held:
        say(f"  {item.source}: {file} is held back: {message}", "red")
    for file, message in item.refused:
        say(f"  {item.source}: {f'{file} was refused: ' if file else ''}{message}", "red")


def _one(table: Table, p: int) -> str:
    return f"[{part_text(p, table.length)}]" if table.kind == "source" else ""
