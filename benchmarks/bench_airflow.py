"""How long until data that land are visible at the end of a chain, against what Airflow alone needs for as many hops.

The product is started as `make run` starts it. Beside a source and two views (three tables in a chain) there is an empty
chain: two DAGs of two tasks that do nothing, the second started by an asset of the first. A hop of the empty chain is
what Airflow takes; the chain of views may take as many hops and half as much again, and the time that the steps
themselves compute. How often the source is looked at (5 seconds) is in it as well.

    python benchmarks/bench_airflow.py [ROUNDS]               the chain
    python benchmarks/bench_airflow.py --views 50 --minutes 10   so many views with one new part a minute: is there a backlog?
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from partwise.ledger.ledger import Ledger
from partwise.ledger.open import open_ledger
from partwise.serve.child import free_port
from partwise.serve.pools import call
from partwise.serve.summary import lines

SOURCE = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, g: bigint, x: double}
files: landing/m/*.csv
poll: 5 seconds
"""
VIEW = """
---
view: %s
part: 1 minute
update: SELECT g, SUM(x) AS x FROM %s[j] GROUP BY g
"""
EMPTY = """
from airflow.sdk import DAG, Asset, task
hop = Asset("hop")
for name, schedule, outlets in (("empty_one", None, [hop]), ("empty_two", [hop], [])):
    with DAG(name, schedule=schedule, catchup=False) as dag:
        @task
        def first(): pass
        @task(outlets=outlets)
        def second(): pass
        first() >> second()
    globals()[name] = dag
"""


class Product:
    """`partwise serve` on a workspace made for the benchmark."""

    def __init__(self, folder: Path, definitions: str) -> None:
        self.folder = folder
        for name in ("view_defs", "landing/m", "dags"):
            (folder / name).mkdir(parents=True)
        (folder / "partwise.yaml").touch()
        (folder / "view_defs/all.yaml").write_text(definitions)
        (folder / "dags/empty.py").write_text(EMPTY)
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

    def spent(self) -> float:
        """CPU seconds of all processes, those that have ended included."""
        me = psutil.Process(self.process.pid)
        return sum(sum(process.cpu_times()[:4]) for process in [me, *me.children(recursive=True)])

    def wait(self, what: Any, seconds: float) -> float:
        began = time.monotonic()
        while not what():
            if self.process.poll() is not None or time.monotonic() - began > seconds:
                raise SystemExit(f"it did not happen; see {self.said}:\n{self.said.read_text()[-2000:]}")
            time.sleep(0.2)
        return time.monotonic() - began

    def hop(self) -> float:
        """From the end of a task that emits an event to the end of the second task that follows from it, per task."""
        run = self.ask("dags/empty_one/dagRuns", "POST", {"logical_date": None})["dag_run_id"]
        self.wait(lambda: self.ask(f"dags/empty_one/dagRuns/{run}")["state"] == "success", 120)
        began = moment(self.ask(f"dags/empty_one/dagRuns/{run}")["queued_at"])

        def last() -> list[dict[str, Any]]:
            found = self.ask("dags/empty_two/dagRuns?order_by=-run_after&limit=1")["dag_runs"]
            return [r for r in found if r["state"] == "success" and moment(r["queued_at"]) >= began]

        self.wait(last, 120)
        return (moment(last()[0]["end_date"]) - began) / 4  # tasks, one after the other, in two DAGs

    def computing(self) -> float:
        """Seconds that the newest steps of the chain computed, without what Airflow does around them."""
        total = 0.0
        for dag, task in (("m", "load"), ("a", "a"), ("b", "b")):
            for run in self.ask(f"dags/{dag}/dagRuns?order_by=-run_after&limit=10")["dag_runs"]:
                path = f"dags/{dag}/dagRuns/{run['dag_run_id']}/taskInstances/{task}"
                if self.ask(path)["state"] == "success":
                    report = self.ask(f"{path}/xcomEntries/return_value?deserialize=true")["value"]
                    total += sum(step["seconds"] for step in report.get("steps", [report]))
                    break
        return total


def moment(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def chain(rounds: int) -> None:
    with (
        tempfile.TemporaryDirectory() as name,
        Product(Path(name), SOURCE + VIEW % ("a", "m") + VIEW % ("b", "a")) as it,
    ):
        minute = int(time.time() // 60) - 1000
        it.land(minute)
        it.wait(lambda: "a" in it.parts() and it.ask("dags?limit=100")["total_entries"] >= 7, 200)
        hops, totals, ratios = [], [], []
        for number in range(rounds + 1):
            before = it.parts()["b"]
            it.land(minute + 2 * number + 1)
            began = time.time()
            it.land(minute + 2 * number + 2)
            it.wait(lambda before=before: it.parts()["b"] > before, 240)
            total = time.time() - began
            time.sleep(2)
            computed, hop = it.computing(), it.hop()
            if number == 0:
                continue  # the first one warms up
            allowed = 1.5 * hop * 7 + computed  # load, announce; sensor, step, announce; sensor, step
            hops, totals, ratios = [*hops, hop], [*totals, total], [*ratios, total / allowed]
            print(
                f"lands → visible {total:5.1f} s; a hop {hop:4.1f} s; computing {computed:4.1f} s; of the goal {total / allowed:.2f}"
            )
        print(f"median: {statistics.median(totals):.1f} s, {statistics.median(ratios):.2f} of the goal (at most 1)")


def many(views: int, minutes: float) -> None:
    names = [f"v{n}" for n in range(views)]
    with (
        tempfile.TemporaryDirectory() as name,
        Product(Path(name), SOURCE + "".join(VIEW % (v, "m") for v in names)) as it,
    ):
        minute = int(time.time() // 60) - 1000
        it.land(minute)
        it.wait(lambda: it.ask("dags?limit=1")["total_entries"] >= views + 3, 300)
        end, number, spent = time.monotonic() + 60 * minutes, 0, it.spent()
        while time.monotonic() < end:
            number += 1
            it.land(minute + number)
            time.sleep(60)
            found = it.parts()
            behind = [found["m"] - found.get(v, 0) for v in names]
            print(
                f"minute {number}: {found['m']} source parts; views are behind by {sum(behind) / views:.1f}, at most {max(behind)}"
            )
        # Whatever else the machine does: what a run costs. Views that are behind catch up several parts in one run.
        runs = sum(it.ask(f"dags/{v}/dagRuns?state=success&limit=1")["total_entries"] for v in names)
        each = (it.spent() - spent) / max(1, runs)
        print(f"{runs} runs, {each:.1f} CPU seconds each: two cores carry {120 / each:.0f} runs a minute")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    parser.add_argument("--views", type=int)
    parser.add_argument("--minutes", type=float, default=10)
    given = parser.parse_args()
    many(given.views, given.minutes) if given.views else chain(given.rounds)
