"""The pool of Spark steps: made once, and then people's."""

from __future__ import annotations

from email.message import Message
from typing import Any
from urllib.error import HTTPError

import pytest

from partwise.serve.site import pools


class Pools:
    """Airflow's API, as far as pools are concerned."""

    def __init__(self) -> None:
        self.found: dict[str, int] = {}
        self.refuses: int | None = None

    def call(self, url: str, method: str, body: dict[str, Any], token: str | None = None) -> dict[str, Any]:
        if url == "http://a/auth/token":
            return {"access_token": f"{body['username']} {body['password']}"}
        assert (url, method, token) == ("http://a/api/v2/pools", "POST", "admin secret")
        if code := self.refuses or (409 if body["name"] in self.found else None):
            raise HTTPError(url, code, "refused", Message(), None)
        self.found[body["name"]] = body["slots"]
        return {}


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Pools:
    found = Pools()
    monkeypatch.setattr(pools, "call", found.call)
    return found


def test_it_is_made_at_the_first_start(airflow: Pools) -> None:
    pools.make_pool("http://a", "admin", "secret", 2)
    assert airflow.found == {"spark": 2}


def test_a_size_that_people_chose_stays(airflow: Pools) -> None:
    airflow.found["spark"] = 12
    pools.make_pool("http://a", "admin", "secret", 2)
    assert airflow.found == {"spark": 12}


def test_what_else_goes_wrong_is_not_passed_over(airflow: Pools) -> None:
    airflow.refuses = 500
    with pytest.raises(HTTPError):
        pools.make_pool("http://a", "admin", "secret", 2)
