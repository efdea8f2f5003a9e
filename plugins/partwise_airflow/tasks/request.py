"""Manual requests: parts of a view are computed even if nothing has changed."""

from __future__ import annotations

import time

from airflow.sdk.exceptions import AirflowFailException

from partwise.backfill import BadRange, ask
from partwise.ledger.ledger import Ledger
from partwise.ledger.read.snapshot import as_defined
from partwise.ledger.records.backfills import mark, world_of
from partwise.parts import BadTime, parse_range


def request(ledger: Ledger, view: str, parts: str) -> None:
    """Mark these parts, and what of the view's own helpers has to be repaired first."""
    graph, now = ledger.graph(), time.time()
    try:
        span = parse_range(parts, graph[view].length)
        with as_defined(ledger, graph, now) as snapshot:
            asked = ask(world_of(snapshot), view, span)
    except (BadRange, BadTime) as why:
        raise AirflowFailException(str(why)) from None
    with ledger.database.writing(now) as w:
        mark(w, graph, asked)
