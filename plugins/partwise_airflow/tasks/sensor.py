"""The sensor: all required parts exist."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSensorTimeout, AirflowSkipException

from partwise.ledger.facts import LedgerFacts
from partwise.ledger.records.announcements import forget, wait_for_turn
from partwise.parts import BadTime
from partwise.plan.next import parts_text
from partwise.plan.planner import look_around
from partwise_airflow.place import ledger_at
from partwise_airflow.tasks.requested import asked_of
from partwise_airflow.trigger import PartsTrigger, look


class PartsSensor(BaseSensorOperator):
    """Waits until parts of a table exist; checks first, and waits in the triggerer only if it must.

    `parts` is a part or a range as in commands (`2026-10-03T10:05`, `A..B`), and may be a template.
    With `required_by=True` it waits for what these parts of the view `table` require, not for the parts themselves.
    Among the rendered fields of a run `waits` says what is missing.
    """

    template_fields: tuple[str, ...] = ("table", "parts", "waits")
    ui_color = "#e3dcf0"

    def __init__(
        self,
        *,
        table: str,
        parts: str,
        required_by: bool = False,
        workspace: str | None = None,
        poke_interval: float = 10,
        **kwargs: Any,
    ) -> None:
        super().__init__(poke_interval=poke_interval, **kwargs)
        self.table, self.parts, self.required_by, self.workspace = table, parts, required_by, workspace
        self.waits = ""

    def render_template_fields(self, context: Any, jinja_env: Any = None) -> None:
        # Airflow stores rendered fields before the task is executed, and not again when it waits.
        super().render_template_fields(context, jinja_env)
        self.waits = self._said(self.parts)

    def _said(self, parts: str) -> str:
        try:
            return look(self.workspace, self.table, parts, own=not self.required_by).text
        except Exception as why:  # whatever is wrong is wrong when the task is executed, and told there
            return str(why)

    def execute(self, context: Any) -> str:
        self._wait(self.parts)
        return self.parts

    def _wait(self, parts: str) -> None:
        try:
            found = look(self.workspace, self.table, parts, own=not self.required_by)
        except BadTime as why:
            raise AirflowFailException(f"{self.table}: {why}") from None
        self.log.info("%s", found.text)
        if found.missing:
            every = float(getattr(self.poke_interval, "total_seconds", lambda: self.poke_interval)())
            self.defer(
                trigger=PartsTrigger(self.table, parts, not self.required_by, self.workspace, every, found.text),
                method_name="arrived",
                timeout=timedelta(seconds=self.timeout),
            )

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Any) -> Any:
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except AirflowSensorTimeout:
            # Airflow's own message says only that the trigger timed out.
            found = look(self.workspace, self.table, self.awaited(context), own=not self.required_by)
            raise AirflowSensorTimeout(f"gave up after {self.timeout:.0f} seconds: {found.text}") from None

    def awaited(self, context: Any) -> str:
        return self.parts

    def arrived(self, context: Any, event: dict[str, str]) -> str:
        self.log.info("%s", event["text"])
        return event["text"]


class RequiredParts(PartsSensor):
    """The first task of a view's DAG.

    Of a run that an event made the ledger knows whether it has anything to do: what is ready has everything it
    requires. If another run has done it already, this one ends here. Whoever asks for a part waits for what it requires.
    """

    template_fields: tuple[
        str, ...
    ] = ()  # what is rendered is stored, by a call of the API: only where somebody may wait and look

    def __init__(self, *, table: str, **kwargs: Any) -> None:
        super().__init__(table=table, parts="", required_by=True, **kwargs)

    def render_template_fields(self, context: Any, jinja_env: Any = None) -> None:
        asked = asked_of(context)
        if asked.requested and asked.parts is not None:
            self.template_fields = ("waits",)
            self.waits = self._said(asked.parts)

    def execute(self, context: Any) -> str:
        asked = asked_of(context)
        if asked.requested and asked.parts is not None:
            with ledger_at(self.workspace, take_over=True):
                pass  # the view may be so new that the ledger does not know it yet
            self._wait(asked.parts)
            return asked.parts
        return self._ready(context["run_id"])

    def awaited(self, context: Any) -> str:
        return asked_of(context).parts or ""

    def _ready(self, run: str) -> str:
        with ledger_at(self.workspace, take_over=True) as (_, ledger):
            graph = ledger.graph()
            names = [n for n in graph.order if self.table in graph[n].for_views]
            with ledger.database.reading() as r:
                looks = look_around(graph, LedgerFacts(r), time.time(), names)
            ready = {name: looks[name].ready for name in names if name in looks and looks[name].ready}
            if not ready:
                with ledger.database.writing(time.time()) as w:
                    forget(w, self.table, None)
                raise AirflowSkipException(f"{self.table}: nothing of it is due and ready; another run was faster")
            with ledger.database.aside() as on:
                wait_for_turn(on, self.table, run)  # from now on another run may compute it along with its own
        told = [f"{name}[{parts_text(parts, graph[name].length)}]" for name, parts in ready.items()]
        self.log.info("%s: everything that is required exists", ", ".join(told))
        return ", ".join(told)
