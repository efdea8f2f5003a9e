"""A store for tests: a server of its own, buckets, what was asked of it, and faults."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from partwise import object_store
from partwise.storage.remote import Bucket

SERVER = Path(__file__).with_name("s3_server.py")
KEYS = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "secret"}


@dataclass(frozen=True)
class Server:
    url: str

    def make_bucket(self, name: str) -> str:
        self._order("PUT", f"/{name}")
        return f"s3://{name}"

    def requests(self) -> list[str]:
        """All since the last `forget`."""
        found: list[str] = json.loads(self._order("GET", "/-/log"))
        return found

    def forget(self) -> None:
        self._order("DELETE", "/-/log")

    def faults(self, *faults: dict[str, Any]) -> None:
        """From now on these and no others."""
        self._order("PUT", "/-/faults", json.dumps(faults).encode())

    def _order(self, method: str, path: str, body: bytes | None = None) -> bytes:
        plain = {"Content-Type": "application/octet-stream"}
        with urlopen(Request(self.url + path, data=body, method=method, headers=plain), timeout=30) as answer:
            return bytes(answer.read())


@contextmanager
def server(port: int = 0) -> Iterator[Server]:
    process = subprocess.Popen([sys.executable, str(SERVER), str(port)], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield Server(f"http://127.0.0.1:{int(process.stdout.readline())}")
    finally:
        process.kill()
        process.wait()


@dataclass(frozen=True)
class Lake:
    """A bucket of the server that this process talks to."""

    server: Server
    url: str

    def bucket(self, name: str = "") -> Bucket:
        return Bucket(f"{self.url}/{name}".rstrip("/"))

    def names(self, under: str = "") -> list[str]:
        return sorted(found.name for found in self.bucket().below(under))


def use(server: Server, url: str) -> Lake:
    object_store.remember(object_store.Store(server.url), url)
    return Lake(server, url)
