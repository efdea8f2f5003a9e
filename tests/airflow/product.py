"""`partwise serve` on a small workspace, as tests kill its parts: who runs, who holds a table, what Airflow says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from partwise.airflow_api import Api
from partwise.ledger.ledger import Ledger
from partwise.ledger.schema import lease
from partwise.parts import FOREVER, Parts, parse_part
from partwise.serve.supervise.child import free_port
from partwise.settings import Airflow
from partwise.workspace import open_workspace

DEFINITIONS = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, src: string, loss: double}
files: landing/m/*.csv
poll: 5 seconds
---
view: a
part: 1 minute
update: |
  SELECT src, SUM(loss) AS total, COUNT(*) AS n FROM m[j] GROUP BY src
---
view: b
part: 1 minute
update: |
  SELECT SUM(total) AS total FROM a[j]
---
view: pair
part: 1 minute
update: |
  SELECT SUM(total) AS total FROM a[j-1..j]
"""


class Product:
    def __init__(self, folder: Path, definitions: str = DEFINITIONS) -> None:
        self.workspace, self.said = folder / "ws", folder / "said"
        self.ports = [free_port() for _ in range(3)]
        (self.workspace / "view_defs").mkdir(parents=True)
        (self.workspace / "landing" / "m").mkdir(parents=True)
        (self.workspace / "partwise.yaml").touch()
        (self.workspace / "dags").mkdir()
        (self.workspace / "view_defs" / "all.yaml").write_text(definitions)
        self.process: subprocess.Popen[bytes] | None = None
        self._api: Api | None = None

    def start(self) -> None:
        words = [f"--port={self.ports[0]}", f"--spark-port={self.ports[1]}", f"--spark-ui-port={self.ports[2]}"]
        command = [sys.executable, "-m", "partwise.cli", "serve", "--workspace", str(self.workspace), "--no-feed"]
        with open(self.said, "ab") as output:
            self.process = subprocess.Popen([*command, *words], stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            try:
                self.process.wait(90)
            finally:
                self.process.kill()

    def partwise(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command beside the running product, with its driver: one of its own would take half a minute to start."""
        command = [sys.executable, "-m", "partwise.cli", *words, "--workspace", str(self.workspace)]
        known = {**os.environ, "PARTWISE_SPARK_REMOTE": f"sc://127.0.0.1:{self.ports[1]}"}
        return subprocess.run(command, capture_output=True, text=True, cwd=self.workspace, env=known)

    # -- data -------------------------------------------------------------------------------------

    def land(self, name: str, *rows: tuple[str, str, float]) -> None:
        """A file, complete at once: rows of (minute of the hour 10, src, loss)."""
        text = "".join(f"2026-10-03T10:{minute}:10,{src},{loss}\n" for minute, src, loss in rows)
        draft = self.workspace / f".{name}"
        draft.write_text("t,src,loss\n" + text)
        draft.replace(self.workspace / "landing" / "m" / f"{name}.csv")

    def ledger(self) -> Ledger:
        return open_workspace(str(self.workspace)).open_ledger(time.time())

    def read(self, ask: Callable[[Any], Any]) -> Any:
        ledger = self.ledger()
        try:
            with ledger.database.reading() as r:
                return ask(r)
        finally:
            ledger.database.close()

    def parts(self, table: str) -> Parts:
        from partwise.ledger.runs import existing

        return self.read(lambda r: existing(r, table, -FOREVER, FOREVER))

    def has(self, table: str, minute: str) -> bool:
        return parse_part(f"2026-10-03T10:{minute}", 60) in self.parts(table)

    def total(self, table: str, minute: str) -> float | None:
        from partwise.reading import read

        sql = f"SELECT SUM(total) FROM {table} WHERE part_timestamp = '2026-10-03T10:{minute}'"
        rows = read(sql, str(self.workspace)).rows if self.has(table, minute) else []
        return rows[0][0] if rows else None

    def holder(self, table: str) -> str | None:
        from sqlalchemy import select

        return self.read(lambda r: r.on.execute(select(lease.c.holder).where(lease.c.table == table)).scalar())

    # -- processes --------------------------------------------------------------------------------

    def pid(self, component: str) -> int:
        found = json.loads((self.workspace / ".partwise" / "processes.json").read_text())
        return int(found[component][0])

    def kill(self, component: str) -> None:
        """Kill -9 the process that answers for it: of a shell around the JVM, the JVM."""
        assert self.process is not None
        if component == "postgres":
            [process] = [p for p in psutil.Process(self.process.pid).children() if p.name() == "postgres"]
        else:
            process = psutil.Process(self.pid(component))
        for child in process.children(recursive=True) if component == "spark" else []:
            child.kill()
        os.kill(process.pid, signal.SIGKILL)

    def kill_holder(self, table: str) -> None:
        """Kill -9 the task that writes a table; its name in the ledger says which process it is."""
        holder = self.holder(table)
        assert holder is not None
        os.kill(int(holder.split(":")[1]), signal.SIGKILL)

    # -- Airflow ----------------------------------------------------------------------------------

    @property
    def api(self) -> Api:
        if self._api is None:
            login = json.loads((self.workspace / ".partwise" / "passwords.json").read_text())
            user, password = next(iter(login.items()))
            self._api = Api(Airflow(f"http://127.0.0.1:{self.ports[0]}", user, password))
        return self._api

    def runs(self, dag: str) -> list[dict[str, Any]]:
        return self.api.get(f"/dags/{dag}/dagRuns?limit=100&order_by=-id")["dag_runs"]

    def state(self, dag: str, run: str, task: str) -> str | None:
        return self.api.get(f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}")["state"]

    def trigger(self, dag: str, conf: dict[str, Any]) -> str:
        return str(self.api.post(f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": conf})["dag_run_id"])

    # -- waiting ----------------------------------------------------------------------------------

    def wait(self, what: str, done: Callable[[], Any], seconds: float = 240, every: float = 1.0) -> float:
        began, last = time.monotonic(), None
        while time.monotonic() - began < seconds:
            assert self.process is not None
            assert self.process.poll() is None, f"it ended with {self.process.returncode}\n{self.logs()}"
            try:
                if done():
                    waited = time.monotonic() - began
                    print(f"{what}: {waited:.0f} s", flush=True)
                    return waited
            except Exception as why:  # a component that was killed may be what answers
                last = why
            time.sleep(every)
        raise AssertionError(f"{what}: not within {seconds:.0f} s; {last!r}\n{self.logs()}")

    def is_right(self) -> None:
        """Once nothing is left to do, every part equals recomputation from the sources."""

        def quiet() -> bool:
            ledger = self.ledger()
            try:
                return not ledger.plan(1e12).steps
            finally:
                ledger.database.close()

        self.wait("nothing is left to do", quiet)
        done = self.partwise("verify", "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout)["different"] == []

    def logs(self) -> str:
        found = [self.said, *sorted((self.workspace / ".partwise" / "logs").glob("*.log"))]
        return "\n".join(f"== {f.name}\n{f.read_text(errors='replace')[-1500:]}" for f in found if f.exists())


def mentioning(text: str) -> list[str]:
    """Processes that have to do with a folder: on their command line, as their place of work."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline", "cwd", "status"]):
        about = [*(process.info["cmdline"] or []), process.info["cwd"] or ""]
        if process.pid != os.getpid() and any(text in word for word in about):
            found.append(f"{process.pid} {' '.join(about)}")
    return found
