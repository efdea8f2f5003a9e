"""Report all problems of all definitions, each with its place and a hint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from partwise.cli.open_workspace import definitions_of, problem_json, workspace_of, workspace_with
from partwise.cli.options import JsonOption, WorkspaceOption
from partwise.cli.stop import wrong_use
from partwise.cli.views.show import as_json, plural

if TYPE_CHECKING:
    from partwise.definitions import Definitions


def command(
    path: Annotated[Path | None, typer.Argument(help="A file or folder. Default: the workspace's.")] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Report all problems of all definitions: file:line:column: code: message, and a hint.

    Exits with code 1 if there is an error, not for warnings and notes. With a file or folder of a workspace's
    definitions all of them are read, and the problems of that file or folder shown.

    \b
    Example:
      partwise validate
      partwise validate view_defs/high_loss.yaml --json
    """
    if path is None:
        found = definitions_of(workspace_of(workspace), quiet=True).written
    elif not path.exists():
        raise wrong_use(f"There is no file or folder {path}.")
    else:
        found = _of(path, workspace)
    if json:
        as_json({"problems": [problem_json(problem) for problem in found.problems]})
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


def _of(path: Path, given: str | None) -> Definitions:
    """What a file or folder defines: among the definitions of its workspace, else by itself."""
    from partwise.compile.load import load

    workspace = workspace_with(path, given)
    if workspace is None:
        return load(path).written
    found, wanted = workspace.load().written, path.resolve()

    def inside(file: str) -> bool:
        return Path(file).resolve().is_relative_to(wanted)

    return replace(
        found,
        tables={name: table for name, table in found.tables.items() if inside(table.place.file)},
        problems=tuple(problem for problem in found.problems if inside(problem.file)),
    )
