"""What is done before the first component: databases, keys, the ledger, and settings for commands beside us."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from partwise.serve import postgres, postgres_system
from partwise.serve.site.environment import Keys
from partwise.serve.site.keys import keys_of, write_private
from partwise.serve.site.site import Site
from partwise.settings import FILE, SERVED, read_settings
from partwise.workspace import Workspace, open_workspace


def open_site(site: Site) -> tuple[Site, Keys, postgres.Postgres | postgres_system.SystemPostgres]:
    """The site with its databases running; if it cannot be opened, nothing is left running. Raises CannotServe."""
    site.state.mkdir(parents=True, exist_ok=True)
    (site.state / ".gitignore").write_text("*\n")
    (site.state / "airflow").mkdir(mode=0o700, exist_ok=True)
    keys = keys_of(site.state)  # people edit these files: what is wrong there is told before anything runs
    server = postgres_system.named() or postgres.start(postgres.folder_of(site.workspace))
    try:
        server.databases(postgres.AIRFLOW, postgres.LEDGER)
        ledger = own_ledger(site.workspace) or server.url(postgres.LEDGER)
    except BaseException:
        server.stop()
        raise
    return replace(site, ledger_url=ledger, airflow_url=server.url(postgres.AIRFLOW)), keys, server


def own_ledger(folder: Path) -> str | None:
    """The ledger that the workspace has already: a PostgreSQL that its settings name, or an SQLite file with content.

    It is never left behind for a new one: what it knows is nowhere else.
    """
    found = Workspace(folder, read_settings(folder / FILE, os.environ, served=False))
    if found.settings.ledger.startswith("sqlite"):
        return found.ledger_url if found.has_ledger() else None
    return found.ledger_url


def tell_commands(site: Site, keys: Keys | None) -> None:
    """Commands in other terminals find the ledger, and Airflow while it runs. Variables of the shell win over it."""
    told = {"PARTWISE_LEDGER": site.ledger_url}
    if keys is not None:
        told |= {
            "PARTWISE_AIRFLOW_URL": site.address,
            "PARTWISE_AIRFLOW_USERNAME": keys.user,
            "PARTWISE_AIRFLOW_PASSWORD": keys.password,
        }
    write_private(site.workspace / SERVED, json.dumps(told, indent=1))


def take_over(site: Site) -> list[str]:
    """Makes the ledger and lets it know the definitions, so that there is something to show. Returns the problems."""
    workspace = Workspace(site.workspace, replace(open_workspace(str(site.workspace)).settings, ledger=site.ledger_url))
    definitions = workspace.load()
    ledger = workspace.open_ledger(time.time())
    try:
        workspace.take_over(ledger, definitions, time.time())
    finally:
        ledger.database.close()
    return [str(problem) for problem in definitions.problems if problem.severity == "error"]


def needs_migration(url: str) -> bool:
    """Whether Airflow's database was last migrated by another version. Asking Airflow would take ten seconds."""
    return _stamp(url) != _installed()


def stamp(url: str) -> None:
    from sqlalchemy import make_url, text

    from partwise.ledger.database import Database

    database = Database(url)
    with database.engine.connect() as on, on.begin():
        on.execute(text(f"COMMENT ON DATABASE \"{make_url(url).database}\" IS '{_installed()}'"))
    database.close()


def _installed() -> str:
    return f"migrated for apache-airflow {version('apache-airflow')}"


def _stamp(url: str) -> str | None:
    from sqlalchemy import text

    from partwise.ledger.database import Database

    database = Database(url)
    with database.engine.connect() as on:
        query = "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = current_database()"
        found: str | None = on.execute(text(query)).scalar()
    database.close()
    return found
