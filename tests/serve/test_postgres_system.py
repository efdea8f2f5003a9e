"""A PostgreSQL that runs anyway can stand in for the embedded one."""

import pytest

from partwise.serve.postgres_system import named
from partwise.serve.site.site import CannotServe


def test_without_the_variable_the_embedded_one_is_used() -> None:
    assert named({}) is None


@pytest.mark.parametrize("text", ["not a url", "sqlite:///ledger.db", "postgresql://user@host"])
def test_a_wrong_url_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(CannotServe, match=r"PARTWISE_POSTGRES=postgresql://user@host/partwise"):
        named({"PARTWISE_POSTGRES": text})


def test_a_password_is_not_shown() -> None:
    with pytest.raises(CannotServe) as why:
        named({"PARTWISE_POSTGRES": "postgresql://user:secret@host"})
    assert "secret" not in str(why.value)


def test_each_site_has_databases_of_its_own_on_the_server() -> None:
    server = named({"PARTWISE_POSTGRES": "postgresql://user:pass@host/acme"})
    assert server is not None
    assert server.url("ledger") == "postgresql://user:pass@host/acme_ledger"
    assert server.pids == frozenset()


def test_a_server_that_cannot_be_reached_is_named() -> None:
    server = named({"PARTWISE_POSTGRES": "postgresql://user@127.0.0.1:1/acme"})
    assert server is not None
    with pytest.raises(CannotServe, match=r"PARTWISE_POSTGRES: .*127.0.0.1"):
        server.databases("ledger")
