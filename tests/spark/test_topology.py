"""The processes of docker-compose.yml, started as it says: PostgreSQL, a master, two workers, a Connect server.

There need not be a Docker here: the commands and the environment are those of the file, with the names of its
containers replaced by the loopback address and its ports by free ones. Once with tables in the file's volume, once in an
object store: then workers, server and commands share nothing else, and the folders of the others are hidden from workers.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from partwise.serve.supervise.child import free_port
from spark_jobs.session.session import find_java
from tests.compose import read, variables
from tests.object_store.store import KEYS, Lake
from tests.spark.cluster import process, wait_for_workers, wait_until_answers

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]


class Topology:
    """The file's services as processes."""

    def __init__(self, folder: Path, database: str, lake: Lake | None) -> None:
        self.folder, self.lake = folder, lake
        self.ports = {name: free_port() for name in ("7077", "8081", "8082", "15002", "4040")}
        given = dict.fromkeys(variables(), "secret")
        given |= {"WORKER_CORES": "1", "WORKER_MEMORY": "512m", "EXECUTOR_MEMORY": "512m"}
        if lake is not None:
            given |= {"WAREHOUSE": f"{lake.url}/warehouse", "STORE_ENDPOINT": "http://object-store:9000"}
        self.services = read(given)["services"]
        self.database = database

    def words(self, command: list[str]) -> list[str]:
        """A command of the file, here."""
        found = []
        for word in command:
            for name in ("spark-master", "spark-connect", "0.0.0.0"):
                word = word.replace(name, "127.0.0.1")
            for port, free in self.ports.items():
                word = word.replace(port, str(free))
            found.append(word.replace("/tmp/work", tempfile.mkdtemp(dir=self.folder)))
        return found

    def environment(self, service: str) -> dict[str, str]:
        find_java()
        told: Mapping[str, Any] = self.services[service].get("environment", {})
        here = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "JAVA_HOME": os.environ["JAVA_HOME"]}
        found = {name: str(value) for name, value in told.items()} | here | {"SPARK_LOCAL_IP": "127.0.0.1"}
        found["HOME"] = str(self.folder)
        if "PARTWISE_LEDGER" in found:
            found |= {
                "PARTWISE_LEDGER": self.database,
                "PARTWISE_SPARK_REMOTE": self.words([found["PARTWISE_SPARK_REMOTE"]])[0],
            }
        if "PARTWISE_WORKSPACE" in found:
            found["PARTWISE_WORKSPACE"] = str(self.workspace_of(service))
            if self.lake is None:
                found["PARTWISE_WAREHOUSE"] = str(self.folder / "warehouse")
            else:
                found["PARTWISE_STORE_ENDPOINT"] = self.lake.server.url
        if self.lake is not None and "env_file" in self.services[service]:
            found |= KEYS
        return found

    def workspace_of(self, service: str) -> Path:
        """With a store, the server's workspace is another one than that of commands: it needs the settings alone."""
        found = self.folder / ("workspace" if self.lake is None or service != "spark-connect" else "settings")
        found.mkdir(exist_ok=True)
        (found / "partwise.yaml").touch()
        return found

    def apart(self, command: list[str]) -> list[str]:
        """As on another machine: the folders of commands and server look empty. Only where the system lets us do that."""
        hide = 'for folder in "$1" "$2"; do mount -t tmpfs none "$folder" || exit 9; done; shift 2; exec "$@"'
        hidden = [str(self.folder / name) for name in ("workspace", "settings")]
        words = ["unshare", "--mount", "--map-root-user", "sh", "-c", hide, "sh", *hidden]
        if self.lake is None or shutil.which("unshare") is None:
            return command
        return [*words, *command] if subprocess.run([*words, "true"], capture_output=True).returncode == 0 else command

    def healthy(self, service: str) -> str:
        """The URL that the health check of a service looks at, here."""
        return self.words(self.services[service]["healthcheck"]["test"])[-1]


@pytest.fixture(scope="module")
def database() -> Iterator[Callable[[str], str]]:
    """The URL of a database by its name."""
    from partwise.serve import postgres

    folder = Path(tempfile.mkdtemp(prefix="partwise-topology-"))
    server = postgres.start(folder / "data")
    server.databases("ledger_volume", "ledger_store")
    yield server.url
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("where", ["volume", "store"])
def test_a_part_goes_through_the_cluster(
    tmp_path: Path, database: Callable[[str], str], where: str, request: pytest.FixtureRequest
) -> None:
    lake: Lake | None = request.getfixturevalue("lake") if where == "store" else None
    there = Topology(tmp_path, database(f"ledger_{where}"), lake)
    shutil.copytree(ROOT / "partwise/init/template", tmp_path / "workspace")
    there.workspace_of("spark-connect")
    with ExitStack() as running:

        def start(service: str, number: int = 0) -> None:
            command = there.words(there.services[service]["command"])
            command = there.apart(command) if service == "spark-worker" else command
            log = tmp_path / f"{service}-{number}.log"
            running.enter_context(process(command, log, there.environment(service), ROOT))

        start("spark-master")
        wait_until_answers(there.healthy("spark-master"))
        for number in range(there.services["spark-worker"]["deploy"]["replicas"]):
            start("spark-worker", number)
            there.ports["8082"] = free_port()
        wait_for_workers(there.ports["8081"], 2)
        start("spark-connect")
        wait_until_answers(there.healthy("spark-connect"))

        wait_until_answers(f"http://127.0.0.1:{there.ports['4040']}/jobs/")

        environment = there.environment("scheduler")

        def partwise(*words: str) -> Any:
            command = [sys.executable, "-m", "partwise.cli", *words, "--json"]
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr + (tmp_path / "spark-connect-0.log").read_text()[-3000:]
            return (
                [json.loads(line) for line in done.stdout.splitlines()]
                if words[0] == "run"
                else json.loads(done.stdout)
            )

        assert {step["table"] for step in partwise("run")} >= {"revenue"}
        checked = partwise("verify")
        assert (checked["checked"] > 0, checked["different"]) == (True, [])
        master = f"http://127.0.0.1:{there.ports['8081']}/json/"
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(master) as answer:
            state = json.load(answer)
    # It was the cluster that worked: both workers gave their core to the server's application.
    assert state["aliveworkers"] == 2
    assert [(app["cores"], app["state"]) for app in state["activeapps"]] == [(2, "RUNNING")]
    # Tables are where the file's volume is, or in the store, where executors wrote what they had read there.
    assert (tmp_path / "warehouse").is_dir() == (lake is None)
    if lake is not None:
        asked = lake.server.requests()
        assert any(line.startswith("PUT") and "/warehouse/_ingest/orders/" in line for line in asked)
        assert any(line.startswith("PUT") and "/warehouse/orders/s-" in line for line in asked)
        assert not [name for name in lake.names() if "_ingest" in name or "_staged/" in name]
