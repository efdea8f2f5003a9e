"""From late rows to an answer, and to the refresh that it is compared with: all of it but Spark."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from partwise.cli import main
from partwise.compile.sample.hashing import hash_of, threshold
from partwise.fresh import of_part
from partwise.fresh.of_part import estimated
from partwise.fresh.probe import part_answer
from partwise.ledger.schema import reader
from partwise.parts import parse_part
from tests.fresh.engine import Engine

DEFINITIONS = """
source: orders
part: 1 hour
time: at
columns: {at: timestamp, customer: string, region: string, amount: double}
files: landing/*.csv
---
view: revenue
part: 1 hour
refresh: {every: 1 day}
sample: {ratio: 20 %, key: customer, outliers: {column: amount, keep: 40}, exact: [c7]}
update: |
  SELECT customer, region, SUM(amount) AS revenue, COUNT(*) AS n FROM orders[j] GROUP BY customer, region
"""
COLUMNS = {"customer": "string", "region": "string", "amount": "double"}
HOUR = {h: parse_part(f"2026-10-03T{h:02d}:00", 3600) for h in range(7, 13)}
CUSTOMERS = 1200
Rows = list[tuple[Any, ...]]


def orders(chance: random.Random, share: float) -> Rows:
    return [
        (None if n == 11 else f"c{n}", ("EU", "US")[n % 2], round(chance.gammavariate(2.0, 30.0), 2))
        for n in range(CUSTOMERS)
        if chance.random() < share
    ]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setenv("PARTWISE_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    with closing(Engine(tmp_path, DEFINITIONS)) as made:
        yield made


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    def call(*words: str, code: int = 0) -> Any:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([*words, "--json"])
        said = capsys.readouterr()
        assert ended.value.code == code, said.err
        return json.loads(said.out)

    return call


@contextmanager
def spied(engine: Engine) -> Iterator[list[int]]:
    """How many readers are registered while the page estimates a part."""
    found: list[int] = []

    def counting(*given: Any) -> Any:
        with engine.ledger.database.reading() as r:
            found.append(r.on.execute(select(func.count()).select_from(reader)).scalar_one())
        return part_answer(*given)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(of_part, "part_answer", counting)
        yield found


def test_answers_before_a_refresh_hold_after_it(engine: Engine, ask: Callable[..., Any]) -> None:
    chance = random.Random(4)
    rows = {HOUR[h]: orders(chance, 0.9) for h in (8, 9, 10)}
    engine.load("orders", COLUMNS, rows)
    engine.run()
    total = "SELECT SUM(revenue) AS r, COUNT(*) AS c, AVG(revenue) AS a FROM revenue"
    assert {c["method"] for c in ask("query", "--fresh", total)["rows"][0]["cells"].values()} == {"exact"}

    # Late rows, a giant among them, and a new part: the views wait for their policies, the samples do not.
    rows[HOUR[9]] += [*orders(chance, 0.5), ("giant", "EU", 90_000.0)]
    rows[HOUR[11]] = orders(chance, 0.9)
    engine.load("orders", COLUMNS, {HOUR[h]: rows[HOUR[h]] for h in (9, 11)})
    done = engine.run()
    assert "revenue__sample" in done
    assert "revenue" not in done
    unknown = next(f"c{n}" for n in range(50, 99) if hash_of([f"c{n}"]) > threshold(0.2))
    questions = [
        total,
        "SELECT region, SUM(revenue) AS r, COUNT(*) AS c FROM revenue GROUP BY region ORDER BY region",
        "SELECT part_timestamp, SUM(n) AS r FROM revenue GROUP BY part_timestamp ORDER BY 1",
        "SELECT MEDIAN(revenue) AS r, QUANTILE_CONT(revenue, 0.9) AS p FROM revenue",
        f"SELECT SUM(revenue) AS r, SUM(n) AS n FROM revenue WHERE customer IN ('{unknown}', 'c7', 'giant')",
    ]
    before = [ask("query", "--fresh", sql, "--confidence", "99.9") for sql in questions]
    assert before[0]["parts"]["stale"] == ["2026-10-03T09:00"]
    assert before[0]["parts"]["missing"] == ["2026-10-03T11:00"]
    assert before[0]["checked"] is None
    assert {c["method"] for c in before[4]["rows"][0]["cells"].values()} == {"exact"}
    (top,) = ask("query", "--fresh", "SELECT MAX(revenue) AS top FROM revenue")["rows"]
    assert (top["cells"]["top"]["method"], top["cells"]["top"]["estimate"]) == ("exact", 90_000)
    refused = ask("query", "--fresh", "SELECT SUM(revenue * n) AS r FROM revenue")["refused"]
    assert [why["code"] for why in refused] == ["no-bound"]
    at = before[0]["sequence"]
    with spied(engine) as readers:
        page = estimated(engine.ledger, engine.program, engine.warehouse, engine.ledger.graph()["revenue"], HOUR[9])
    assert readers == [1], "upkeep is told that files are read"
    assert [line.column for line in page.lines] == ["rows", "revenue", "n"]
    assert all(line.estimate is not None or line.why for line in page.lines)
    assert page.problem is None

    # What waits for the sample itself: the answer of before, which says so.
    engine.load("orders", COLUMNS, {HOUR[10]: rows[HOUR[10]] + orders(chance, 0.1)})
    behind = ask("query", "--fresh", total, "--confidence", "99.9")
    assert_same_cells(behind, before[0])
    assert "revenue__sample[2026-10-03T10:00] waits (late rows in orders[2026-10-03T10:00])" in behind["note"]
    engine.load("orders", COLUMNS, {HOUR[10]: rows[HOUR[10]]})  # a correction: as it was
    engine.run()

    engine.refresh()
    answered = 0
    for sql, answer in zip(questions, before, strict=True):
        for row, right in zip(answer["rows"], ask("query", sql), strict=True):
            for name, cell in row["cells"].items():
                if cell["method"] is not None:
                    answered += 1
                    assert cell["low"] - 1e-6 <= right[name] <= cell["high"] + 1e-6, (sql, row, right)
    assert answered >= 13
    # Coverage was measured, and the same question about the same time has the same answer.
    covered = ask("status", "revenue")["estimates"]
    assert covered["of"] >= 2
    assert covered["covered"] >= 0.5
    found = ask("query", "--fresh", total)
    assert found["checked"] == covered
    again = ask("query", "--fresh", total, "--as-of", f"@{at}", "--confidence", "99.9")
    assert_same_cells(again, before[0])
    # The sample is what is published of its keys.
    for view in ("revenue",):
        whole = {_key(row): row for row in ask("query", f"SELECT * FROM {view}")}
        sample = {_key(row): row for row in ask("query", f"SELECT * FROM {view}__sample")}
        small = {k for k in whole if hash_of([k[1]]) <= threshold(0.2) or k[1] == "c7"}
        assert small <= sample.keys() <= whole.keys()
        for k, row in sample.items():
            assert row["revenue"] == pytest.approx(whole[k]["revenue"], rel=1e-9)
            assert row["n"] == whole[k]["n"]
            assert row["sample_exact"] or k in small


def assert_same_cells(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Doubles may be added in another order."""
    for row, other in zip(found["rows"], wanted["rows"], strict=True):
        for name, cell in row["cells"].items():
            for key in ("published", "estimate", "low", "high", "method", "differing"):
                was = other["cells"][name][key]
                assert cell[key] == (pytest.approx(was, rel=1e-9) if isinstance(was, float) else was)


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["part"], row["customer"], row.get("region")
