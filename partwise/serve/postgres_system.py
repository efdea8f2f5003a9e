"""A PostgreSQL server that somebody else runs, in place of the embedded one: PARTWISE_POSTGRES names it.

`postgresql://user@host/acme` means the databases `acme_airflow` and `acme_ledger` of that server; they are made if they
are not there, so the user needs the right to create databases, or somebody makes them beforehand.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from partwise.serve.postgres import make_databases
from partwise.serve.site.site import CannotServe

VARIABLE = "PARTWISE_POSTGRES"


def named(environment: Mapping[str, str] = os.environ) -> SystemPostgres | None:
    """The server that the environment names; None without one. Raises CannotServe."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    if not (text := environment.get(VARIABLE)):
        return None
    example = f"expected a URL such as {VARIABLE}=postgresql://user@host/partwise"
    try:
        url = make_url(text)
    except ArgumentError:
        raise CannotServe(f"{VARIABLE}: this is not a URL of a database; {example}") from None
    if url.get_backend_name() not in ("postgresql", "postgres") or not url.database:
        raise CannotServe(f"{VARIABLE}: {url.render_as_string()} names no PostgreSQL database; {example}")
    return SystemPostgres(text)


class SystemPostgres:
    """It runs before us and after us: nothing here starts or stops it."""

    pids: frozenset[int] = frozenset()

    def __init__(self, url: str) -> None:
        from sqlalchemy import make_url

        self._url = make_url(url).set(drivername="postgresql")

    def url(self, database: str) -> str:
        return self._url.set(database=f"{self._url.database}_{database}").render_as_string(hide_password=False)

    def is_running(self) -> bool:
        return True  # its clients try again by themselves; there is nothing that we could start

    def ensure_running(self) -> bool:
        return True

    def databases(self, *names: str) -> None:
        """Makes those that are not there. Raises CannotServe if the server cannot be reached, or does not allow it."""
        from sqlalchemy.exc import DBAPIError

        try:
            admin = self._url.set(database="postgres").render_as_string(hide_password=False)
            make_databases(admin, [f"{self._url.database}_{name}" for name in names])
        except DBAPIError as why:
            raise CannotServe(f"{VARIABLE}: {str(why.orig).strip().splitlines()[0]}") from None

    def stop(self) -> None:
        """It is not ours to stop."""
