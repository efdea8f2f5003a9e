"""The product as `make run` starts it, on a workspace made for a benchmark: data land, parts appear, CPU is spent."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from partwise.ledger.ledger import Ledger
from partwise.ledger.open import open_ledger
from partwise.serve.site.pools import call
from partwise.serve.summary import lines
from partwise.serve.supervise.child import free_port

SOURCE = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, g: bigint, x: double}
files: landing/m/*.csv
"""
VIEW = """
---
view: %s
part: 1 minute
update: SELECT g, SUM(x) AS x FROM %s[j] GROUP BY g
"""


class Product:
    """`partwise serve` on a workspace made for the benchmark."""

    def __init__(self, folder: Path, definitions: str, dags: str = "") -> None:
        self.folder = folder
        for name in ("view_defs", "landing/m", "dags"):
            (folder / name).mkdir(parents=True)
        (folder / "partwise.yaml").touch()
        self.define(definitions)
        (folder / "dags/more.py").write_text(dags)
        self.port = free_port()
        ports = ["--port", self.port, "--spark-port", free_port(), "--spark-ui-port", free_port()]
        command = [sys.executable, "-m", "partwise.cli", "serve", "--workspace", folder, *ports]
        self.said = folder / "said"
        with open(self.said, "wb") as output:
            self.process = subprocess.Popen(list(map(str, command)), stdout=output, stderr=output)

    def __enter__(self) -> Product:
        self.wait(lambda: "Airflow answers" in self.said.read_text(), 300)
        told = json.loads((self.folder / ".partwise/served.json").read_text())
        self.address, self.ledger_url = told["PARTWISE_AIRFLOW_URL"], told["PARTWISE_LEDGER"]
        login = {"username": told["PARTWISE_AIRFLOW_USERNAME"], "password": told["PARTWISE_AIRFLOW_PASSWORD"]}
        self.token = call(f"{self.address}/auth/token", "POST", login)["access_token"]
        self.ledger: Ledger = open_ledger(self.ledger_url, time.time())
        return self

    def __exit__(self, *_: object) -> None:
        self.ledger.database.close()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(90)

    def ask(self, path: str, method: str = "GET", body: dict[str, Any] | None = None) -> dict[str, Any]:
        return call(f"{self.address}/api/v2/{path}", method, body, self.token)

    def land(self, minute: int) -> float:
        at = datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%dT%H:%M")
        draft = self.folder / f"landing/m/{minute}.csv.tmp"
        rows = "".join(f"{at}:{n % 60:02},{n % 7},{n}\n" for n in range(1000))
        draft.write_text(f"t,g,x\n{rows}")
        draft.rename(draft.with_suffix(""))
        return time.time()

    def parts(self) -> dict[str, int]:
        return {line.table: line.parts for line in lines(self.ledger, time.time())}

    def define(self, definitions: str) -> None:
        (self.folder / "view_defs/all.yaml").write_text(definitions)

    def spent(self) -> dict[str, float]:
        """CPU seconds by component, of all processes below it, those that have ended included.

        Tasks are processes below the scheduler; they are told apart from itself.
        """
        noted = json.loads((self.folder / ".partwise/processes.json").read_text())
        names = {pid: name for name, (pid, _) in noted.items()}
        found = {"supervisor": sum(psutil.Process(self.process.pid).cpu_times()[:2])}
        for child in psutil.Process(self.process.pid).children():
            name = names.get(child.pid, child.name())
            total = sum(times_of(process) for process in [child, *below(child)])
            if name == "scheduler":
                found["tasks"] = total - sum(child.cpu_times()[:2])
                total -= found["tasks"]
            found[name] = found.get(name, 0.0) + total
        return found

    def wait(self, what: Any, seconds: float) -> float:
        began = time.monotonic()
        while not what():
            if self.process.poll() is not None or time.monotonic() - began > seconds:
                raise SystemExit(f"it did not happen; see {self.said}:\n{self.said.read_text()[-2000:]}")
            time.sleep(0.2)
        return time.monotonic() - began


def below(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def times_of(process: psutil.Process) -> float:
    """Its own, and of its children that have ended."""
    try:
        return sum(process.cpu_times()[:4])
    except psutil.NoSuchProcess:
        return 0.0


def moment(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
