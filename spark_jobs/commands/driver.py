"""Show or stop the Spark drivers in the background."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from partwise.cli.options import JsonOption
from partwise.cli.stop import wrong_use
from partwise.cli.views.show import as_json, plural, say
from partwise.parts import duration_text


def command(
    action: Annotated[str, typer.Argument(metavar="[status|stop]")] = "status",
    json: JsonOption = False,
    workspace: Annotated[
        str | None,
        typer.Option("--workspace", "-w", metavar="DIR", help="Makes no difference: a driver belongs to no workspace."),
    ] = None,
) -> None:
    """Show the Spark drivers in the background, or stop them.

    The first command that needs Spark on a terminal starts a driver, later ones reuse it, also from other terminals and
    in other workspaces with the same settings of Spark. It ends by itself when nothing has run for a while:
    `spark: {keep: 10 minutes}` in partwise.yaml, 0 for none.

    \\b
    Example:
      partwise driver status
      partwise driver stop
    """
    from spark_jobs.session.background import drivers, folder, stop

    if action not in ("status", "stop"):
        raise wrong_use(f"There is no `partwise driver {action}`; there are status and stop.")
    where = folder()
    found = [] if where is None else drivers(where)
    gone: list[bool] = []
    if action == "stop" and where is not None:
        gone = [stop(where, driver) for driver in found]
    if json:
        as_json({"drivers": [_json(driver) | ({"stopped": True} if action == "stop" else {}) for driver in found]})
    elif not found:
        say("No driver is running in the background.")
    elif action == "stop":
        say(f"{plural(sum(gone), 'driver')} stopped.")
    else:
        for driver in found:
            age, keep = (duration_text(max(1, round(s))) for s in (time.time() - driver.started, driver.keep))
            say(f"  driver {driver.key}: process {driver.pid}, port {driver.port}, up for {age}, kept for {keep}")
    if not all(gone):
        raise typer.Exit(1)


def _json(driver: Any) -> dict[str, Any]:
    """Everything but the token."""
    return {name: getattr(driver, name) for name in ("key", "pid", "port", "started", "keep")}
