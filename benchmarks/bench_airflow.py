"""How long until data that land are visible at the end of a chain, against what Airflow alone needs for as many hops.

The product is started as `make run` starts it. Beside a source and two views (three tables in a chain) there is an empty
chain: two DAGs of two tasks that do nothing, the second started by an asset of the first. A hop of the empty chain is
what Airflow takes; the chain of views may take as many hops and half as much again, and the time that the steps
themselves compute. How often the source is looked at (5 seconds) is in it as well.

    python benchmarks/bench_airflow.py [ROUNDS]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from served import SOURCE, VIEW, Product, moment

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


class Chain(Product):
    """With the empty chain beside it."""

    def hop(self) -> float:
        """What one task that does nothing takes: the time of four in two DAGs, the second started by an event, by four.

        From the time that the first run is queued to the end of the second one.
        """
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


def chain(rounds: int) -> None:
    definitions = SOURCE + "poll: 5 seconds\n" + VIEW % ("a", "m") + VIEW % ("b", "a")
    with (
        tempfile.TemporaryDirectory() as name,
        Chain(Path(name), definitions, EMPTY) as it,
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    chain(parser.parse_args().rounds)
