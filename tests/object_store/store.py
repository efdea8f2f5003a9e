"""A store for tests: a server of its own, buckets, what was asked of it, and faults."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from partwise import object_store
from partwise.serve.supervise.answers import answers
from partwise.serve.supervise.child import free_port
from partwise.storage.remote import Bucket

SERVER = Path(__file__).with_name("s3_server.py")
KEYS = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "secret-key"}


@dataclass(frozen=True)
class Server:
    url: str
    real: bool = False  # not moto's

    def make_bucket(self, name: str) -> str:
        self.client().create_bucket(Bucket=name)
        return f"s3://{name}"

    def client(self, service: str = "s3") -> Any:
        """Amazon's own, for what the product never does."""
        import boto3  # type: ignore[import-untyped]

        keys = {name.lower(): value for name, value in KEYS.items()}
        return boto3.client(service, endpoint_url=self.url, region_name="us-east-1", **keys)

    def temporary_keys(self) -> dict[str, str]:
        """As a role gives them; by their names in a profile."""
        role = {"RoleArn": "arn:aws:iam::123456789012:role/tester", "RoleSessionName": "tester"}
        given = self.client("sts").assume_role(**role)["Credentials"]
        names = {"aws_access_key_id": "AccessKeyId", "aws_secret_access_key": "SecretAccessKey"}
        names |= {"aws_session_token": "SessionToken"}
        return {name: str(given[theirs]) for name, theirs in names.items()}

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
def server(port: int = 0, there: str = "") -> Iterator[Server]:
    """moto's, or the layer in front of the one that is there."""
    process = subprocess.Popen([sys.executable, str(SERVER), str(port), there], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield Server(f"http://127.0.0.1:{int(process.stdout.readline())}", real=bool(there))
    finally:
        process.kill()
        process.wait()


@contextmanager
def minio(program: str, folder: Path) -> Iterator[Server]:
    """A MinIO behind the layer."""
    port = free_port()
    environment = {**os.environ, "MINIO_ROOT_USER": KEYS["AWS_ACCESS_KEY_ID"]}
    environment |= {"MINIO_ROOT_PASSWORD": KEYS["AWS_SECRET_ACCESS_KEY"], "MINIO_BROWSER": "off"}
    environment |= {"MINIO_UPDATE": "off", "MINIO_CALLHOME_ENABLE": "off"}
    command = [program, "server", "--quiet", "--address", f"127.0.0.1:{port}", str(folder / "data")]
    with (folder / "minio.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        end = time.monotonic() + 60
        while not answers(f"http://127.0.0.1:{port}/minio/health/ready"):
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError((folder / "minio.log").read_text())
            time.sleep(0.1)
        with server(there=f"http://127.0.0.1:{port}") as found:
            yield found
    finally:
        process.terminate()
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


def s3a_keys(bucket: str = "") -> dict[str, str]:
    """The keys as settings of a driver, or of a session for one bucket. The product never does that: pages show them."""
    found = {
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "access.key": KEYS["AWS_ACCESS_KEY_ID"],
        "secret.key": KEYS["AWS_SECRET_ACCESS_KEY"],
    }
    return {f"fs.s3a.bucket.{bucket}.{n}" if bucket else f"spark.hadoop.fs.s3a.{n}": v for n, v in found.items()}


def reachable(spark: Any, lake: Lake) -> None:
    """The session of the tests is older than their stores: it learns of each by the name of its bucket."""
    bucket = object_store.bucket_of(lake.url)
    there = {"endpoint": lake.server.url, "endpoint.region": "us-east-1", "path.style.access": "true"}
    there |= {"connection.ssl.enabled": "false"}
    for name, value in (s3a_keys(bucket) | {f"fs.s3a.bucket.{bucket}.{n}": v for n, v in there.items()}).items():
        spark.conf.set(name, value)
