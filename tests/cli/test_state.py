"""`explain VIEW`: which join of its inputs is kept, and which one would be worth keeping."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from partwise.ledger.write.commit import Content, Entry
from partwise.workspace import open_workspace
from tests.cli.conftest import Run

#: 2026-10-03T00:00 UTC in minutes.
DAY = 1_790_985_600 // 60
TEXT = """
source: lineitem
part: 1 minute
time: t
columns: {t: timestamp, l_orderkey: bigint, price: bigint}
files: l/*.csv
---
source: orders
part: 1 minute
time: t
columns: {t: timestamp, o_orderkey: bigint, o_custkey: bigint, kind: string}
files: o/*.csv
---
dimension: customer
columns: {c_custkey: bigint, c_name: string}
files: c.csv
---
view: revenue
part: 1 minute
update: |
  SELECT c_name, SUM(price) AS revenue FROM lineitem[j], orders[j], customer
  WHERE l_orderkey = o_orderkey AND o_custkey = c_custkey AND kind = 'web' GROUP BY c_name
"""


def arrived(rows_of_orders: int) -> None:
    """Ten minutes a load; of every part there are three late deliveries, forty minutes later."""
    ledger = open_workspace(".", {}).open_ledger(0.0)
    definitions = open_workspace(".", {}).definitions(ledger)
    with closing(ledger.database):
        ledger.define(definitions.graph(), 0.0)

        def load(name: str, rows: dict[int, int], clock: float, mark: str) -> None:
            fingerprint = ledger.graph()[name].fingerprint
            at, held = ledger.current(name), ledger.take(name, "ingest", 60, clock)
            contents = {p: Content(n, f"{mark}:{p}") for p, n in rows.items()}
            entry = Entry(name, at.generation, fingerprint, None, parts=contents, reason="loaded", arrived=rows)
            ledger.commit(held, entry, 0 if at.version is None else at.version + 1, clock)

        load("customer", {0: rows_of_orders // 5}, (DAY + 1) * 60.0, "c")
        for number in range(30):
            first = DAY + 10 * number
            clock = (first + 10) * 60.0
            load("orders", dict.fromkeys(range(first, first + 10), rows_of_orders), clock, f"o{number}")
            load("lineitem", dict.fromkeys(range(first, first + 10), 4 * rows_of_orders), clock, f"l{number}")
            for late in range(3 if number >= 4 else 0):
                rows = dict.fromkeys(range(first - 40, first - 30), 4 * rows_of_orders)
                load("lineitem", rows, clock + late + 1, f"late{number}:{late}")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "w" / "view_defs").mkdir(parents=True)
    (tmp_path / "w" / "partwise.yaml").write_text("")
    (tmp_path / "w" / "view_defs" / "all.yaml").write_text(TEXT)
    monkeypatch.chdir(tmp_path / "w")
    return tmp_path / "w"


def test_large_parts_that_get_late_rows_are_worth_it(run: Run, place: Path) -> None:
    arrived(5_000_000)
    shown = run("explain", "revenue").out
    assert "hint: keeping orders and customer joined, about " in shown
    assert "times less work for the rows that are expected late" in shown
    assert "To have it: state: {join: [orders, customer]}" in " ".join(shown.split())
    (found,) = run("explain", "revenue", "--json").json["views"]
    advice = found["state"]["advice"]
    assert (found["state"]["helper"], advice["join"]) == (None, ["orders", "customer"])
    assert advice["recompute"] > 1.1 * advice["cost"]
    (place / "view_defs" / "all.yaml").write_text(f"{TEXT}state: {{join: [orders, customer]}}\n")
    shown = run("explain", "revenue").out
    assert "state: orders and customer joined in revenue__joined: nothing yet" in shown
    assert "hint:" not in shown
    assert [each["name"] for each in run("explain", "revenue", "--json").json["views"]] == [
        "revenue",
        "revenue__joined",
    ]


@pytest.mark.usefixtures("place")
def test_small_parts_are_not(run: Run) -> None:
    arrived(10_000)
    assert "hint" not in run("explain", "revenue").out
    assert run("explain", "revenue", "--json").json["views"][0]["state"] is None


def test_where_it_does_not_pay_the_end_is_suggested(run: Run, place: Path) -> None:
    (place / "view_defs" / "all.yaml").write_text(f"{TEXT}state: {{join: [orders, customer]}}\n")
    arrived(10_000)
    assert "it hardly pays to keep anything" in run("explain", "revenue").out
