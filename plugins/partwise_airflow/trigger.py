"""Waits in the triggerer, without a worker: asks the ledger now and then whether the parts are there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from partwise.announce import Waiting, waiting_for
from partwise.ledger.facts import LedgerFacts
from partwise.parts import parse_range
from partwise_airflow.place import ledger_at


class PartsTrigger(BaseTrigger):
    def __init__(self, table: str, parts: str, own: bool, workspace: str | None, every: float, waits: str = "") -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.table, self.parts, self.own, self.workspace = table, parts, own, workspace
        self.every, self.waits = every, waits

    def serialize(self) -> tuple[str, dict[str, Any]]:
        kwargs = {name: getattr(self, name) for name in ("table", "parts", "own", "workspace", "every", "waits")}
        return "partwise_airflow.trigger.PartsTrigger", kwargs

    async def run(self) -> AsyncIterator[TriggerEvent]:
        said = ""
        while True:
            found = await asyncio.to_thread(look, self.workspace, self.table, self.parts, self.own)
            if not found.missing:
                yield TriggerEvent({"text": found.text})  # type: ignore[no-untyped-call]
                return
            if found.text != said:
                self.log.info("%s", found.text)
                said = found.text
            await asyncio.sleep(self.every)


def look(workspace: str | None, table: str, parts: str, own: bool) -> Waiting:
    """What these parts still wait for. Raises if there is no such table or part."""
    with ledger_at(workspace) as (_, ledger):
        graph = ledger.graph()
        if table not in graph.tables:
            raise ValueError(f"The ledger knows no table {table}; there are {', '.join(sorted(graph.tables))}.")
        span = parse_range(parts, graph[table].length)
        with ledger.database.reading() as r:
            return waiting_for(graph, LedgerFacts(r), table, span, own)
