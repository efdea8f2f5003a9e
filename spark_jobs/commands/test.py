"""Run the unit tests of views: tests/views/*.yaml."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.cli.options import JsonOption, WorkspaceOption, complete_views
from partwise.cli.stop import Stop, wrong_use
from partwise.cli.views.show import as_json, plural, say

if TYPE_CHECKING:
    from partwise.compile.program import Program
    from partwise.unit import Case
    from partwise.workspace import Workspace
    from spark_jobs.unit import TestOutcome


def command(
    view: Annotated[str | None, typer.Argument(metavar="VIEW", autocompletion=complete_views)] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Run the unit tests of views in `tests/views/`: given rows, perhaps late ones, and the rows that parts must hold.

    Each test runs on Spark, with a warehouse and a ledger of its own; the workspace is not touched.

    \b
    Example:
      partwise test
      partwise test total_loss
    """
    from partwise.cli.open_workspace import definitions_of, table_of, workspace_of

    where = workspace_of(workspace)
    definitions = definitions_of(where)
    name = table_of(definitions.graph(), definitions, view, "view").name if view else None
    cases = [case for case in _cases(where, definitions) if name in (None, case.view)]
    if not cases:
        raise wrong_use(f"There are no tests of {name or 'views'} in {where.folder / 'tests' / 'views'}.")
    from spark_jobs.session.session import session
    from spark_jobs.unit import run_case

    settings = where.settings.spark
    spark = session(master=settings.master, remote=settings.remote, conf=where.spark_conf)
    bad, told = 0, []
    for case in cases:
        began = time.monotonic()
        outcome = run_case(spark, definitions, case)
        bad += not outcome.ok
        if json:
            told.append(_json(outcome))
        else:
            _show(outcome, time.monotonic() - began)
    if json:
        as_json({"tests": told})
    else:
        say(f"{plural(len(cases), 'test')}, {bad} failed.", "red" if bad else "green")
    if bad:
        raise typer.Exit(1)


def _cases(where: Workspace, definitions: Program) -> list[Case]:
    from partwise.unit import BadCase, cases_in

    folder = where.folder / "tests" / "views"
    files = sorted(p for p in folder.glob("*.y*ml") if p.is_file())
    try:
        return [case for file in files for case in cases_in(_near(file), definitions)]
    except BadCase as why:
        raise Stop(str(why)) from None


def _near(file: Path) -> Path:
    try:
        return file.absolute().relative_to(Path.cwd())
    except ValueError:
        return file


def _show(outcome: TestOutcome, seconds: float) -> None:
    say(f"{'ok  ' if outcome.ok else 'FAIL'} {outcome.case.title} ({seconds:.1f} s)", "green" if outcome.ok else "red")
    for part, lines in outcome.differences.items():
        say(f"     {part}  (- expected, + found)")
        for line in lines:
            say(f"       {line}", "red" if line.startswith("-") else "green" if line.startswith("+") else "")


def _json(outcome: TestOutcome) -> dict[str, Any]:
    case = outcome.case
    return {
        "file": case.file,
        "view": case.view,
        "test": case.name,
        "ok": outcome.ok,
        "differences": {part: list(lines) for part, lines in outcome.differences.items()},
    }
