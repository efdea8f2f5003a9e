"""Two sampled views joined on their key: against the truth, from all fresh rows of both."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from partwise.fresh.adding.pairs import JoinedCompared
from partwise.fresh.adding.totals import Adding
from partwise.fresh.answer import FreshAnswer
from partwise.fresh.asked.joined import Joinable, JoinedQuestion, ask_joined
from partwise.fresh.asked.question import views_of
from partwise.fresh.asked.refused import Refused
from partwise.fresh.deciding import Deciding
from partwise.fresh.read import exact
from partwise.parts import Parts, parse_part
from tests.fresh.engine import Engine
from tests.fresh.tables import HOUR, World, world

COLUMNS = ("customer", "region", "x")
KEY = (("customer", "string"),)
A, B = Joinable("a", COLUMNS, KEY), Joinable("b", COLUMNS, KEY)


def worlds(seed: int, keys: int = 900, **more: Any) -> tuple[World, World]:
    one, other = world(seed, keys, **more), world(seed + 1000, keys, **more)
    return replace(one, name="a", salt=str(seed)), replace(other, name="b", salt=str(seed))


def both(one: World, other: World) -> duckdb.DuckDBPyConnection:
    on = one.connection()
    other.fill(on)
    return on


def answer(one: World, other: World, sql: str, confidence: float = 0.95, ratio: float | None = None) -> FreshAnswer:
    asked: JoinedQuestion = ask_joined(sql, (A, B))
    with both(one, other) as on:
        used = one.ratio if ratio is None else ratio
        compared = JoinedCompared(on, asked, (one.sampled, other.sampled), (one.states, other.states), HOUR, used)
        deciding = Deciding(asked.question, one.sampled, compared.states, HOUR, confidence, None, used)
        if not compared.states.dirty:
            return exact(on, deciding, compared.published)
        return deciding.answer(Adding(compared).all())


def truth(one: World, other: World, sql: str) -> list[tuple[Any, ...]]:
    with both(one, other) as on:
        return on.execute(sql.replace("FROM a", "FROM truth_a AS a").replace("JOIN b", "JOIN truth_b AS b")).fetchall()


RESULTS = {
    "total": "SUM(a.x)",
    "rows": "COUNT(*)",
    "mean": "AVG(b.x)",
    "product": "SUM(a.x * b.x)",
    "some": "SUM(b.x) FILTER (WHERE a.x > 40)",
    "middle": "MEDIAN(a.x)",
}
SAME_PART = "a JOIN b ON a.customer = b.customer AND a.part = b.part"
ANY_PART = "a JOIN b USING (customer)"


@pytest.mark.parametrize("tables", [SAME_PART, ANY_PART], ids=["same part", "any part"])
def test_intervals_cover_the_truth(tables: str) -> None:
    answered: Counter[str] = Counter()
    covered: Counter[str] = Counter()
    sql = f"SELECT {', '.join(f'{text} AS {name}' for name, text in RESULTS.items())} FROM {tables}"
    for seed in range(8):
        made = worlds(seed, 3000, keep=300)
        (right,), found = truth(*made, sql), answer(*made, sql)
        (row,) = found.rows
        for name, value in zip(RESULTS, right, strict=True):
            cell = row.cells[name]
            if cell.method is not None:
                assert cell.estimate == pytest.approx(float(value), rel=0.2)
                answered[name] += 1
                covered[name] += cell.low <= float(value) <= cell.high
    for name in ("total", "rows", "some"):
        assert answered[name] >= 7, answered
    assert covered.total() >= 0.85 * answered.total(), (covered, answered)


def test_by_part_clean_parts_are_exact() -> None:
    made = worlds(2, 2000, keep=100)
    sql = f"SELECT a.part, SUM(a.x) AS s, SUM(b.x) AS t FROM {SAME_PART} GROUP BY a.part ORDER BY a.part"
    found, right = answer(*made, sql, confidence=0.999), truth(*made, sql)
    methods = [row.cells["s"].method for row in found.rows]
    assert methods == ["exact", "exact", "correction", "correction from stand-in"]
    for row, (part, s, t) in zip(found.rows, right, strict=True):
        assert row.group == {"part": part}
        for name, value in (("s", s), ("t", t)):
            assert row.cells[name].low - 1e-6 <= value <= row.cells[name].high + 1e-6


def test_groups_and_conditions_of_either_view() -> None:
    made = worlds(3, 2000, keep=100)
    sql = (
        "SELECT a.region AS r, COUNT(*) AS n, SUM(b.x) AS s FROM a JOIN b ON b.customer = a.customer AND a.part = b.part "
        "WHERE b.x > 20 AND a.part >= 1 GROUP BY a.region ORDER BY r"
    )
    found, right = answer(*made, sql, confidence=0.999), truth(*made, sql)
    for row, (region, n, s) in zip(found.rows, right, strict=True):
        assert row.group == {"r": region}
        assert row.cells["n"].low <= n <= row.cells["n"].high
        assert row.cells["s"].low <= s <= row.cells["s"].high


def test_when_all_keys_are_sampled_the_answer_is_exact() -> None:
    made = tuple(replace(w, ratio=1.0) for w in worlds(4, keys=300))
    sql = f"SELECT SUM(a.x) AS s, SUM(a.x * b.x) AS p, COUNT(*) AS n FROM {ANY_PART}"
    (right,), (row,) = truth(*made, sql), answer(*made, sql).rows
    for name, value in zip("spn", right, strict=True):
        assert row.cells[name].method == "exact"
        assert row.cells[name].estimate == pytest.approx(float(value), rel=1e-9)
        assert row.cells[name].high - row.cells[name].low < 1e-6 * value


def test_when_nothing_is_dirty_the_answer_is_exact() -> None:
    made = tuple(replace(w, fresh=w.published) for w in worlds(5))
    sql = f"SELECT a.region, SUM(a.x) AS s FROM {SAME_PART} GROUP BY a.region ORDER BY 1"
    found, right = answer(*made, sql), truth(*made, sql)
    assert [(r.group["region"], r.cells["s"].estimate, r.cells["s"].method) for r in found.rows] == [
        (region, pytest.approx(s), "exact") for region, s in right
    ]


def test_a_giant_of_either_view_is_refused_or_covered_never_missed() -> None:
    """A giant that is exact in one view has rows in the other which nobody knows."""
    for seed in range(4):
        for keep in (0, 40):
            for side in (0, 1):
                made = worlds(seed, keys=600, keep=keep)
                made[side].fresh[2].append(("giant", "EU", 1e7))
                other = made[1 - side].fresh[2]
                other += [("giant", "EU", 5.0)]
                for sql in (f"SELECT SUM({'ab'[side]}.x) AS s FROM {t}" for t in (SAME_PART, ANY_PART)):
                    cell = answer(*made, sql).rows[0].cells["s"]
                    if cell.method is not None:
                        ((right,),) = truth(*made, sql)
                        assert cell.low - 1e6 <= right <= cell.high + 1e6


def test_the_sample_of_a_join_has_the_keys_of_both_samples() -> None:
    """The trap: with separate hashes m of m of the rows are joined, and scaling by 1 / m loses 95 %."""
    one, other = worlds(6, keys=2000, keep=50)
    sql = f"SELECT COUNT(*) AS n FROM {SAME_PART} WHERE a.part >= 2"
    ((right,),) = truth(one, other, sql)
    good = answer(one, other, sql, 0.999).rows[0].cells["n"]
    assert good.low <= right <= good.high
    bad = answer(one, replace(other, salt="another"), sql, 0.999).rows[0].cells["n"]
    assert not (bad.method is not None and bad.low <= right <= bad.high)


@pytest.mark.parametrize(
    "sql, code, said",
    [
        ("SELECT SUM(a.x) FROM a LEFT JOIN b ON a.customer = b.customer", "not-answerable", "LEFT JOIN"),
        ("SELECT SUM(a.x) FROM a NATURAL JOIN b", "not-answerable", "NATURAL JOIN"),
        ("SELECT SUM(a.x) FROM a JOIN b ON a.region = b.region", "not-answerable", "anything but the key"),
        ("SELECT SUM(a.x) FROM a JOIN b ON a.customer = b.region", "not-answerable", "anything but the key"),
        ("SELECT SUM(a.x) FROM a JOIN b ON a.customer = b.customer OR TRUE", "not-answerable", "anything but the key"),
        ("SELECT SUM(a.x) FROM a, b", "not-answerable", "anything but the key"),
        ("SELECT SUM(x) FROM a JOIN b USING (customer)", "sql", "x is a column of both views"),
        ("SELECT SUM(a.y) FROM a JOIN b USING (customer) WHERE z > 1", "sql", "neither view has a column z"),
        ("SELECT SUM(c.y) FROM a JOIN b USING (customer)", "sql", "no table in FROM is called c"),
        ("SELECT a.x FROM a JOIN b USING (customer)", "not-answerable", "a list of joined rows"),
        ("SELECT * FROM a JOIN b USING (customer)", "not-answerable", "a list of joined rows"),
        ("SELECT SUM(a.x) FROM a JOIN a USING (customer)", "not-answerable", "under one name"),
    ],
)
def test_what_cannot_be_joined(sql: str, code: str, said: str) -> None:
    with pytest.raises(Refused) as why:
        ask_joined(sql, (A, B))
    assert why.value.code == code
    assert said in why.value.message


def test_keys_of_different_types_have_different_hashes() -> None:
    with pytest.raises(Refused, match="different hashes"):
        ask_joined("SELECT COUNT(*) FROM a JOIN b USING (customer)", (A, replace(B, key=(("customer", "bigint"),))))


def test_names_of_views() -> None:
    assert views_of("SELECT SUM(1) FROM a JOIN b USING (customer)") == ["a", "b"]
    with pytest.raises(Refused, match="more than two views"):
        views_of("SELECT SUM(1) FROM a JOIN b USING (k) JOIN c USING (k)")


def test_parts_are_chosen_on_each_side() -> None:
    where = "a.part >= 2 AND b.part_timestamp < '1970-01-01 03:00:00+00'"
    asked = ask_joined(f"SELECT COUNT(*) AS n FROM {ANY_PART} WHERE {where}", (A, B))
    assert asked.sides[0].parts == ("part >= 2",)
    assert asked.sides[1].parts == ("part_timestamp < '1970-01-01 03:00:00+00'",)


DEFINITIONS = """
source: orders
part: 1 hour
time: at
columns: {at: timestamp, customer: string, amount: double}
files: landing/*.csv
---
view: revenue
part: 1 hour
refresh: {every: 1 day}
sample: {ratio: 20 %, outliers: {column: amount, keep: 40}}
update: SELECT customer, SUM(amount) AS revenue FROM orders[j] GROUP BY customer
---
view: baskets
part: 1 hour
repair: manual
sample: {ratio: 25 %}
update: SELECT customer, COUNT(*) AS n FROM orders[j] GROUP BY customer
"""


def test_two_views_of_a_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Callable[..., Any]) -> None:
    monkeypatch.setenv("PARTWISE_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    chance = random.Random(1)

    def orders(share: float) -> list[tuple[str, float]]:
        return [(f"c{n}", float(chance.randrange(10, 60))) for n in range(1500) if chance.random() < share]

    hour = {h: parse_part(f"2026-10-03T{h:02d}:00", 3600) for h in (8, 9)}
    kinds = {"customer": "string", "amount": "double"}
    sql = (
        "SELECT SUM(r.revenue) AS s, COUNT(*) AS n FROM revenue r JOIN baskets b "
        "ON b.customer = r.customer AND b.part = r.part WHERE b.n > 1"
    )
    with closing(Engine(tmp_path, DEFINITIONS)) as engine:
        rows = {hour[h]: [*orders(0.7), *orders(0.4)] for h in (8, 9)}
        engine.load("orders", kinds, rows)
        engine.run()
        clean = ask("query", "--fresh", sql)
        assert {c["method"] for c in clean["rows"][0]["cells"].values()} == {"exact"}
        rows[hour[9]] += orders(0.6)
        engine.load("orders", kinds, {hour[9]: rows[hour[9]]})
        engine.run()
        found = ask("query", "--fresh", sql, "--confidence", "99.9")
        assert found["view"] == "revenue JOIN baskets"
        assert found["ratio"] == 0.2
        assert found["parts"]["stale"] == ["2026-10-03T09:00"]
        engine.ledger.request("baskets", Parts.single(hour[9]), time.time())
        engine.refresh()
        (right,) = ask("query", sql)
        for name, cell in found["rows"][0]["cells"].items():
            assert cell["method"] == "correction"
            assert cell["published"] < cell["low"] <= right[name] <= cell["high"]
