"""Recompute every part from the sources and compare."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from partwise.cli.options import JsonOption, WorkspaceOption, complete_views
from partwise.cli.views.running import TerminalLine
from partwise.cli.views.show import as_json, plural, say, table
from partwise.parts import part_text


def command(
    views: Annotated[list[str] | None, typer.Argument(metavar="[VIEW]...", autocompletion=complete_views)] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Recompute every part from the sources, independently of helpers and strategies, and compare.

    Ctrl-C stops at once, with what was found by then, and names the command that checks the rest.

    \b
    Example:
      partwise verify
      partwise verify total_loss --json
    """
    from spark_jobs.commands._opening import engine_of, names_of

    line = TerminalLine()

    def progress(name: str, done: int, of: int) -> None:
        line.tell(f"{name}: {done:,} of {of:,} parts computed again ...", often=done < of)

    with engine_of(workspace, views, "view") as (engine, _):
        from spark_jobs.verify.verify import verify

        found = verify(engine, names_of(engine, views, "view"), progress)
        line.clear()
        graph = engine.definitions.graph()
        different = [
            {"table": name, "part": part_text(p, graph[name].length), "expected_rows": expected, "actual_rows": actual}
            for name, p, expected, actual in found.different
        ]
        if json:
            counts = {"checked": found.checked, "different": different, "stale": found.stale, "expired": found.beyond}
            as_json(counts | {"left": list(found.left)} if found.left else counts)
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
        if found.left:
            print(f"partwise: stopped; `partwise verify {' '.join(found.left)}` checks the rest", file=sys.stderr)
            raise typer.Exit(130)
        if different:
            raise typer.Exit(1)
