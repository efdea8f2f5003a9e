"""The processes of docker-compose.yml, started as it says: PostgreSQL, a master, two workers, a Connect server.

There need not be a Docker here: the commands and the environment are those of the file, with the names of its
containers replaced by the loopback address and its ports by free ones.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from partwise.serve.supervise.child import free_port
from spark_jobs.session.session import find_java
from tests.compose import read, variables
from tests.spark.cluster import process, wait_for_workers, wait_until_answers

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]


class Topology:
    """The file's services as processes."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder = folder
        self.ports = {name: free_port() for name in ("7077", "8081", "8082", "15002", "4040")}
        given = dict.fromkeys(variables(), "secret")
        self.services = read(given | {"WORKER_CORES": "1", "WORKER_MEMORY": "512m", "EXECUTOR_MEMORY": "512m"})[
            "services"
        ]
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
                "PARTWISE_WORKSPACE": str(self.folder / "workspace"),
                "PARTWISE_WAREHOUSE": str(self.folder / "warehouse"),
            }
        return found

    def healthy(self, service: str) -> str:
        """The URL that the health check of a service looks at, here."""
        return self.words(self.services[service]["healthcheck"]["test"])[-1]


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    from partwise.serve import postgres

    folder = Path(tempfile.mkdtemp(prefix="partwise-topology-"))
    server = postgres.start(folder / "data")
    server.databases("ledger")
    yield server.url("ledger")
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


def test_a_part_goes_through_the_cluster(tmp_path: Path, database: str) -> None:
    there = Topology(tmp_path, database)
    shutil.copytree(ROOT / "partwise/init/template", tmp_path / "workspace")
    with ExitStack() as running:

        def start(service: str, number: int = 0) -> None:
            command = there.words(there.services[service]["command"])
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
    # Tables are where the file's volume is.
    assert (tmp_path / "warehouse").is_dir()
