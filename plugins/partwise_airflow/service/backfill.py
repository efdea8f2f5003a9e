"""The backfill form: a table and a range become a plan, then steps in the order of dependency, then a report.

    plan -> wave 1: one mapped task per table -> wave 2 -> ... -> report

Airflow's own backfills refuse DAGs that events schedule; the ledger knows better anyway what a range affects.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, BaseOperator, Param, task
from airflow.sdk.exceptions import AirflowFailException

from partwise.backfill import Asked, BadRange, ask, closure, parse
from partwise.ledger.ledger import Ledger
from partwise.ledger.read.snapshot import as_defined
from partwise.ledger.records import backfills
from partwise.ledger.records.backfills import Backfill, BackfillOver, Overlaps, world_of
from partwise.ledger.write.lease_holding import is_dead
from partwise.parts import FOREVER, Parts
from partwise.plan.next import parts_text
from partwise.plan.urgency import USUAL
from partwise.tables import Graph
from partwise_airflow.dags import LONGEST_STEP, START
from partwise_airflow.driver import wait_for_driver
from partwise_airflow.place import ledger_at
from partwise_airflow.priority import by_deadline
from partwise_airflow.tasks.step import CONNECT, POOL, RETRIES, by, let_go, passed

DAG_ID = "partwise_backfill"
#: Of tasks that need no Spark: a worker may die, the ledger may be away for a moment.
LEDGER_RETRIES: dict[str, Any] = {"retries": 3, "retry_delay": timedelta(seconds=5)}


class PlanBackfill(BaseOperator):
    """Says what would be done and, unless this is a dry run, asks the ledger for it."""

    ui_color = "#e3dcf0"

    def __init__(self, *, workspace: str | None, depth: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.workspace, self.depth = workspace, depth

    def execute(self, context: Any) -> dict[str, Any]:
        form = context["params"]
        with ledger_at(self.workspace, take_over=True) as (_, ledger):
            graph = ledger.graph()
            if form["table"] not in graph.tables:
                raise AirflowFailException(f"There is no view {form['table']}.")
            holder = f"airflow:{context['run_id']}"
            before = _mine(ledger, holder)
            if before is None and form.get("resume"):
                before = _interrupted(ledger, form["resume"])
            asked, follows = _meant(ledger, graph, form) if before is None else _left(ledger, before)
            for line in plan_lines(graph, asked, follows):
                self.log.info("%s", line)
            if form["dry_run"]:
                self.log.info("This was a dry run: nothing is done.")
                return {"number": None, "waves": []}
            with ledger.database.writing(time.time()) as w:
                try:
                    if before is None:
                        begun = backfills.begin(w, graph, asked, form["downstream"], holder, is_dead)
                    elif before.holder == holder and before.alive(w.now, is_dead):
                        begun = before
                        backfills.beat(w, begun.number)
                    else:
                        begun = backfills.go_on(w, graph, before.number, holder, is_dead)
                except BackfillOver:
                    number = before.number if before is not None else form["resume"]
                    raise AirflowFailException(f"Backfill {number} has finished meanwhile.") from None
                except Overlaps as why:
                    other = why.other.text(graph)
                    raise AirflowFailException(f"{other} is working on some of these parts; wait for it.") from None
            tables = [*begun.asked, *asked.scope, *follows]
            return {"number": begun.number, "waves": waves(graph, tables, self.depth)}


def _meant(ledger: Ledger, graph: Graph, form: Mapping[str, Any]) -> tuple[Asked, dict[str, Parts]]:
    with as_defined(ledger, graph, time.time()) as snapshot:
        world = world_of(snapshot)
        name = form["table"]
        there = world.existing(name, -FOREVER, FOREVER)
        ends = (there.first, there.last) if there else (None, None)
        try:
            span = parse(str(form["range"] or ""), graph[name].length, *ends)
            asked = ask(world, name, span, form["upstream"])
        except BadRange as why:
            raise AirflowFailException(str(why)) from None
        return asked, closure(graph, world.start, world.existing, asked.scope, form["downstream"])


def _mine(ledger: Ledger, holder: str) -> Backfill | None:
    """What an earlier try of this task has begun: it died before Airflow knew, or somebody cleared it."""
    with ledger.database.reading() as r:
        return next((each for each in backfills.unfinished(r) if each.holder == holder), None)


def _interrupted(ledger: Ledger, number: int) -> Backfill:
    with ledger.database.reading() as r:
        found = next((each for each in backfills.unfinished(r) if each.number == number), None)
    if found is None:
        raise AirflowFailException(f"There is no unfinished backfill {number}.")
    return found


def _left(ledger: Ledger, before: Backfill) -> tuple[Asked, dict[str, Parts]]:
    """What is left of a backfill that was interrupted, and what may follow."""
    with as_defined(ledger, ledger.graph(), time.time()) as snapshot:
        world, graph = world_of(snapshot), snapshot.graph
        asked = backfills.what_is_left(snapshot.r, graph, before)
        return asked, closure(graph, world.start, world.existing, before.asked, before.downstream)


def plan_lines(graph: Graph, asked: Asked, follows: Mapping[str, Parts]) -> list[str]:
    """The plan as a table."""
    rows = [("table", "parts", "", "why")]
    for name in (n for n in graph.order if n in asked.scope):
        parts = asked.scope[name]
        why = "requested" if name in asked.requested else "needed first"
        rows.append((name, parts_text(parts, graph[name].length), str(parts.count), why))
    for name in (n for n in graph.order if n in follows):
        parts = follows[name]
        rows.append((name, parts_text(parts, graph[name].length), str(parts.count), "follows if what it reads changes"))
    return [*aligned(rows), *asked.notes]


def aligned(rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = list(rows)
    widths = [max(len(row[at]) for row in lines) for at in range(len(lines[0]))]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in lines]


def waves(graph: Graph, tables: Iterable[str], most: int) -> list[list[str]]:
    """Tables in the order of dependency, side by side where they do not need each other. The last wave takes the rest."""
    wanted = set(tables)
    level: dict[str, int] = {}
    for name in graph.order:
        above = [level[other] + (other in wanted) for other in graph[name].input_names if other in level]
        level[name] = max(above, default=0)
    found: list[list[str]] = [[] for _ in range(most)]
    for name in (n for n in graph.order if n in wanted):
        found[min(level[name], most - 1)].append(name)
    return [wave for wave in found if wave]


class ReportBackfill(BaseOperator):
    """What became of it, as a table in the log. Fails if parts are left."""

    ui_color = "#e8f0d8"

    def __init__(self, *, workspace: str | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.workspace = workspace

    def execute(self, context: Any) -> list[dict[str, Any]]:
        planned = context["ti"].xcom_pull(task_ids="plan")
        if not planned:
            raise AirflowFailException("there was no plan")
        if planned["number"] is None:
            return []
        with ledger_at(self.workspace) as (_, ledger):
            graph = ledger.graph()
            with ledger.database.reading() as r:
                found = next((b for b in backfills.unfinished(r) if b.number == planned["number"]), None)
                done = {} if found is None else backfills.progress(r, graph, found)
            left = {} if found is None else backfills.still_asked(found, done)
            with ledger.database.writing(time.time()) as w:
                backfills.finish(w, planned["number"], done=not left)
        rows: list[tuple[str, ...]] = [("table", "recomputed", "changed", "unchanged", "left")]
        rows += [(n, *(str(p.count) for p in (d.recomputed, d.changed, d.unchanged, d.left))) for n, d in done.items()]
        for line in aligned(rows):
            self.log.info("%s", line)
        if left:
            told = ", ".join(f"{name}[{parts_text(parts, graph[name].length)}]" for name, parts in left.items())
            raise AirflowFailException(f"not recomputed: {told}; see `partwise why`")
        if others := sum(item.left.count for item in done.values()):
            self.log.info(
                "%s of them still due: they wait for other stale parts, and the next run computes them.", others
            )
        return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def backfill_dag(spec: dict[str, Any], *, run: Any, submit: Any = None) -> DAG:
    """`run` is the module with the functions that Spark carries out, `submit` the one that spark-submit runs."""
    from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator

    class Step(PySparkOperator):
        submitted: Any = None

        def __init__(self, **kwargs: Any) -> None:
            # One mapped task for all tables: each of them has the timeout of its view.
            if seconds := spec.get("timeouts", {}).get((kwargs.get("op_kwargs") or {}).get("name")):
                kwargs["execution_timeout"] = timedelta(seconds=seconds)
            super().__init__(**kwargs)

        def execute(self, context: Any) -> Any:
            step = json.loads(self.op_kwargs["step"]) | {"by": by(context)}
            self.op_kwargs = {**self.op_kwargs, "step": json.dumps(step)}
            table = self.op_kwargs["name"]
            if table in spec.get("submit", ()):
                from partwise_airflow.tasks.submit import Submitted

                self.submitted = Submitted(workspace, table, self.op_kwargs["step"], submit)
                return self.submitted.run()
            wait_for_driver(CONNECT)
            return passed(super().execute(context))

        def on_kill(self) -> None:
            if self.submitted is not None:
                self.submitted.hook.on_kill()
            let_go(self.op_kwargs)

    workspace, tables, depth = spec["workspace"], spec["tables"], max(1, spec["depth"])
    with DAG(
        DAG_ID,
        description="Recomputes parts of a view, and exactly what they affect",
        doc_md=__doc__,
        schedule=None,
        start_date=START,
        catchup=False,
        tags=["partwise"],
        default_args={"owner": "partwise", **(by_deadline(USUAL) if spec.get("deadlines") else {})},
        params={
            "table": Param(tables[0] if tables else "", type="string", enum=tables or [""], title="View"),
            "range": Param(
                "",
                type="string",
                title="Part or range",
                description="2026-10-03T10:05, A..B (both included), A.. or ..B, in UTC",
            ),
            "upstream": Param(False, type="boolean", description="What it is computed from as well"),
            "downstream": Param(True, type="boolean", description="Everything that follows, in this run"),
            "resume": Param(
                None,
                type=["null", "integer"],
                description="Continue the backfill of this number; the other fields are ignored",
            ),
            "dry_run": Param(False, type="boolean", title="Dry run", description="Only show what would be done"),
        },
    ) as dag:
        last: Any = PlanBackfill(task_id="plan", workspace=workspace, depth=depth, **LEDGER_RETRIES)
        plan = last
        for at in range(depth):

            @task(task_id=f"wave_{at + 1}", trigger_rule="none_failed", **LEDGER_RETRIES)
            def wave(planned: dict[str, Any], at: int = at) -> list[dict[str, str]]:
                tables = planned["waves"][at] if at < len(planned["waves"]) else []
                base = {"workspace": workspace, "backfill": planned["number"]}
                return [{"step": json.dumps(base | {"table": name}), "name": name} for name in tables]

            steps = wave(plan.output)
            last >> steps
            last = Step.partial(
                task_id=f"compute_{at + 1}",
                python_callable=run.run_backfill,
                conn_id=CONNECT,
                pool=POOL,
                trigger_rule="none_failed",
                map_index_template="{{ task.op_kwargs['name'] }}",
                execution_timeout=LONGEST_STEP,
                **RETRIES,
            ).expand(op_kwargs=steps)
        last >> ReportBackfill(task_id="report", workspace=workspace, trigger_rule="all_done", **LEDGER_RETRIES)
    return dag
