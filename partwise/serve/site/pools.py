"""`python -m partwise.serve.site.pools SLOTS`: the pool that limits concurrent Spark steps, through Airflow's REST API."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

POOL = "spark"


def make_pool(address: str, user: str, password: str, slots: int) -> None:
    """The pool with so many slots. One that is there stays as it is: people choose its size in Airflow."""
    token = call(f"{address}/auth/token", "POST", {"username": user, "password": password})["access_token"]
    pool = {"name": POOL, "slots": slots, "description": "Spark steps at the same time", "include_deferred": False}
    try:
        call(f"{address}/api/v2/pools", "POST", pool, token)
    except HTTPError as why:
        if why.code != 409:
            raise


def call(url: str, method: str, body: dict[str, Any] | None = None, token: str | None = None) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = None if body is None else json.dumps(body).encode()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # this machine, never by a proxy
    with opener.open(urllib.request.Request(url, data, headers, method=method), timeout=30) as answer:
        found: dict[str, Any] = json.loads(answer.read() or b"{}")
        return found


def main() -> int:
    passwords = json.loads(Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"]).read_text())
    user = os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"].partition(":")[0]
    make_pool(os.environ["AIRFLOW__API__BASE_URL"], user, passwords[user], int(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
