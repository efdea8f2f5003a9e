"""All problems of all definitions, each with its place and a hint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from partwise.cli.opening import definitions_of, workspace_of
from partwise.cli.options import JsonOption, WorkspaceOption
from partwise.cli.show import as_json, plural
from partwise.cli.stop import wrong_use


def command(
    path: Annotated[Path | None, typer.Argument(help="A file or folder. Default: the workspace's.")] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """All problems of all definitions: file:line:column: code: message, and a hint.

    Ends with code 1 if there is an error; warnings and notes are fine.

    \b
    Example:
      partwise validate
      partwise validate view_defs/high_loss.yaml --json
    """
    if path is None:
        found = definitions_of(workspace_of(workspace), quiet=True)
    else:
        from partwise.definitions import load

        if not path.exists():
            raise wrong_use(f"There is no file or folder {path}.")
        found = load(path)
    if json:
        keys = ("file", "line", "column", "code", "message", "hint", "severity")
        as_json({"problems": [{key: getattr(problem, key) for key in keys} for problem in found.problems]})
        raise typer.Exit(0 if found.ok else 1)
    for problem in found.problems:
        mark = "" if problem.severity == "error" else f" ({problem.severity})"
        print(f"{problem}{mark}")
        if problem.hint:
            print(f"    {problem.hint}")
    errors = sum(problem.severity == "error" for problem in found.problems)
    others = len(found.problems) - errors
    tables = plural(len(found.tables), "definition")
    fine = f"{tables}, no problems" if not errors else f"{tables}, {plural(errors, 'problem')}"
    print(fine + (f", {plural(others, 'warning')}" if others else ""))
    raise typer.Exit(0 if found.ok else 1)
