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


def views(run: Run) -> list[str]:
    return [each["name"] for each in run("explain", "revenue", "--json").json["views"]]


def test_what_pays_is_chosen_within_the_budget(run: Run, place: Path) -> None:
    arrived(2_000_000)
    shown = " ".join(run("explain", "revenue").out.split())
    assert "not kept yet: keeping orders and customer joined, about " in shown
    assert "times less work for the rows that are expected late" in shown
    assert views(run) == ["revenue"]
    run("retain")
    (found, helper) = run("explain", "revenue", "--json").json["views"]
    assert helper["name"] == "revenue__joined"
    assert found["state"]["join"] == ["orders", "customer"]
    kept = [option for option in found["state"]["options"] if option["kept"]]
    assert [each["join"] for each in kept] == [["orders", "customer"]]
    assert kept[0]["recompute"] > 1.1 * kept[0]["cost"]
    ages = [(each["age"], each["deliveries"]) for each in found["state"]["deliveries"]]
    assert ages[0] == (0, pytest.approx(3.0, rel=0.05))
    shown = " ".join(run("explain", "revenue").out.split())
    # Late rows came after forty minutes: what is older than the next age that is looked at hardly changes any more.
    assert "state: orders and customer joined in revenue__joined: nothing yet; a part for 1 hour" in shown
    assert "foreseen: " in shown
    assert "not kept: " in shown
    assert run("status", "revenue", "--json").json["parts"] == [
        each for each in run("status", "revenue", "--json").json["parts"] if each["state"] != "stale"
    ]
    # A smaller budget than one part takes, and none: nothing is kept, and nothing of the view itself is due for that.
    (place / "partwise.yaml").write_text("state_budget: 1 KB\n")
    run("retain")
    assert views(run) == ["revenue"]
    (place / "partwise.yaml").write_text("state_budget: 2 GB\n")
    run("retain")
    assert views(run) == ["revenue", "revenue__joined"]
    (place / "partwise.yaml").write_text("state_budget: 0\n")
    assert views(run) == ["revenue"]
    # Another query is another choice.
    (place / "partwise.yaml").write_text("")
    (place / "view_defs" / "all.yaml").write_text(TEXT.replace("kind = 'web'", "kind = 'shop'"))
    assert views(run) == ["revenue"]


@pytest.mark.parametrize("state", ["none", "[aggregate]"])
def test_what_its_author_does_not_want_is_not_kept(run: Run, place: Path, state: str) -> None:
    (place / "view_defs" / "all.yaml").write_text(f"{TEXT}state: {state}\n")
    arrived(2_000_000)
    run("retain")
    assert views(run) == ["revenue"]
    hinted = "To have it: state: {join: [orders, customer]}" in " ".join(run("explain", "revenue").out.split())
    assert hinted == (state == "none")


def test_what_a_definition_names_is_kept_but_for_a_budget_of_nothing(run: Run, place: Path) -> None:
    (place / "view_defs" / "all.yaml").write_text(f"{TEXT}state: {{join: [orders, customer]}}\n")
    arrived(10_000)
    run("retain")
    assert "state: orders and customer joined in revenue__joined: nothing yet" in run("explain", "revenue").out
    assert "it hardly pays to keep anything" in run("explain", "revenue").out
    (place / "partwise.yaml").write_text("state_budget: 0\n")
    assert views(run) == ["revenue"]


@pytest.mark.usefixtures("place")
def test_nothing_is_kept_of_small_parts(run: Run) -> None:
    arrived(10_000)
    run("retain")
    assert "kept" not in run("explain", "revenue").out
    assert run("explain", "revenue", "--json").json["views"][0]["state"] is None
    assert views(run) == ["revenue"]


@pytest.mark.parametrize("text, said", [("2 apples", "is not a size"), ("-1", "is a number"), ("[1]", "a list")])
def test_a_budget_is_a_size(run: Run, place: Path, text: str, said: str) -> None:
    (place / "partwise.yaml").write_text(f"state_budget: {text}\n")
    done = run("explain", "revenue")
    assert done.code == 2
    assert said in done.out + done.err
