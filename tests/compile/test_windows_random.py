"""Generated SQL for random window queries against the rows of every window."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from partwise.compile import InputTable, QueryView, translate
from tests.compile.duck import Duck, catch_up, repair
from tests.compile.window_oracle import (
    ALL,
    EITHER,
    FILTERED,
    NODES,
    Row,
    WindowQuery,
    random_history,
    random_query,
    random_row,
)
from tests.compile.words import Words, in_row, in_table, in_text, random_words
from tests.thinned import thinned

COLUMNS = {
    "g": "string", "h": "int", "ts": "bigint", "tie": "bigint", "x": "int", "d": "decimal(8,2)", "b": "bigint", "f": "double",
}  # fmt: skip
TABLE = InputTable("s", "source", 60, COLUMNS, "ts", "tie")
DIMENSION = InputTable("nodes", "dimension", None, {"node": "string", "region": "string"})
INPUTS = {"s": TABLE, "nodes": DIMENSION}


def bag(rows: list[Row]) -> Counter[str]:
    return Counter(repr(sorted((k, plain(v)) for k, v in row.items())) for row in rows)


def plain(value: Any) -> Any:
    """Numbers of all types alike; doubles to ten digits. Whole numbers stay exact."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value
    if isinstance(value, Decimal) and value == int(value):
        return int(value)
    number = float(f"{float(value):.10g}") if abs(value) > 1e-9 else 0
    return int(number) if number == int(number) else number


def check(
    query: WindowQuery,
    history: dict[int, list[Row]],
    rng: random.Random,
    words: Words | None = None,
    shared: bool = False,
) -> None:
    """`shared`: with helpers as they are made for several views."""
    words = words or {}
    inputs = {**INPUTS, "s": in_table(TABLE, words)}
    text = in_text(query.sql(), words)
    view = QueryView("v", text, 60 * query.slide, strategy=query.strategy, partial=query.partial)  # type: ignore[arg-type]
    translation = translate(view, inputs)
    if shared and translation.shared:
        views = next(way.views for way in translation.shared if way.strategy == translation.choice.strategy)
        translation = replace(translation, views=views)
    duck = Duck(translation, inputs.values())
    try:
        duck.insert("nodes", [{"node": node, "region": region} for node, region in NODES.items()])
        for rows in history.values():
            duck.insert("s", [in_row(row, words) for row in rows])
        catch_up(duck, {"s": set(history)})
        compare(duck, query, history, words)
        for _ in range(2):
            part = rng.choice(sorted(history))
            late = [random_row(rng, part, 50 + rng.randint(0, 49))]
            history = {**history, part: history[part] + late}
            duck.insert("s", [in_row(row, words) for row in late])
            repair(duck, {("s", part)})
            compare(duck, query, history, words)
    finally:
        duck.close()


def compare(duck: Duck, query: WindowQuery, history: dict[int, list[Row]], words: Words | None = None) -> None:
    low, high = min(history), max(history)
    whole = {p for p in range(high + 1) if query.span(p)[0] >= low and query.span(p)[-1] <= high}
    assert whole <= duck.built["v"], "every whole window is shown"
    if not query.partial:
        assert duck.built["v"] == whole, "nothing is shown before the first whole window"
    for part in duck.built["v"]:
        expected = bag([in_row(row, words or {}) for row in query.report(history, part)])
        text = f"part {part} of {in_text(query.sql(), words or {})} [{query.strategy}, partial {query.partial}]"
        assert bag(duck.rows("v", part)) == expected, text


@pytest.mark.parametrize("seed", thinned(range(10), 6))
def test_generated_sql_equals_the_rows_of_the_window(seed: int) -> None:
    """10 x 30 queries, each over a history of its own; some columns are called like words of SQL."""
    rng = random.Random(seed)
    for _ in range(30):
        query = random_query(rng, rng.sample(ALL, rng.randint(1, 3)))
        shared = random.Random(query.sql()).random() < 0.5
        check(query, random_history(rng, 12, rng.randint(4, 8)), rng, random_words(rng, "ghxdbf"), shared)


@pytest.mark.parametrize("aggregate", [*ALL, *FILTERED, *EITHER], ids=lambda a: a.text)
def test_every_aggregate_by_every_strategy(aggregate: Any) -> None:
    rng = random.Random(aggregate.text)
    strategies = ["recompute", "merge", *(["subtract"] if aggregate.exact else [])]
    history = random_history(rng, 12, 6)
    for strategy, shared in [*((each, False) for each in strategies), *((each, True) for each in strategies[1:])]:
        query = WindowQuery((aggregate,), "g", ("", lambda row: True), ("", lambda rows: True), 3, 1, strategy, False)
        check(query, history, rng, shared=shared)
