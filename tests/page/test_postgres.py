"""PostgreSQL answers what SQLite answers, at every zoom."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from partwise.compile.program import Program
from partwise.page.changed import changed
from partwise.page.heat import heat
from partwise.page.lateness import lateness
from partwise.page.lineage import lineage
from partwise.page.part import cell, details
from partwise.page.preview import preview
from partwise.page.tab import tab
from tests.ledger.conftest import Postgres, postgres  # noqa: F401
from tests.page.warehouse import MINUTE, TEN, Warehouse, every_state


def everything(made: Warehouse) -> list[object]:
    with made.snapshot() as snapshot:
        graph = snapshot.graph
        return [
            *(asdict(heat(snapshot, TEN - 600, TEN + 9000, cells)) for cells in (2000, 100, 10, 1)),
            # Before 1970, where databases and Python divide differently.
            asdict(heat(snapshot, -86400 * 3, 86400, 100)),
            asdict(heat(snapshot)),
            *(asdict(cell(snapshot, table, TEN, TEN + 3600)) for table in graph.tables.values()),
            *(asdict(details(snapshot, graph["worst"], MINUTE + p)) for p in (5, 20, 45)),
            asdict(lineage(snapshot)),
            asdict(preview(snapshot, graph["by_minute"], "2026-10-03T10:20..2026-10-03T10:22")),
            asdict(changed(snapshot, graph["final"], 0.0)),
            asdict(lateness(snapshot.r, graph["measurements"])),
            asdict(tab(snapshot, Program(), graph["worst"])),
        ]


@pytest.mark.xdist_group("postgres")
def test_both_databases_say_the_same(postgres: Postgres) -> None:  # noqa: F811
    made = every_state(postgres.migrated())
    try:
        assert everything(made) == everything(every_state())
    finally:
        made.ledger.database.close()


def test_parts_before_1970_are_shown() -> None:
    made = every_state()
    made.deliver("measurements", dict.fromkeys(range(-30, -20), 0))
    made.deliver("measurements", dict.fromkeys(range(-25, -20), 2))
    with made.snapshot() as snapshot:
        row = heat(snapshot, -3600, 0, 120).rows[0]
    assert row.table == "measurements"
    assert row.cells.startswith("30-5e5r")
    assert replace(row, cells="").first == -60
