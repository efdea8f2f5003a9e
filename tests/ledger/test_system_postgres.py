"""A site on a PostgreSQL server that runs anyway: two databases of its own, made once."""

from sqlalchemy import text

from partwise.ledger.database import Database
from partwise.serve.postgres_system import SystemPostgres
from tests.ledger.conftest import Postgres


def test_databases_are_made_once_and_the_server_is_left_running(postgres: Postgres) -> None:
    server = SystemPostgres(postgres.url.set(database="acme").render_as_string(hide_password=False))
    for _ in range(2):
        server.databases("airflow", "ledger")
    server.stop()
    database = Database(server.url("ledger"))
    with database.engine.connect() as on:
        assert on.execute(text("SELECT current_database()")).scalar() == "acme_ledger"
    database.close()
