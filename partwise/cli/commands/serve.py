"""Run everything on this machine: PostgreSQL, a warm Spark driver, Airflow; for one workspace, until Ctrl-C."""

from __future__ import annotations

from typing import Annotated

import typer

from partwise.cli.open_workspace import workspace_of
from partwise.cli.options import WorkspaceOption
from partwise.cli.stop import Stop


def command(
    workspace: WorkspaceOption = None,
    example: Annotated[bool, typer.Option("--example", help="Serve the example, in a folder of its own.")] = False,
    feed: Annotated[
        bool | None,
        typer.Option("--feed/--no-feed", help="Deliver measurements for the example; default with --example."),
    ] = None,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two deliveries of the feed.")] = 5.0,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of Airflow.")] = 8080,
    spark_port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the Spark driver.")] = 15002,
    spark_ui_port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the Spark driver's web pages.")] = 4040,
    seconds: Annotated[float | None, typer.Option(min=1, help="Stop after this many seconds.")] = None,
    until_parts: Annotated[
        int | None,
        typer.Option(min=1, help="Stop once views have this many parts; exit code 1 if --seconds pass first."),
    ] = None,
) -> None:
    """Run everything on this machine: PostgreSQL, a warm Spark driver, Airflow; for one workspace, until Ctrl-C.

    DAGs of your own may be in `dags/` of the workspace. All of it listens on the loopback address only. Databases, keys and logs are in .partwise in the workspace, and
    the next start continues from there. Other commands on the workspace find its ledger automatically.

    \b
    Example:
      partwise serve
      partwise serve --workspace shop --port 8081
    """
    from partwise.serve.example import example as make_example
    from partwise.serve.serve import Until, serve
    from partwise.serve.site.site import CODE, CannotServe, Ports, Site, find_java
    from partwise.serve.supervise.leftovers import Occupied
    from partwise.serve.supervise.supervisor import Failed

    found = workspace_of(str(make_example()) if example else workspace)
    if found.settings.spark.remote:
        raise Stop(
            "spark.remote is set: `partwise serve` starts a Spark driver of its own. Remove it, or see deploy.md."
        )
    if found.in_object_store:
        from partwise.storage.errors import StoreProblem
        from partwise.storage.probe import probe

        try:
            probe(found.warehouse)
        except StoreProblem as why:
            raise Stop(str(why)) from None
    site = Site(
        workspace=found.folder,
        ports=Ports(port, spark_port, spark_ui_port),
        feed=every if (example if feed is None else feed) else None,
        master=found.settings.spark.master or "local[2]",
        spark_conf=tuple(found.spark_conf.items()),
        dags=own if (own := found.folder / "dags").is_dir() and own != CODE / "dags" else None,
        java_home=find_java(),
    )
    try:
        raise typer.Exit(serve(site, Until(seconds, until_parts)))
    except (CannotServe, Occupied, Failed) as why:
        raise Stop(str(why)) from None
