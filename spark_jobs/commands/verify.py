"""Recompute every part from the sources and compare."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from partwise.cli.options import JsonOption, WorkspaceOption, complete_views
from partwise.cli.views.show import as_json, plural, say, table
from partwise.parts import part_text


def command(
    views: Annotated[list[str] | None, typer.Argument(metavar="[VIEW]...", autocompletion=complete_views)] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Recompute every part from the sources, independently of helpers and strategies, and compare.

    \b
    Example:
      partwise verify
      partwise verify total_loss --json
    """
    from spark_jobs.commands._opening import engine_of, names_of

    def progress(name: str, done: int, of: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{name}: {done} of {of} parts ".ljust(60), end="" if done < of else "\r", file=sys.stderr)

    with engine_of(workspace, views, "view") as (engine, _):
        from spark_jobs.verify.verify import verify

        found = verify(engine, names_of(engine, views, "view"), progress)
        graph = engine.definitions.graph()
        different = [
            {"table": name, "part": part_text(p, graph[name].length), "expected_rows": expected, "actual_rows": actual}
            for name, p, expected, actual in found.different
        ]
        if json:
            as_json({"checked": found.checked, "different": different, "stale": found.stale, "expired": found.beyond})
        else:
            if different:
                rows = [tuple(str(value) for value in item.values()) for item in different]
                table(("table", "part", "expected rows", "actual rows"), rows)
            waiting = f" {plural(found.stale, 'part')} that wait for a step were left out." if found.stale else ""
            if found.beyond:
                waiting += (
                    f" {plural(found.beyond, 'part')} cannot be checked: what they were computed from is not kept."
                )
            said = f"{plural(found.checked, 'part')} checked, {plural(len(different), 'difference')}."
            say(said + waiting, "red" if different else "green")
        if different:
            raise typer.Exit(1)
