"""The rule of thumb, and what `strategy:` may ask for."""

from __future__ import annotations

from typing import Any

import pytest

from partwise.choose.window import by_counts
from partwise.compile import InputTable, QueryView, translate
from partwise.sql.parse import TranslationError

TABLE = InputTable(
    "s",
    "source",
    60,
    {"g": "string", "t": "timestamp", "x": "int", "f": "double", "w": "decimal(30,5)", "u": None},
    "t",
)


def chosen(items: str, window: str, rows: int | None = None, groups: int | None = None, **settings: Any) -> str:
    view = QueryView("v", f"SELECT g, {items} FROM s [WINDOW {window}] GROUP BY g", 60, **settings)
    made = translate(view, {"s": TABLE})
    counted = rows is not None and made.shape is not None
    return by_counts(made.shape, rows, groups).strategy if counted else made.choice.strategy


@pytest.mark.parametrize(
    ("items", "window", "rows", "groups", "expected"),
    [
        ("SUM(x) AS a", "1 minute", None, None, "recompute"),  # windows do not overlap
        ("AVG(w) AS a", "1 hour", None, None, "recompute"),  # a quotient of sums has too few digits
        ("SUM(u) AS a", "1 hour", None, None, "recompute"),  # the type of the sum is not known
        ("STDDEV(f) AS a, COVAR_POP(u, x) AS b", "1 hour", None, None, "merge"),
        ("SUM(x) AS a", "10 minutes", 1_000, None, "recompute"),  # few rows
        ("SUM(x) AS a", "10 minutes", 1_000_000, 1_000, "merge"),
        ("MAX(x) AS a", "2 hours", 1_000_000, 1_000, "merge"),
        ("SUM(x) AS a", "2 hours", 1_000_000, 1_000, "merge"),  # many panes, but small ones
        ("SUM(x) AS a", "2 hours", 200_000, 180_000, "subtract"),  # many panes, nearly as large as their rows
        ("SUM(x) AS a, MAX(x) AS b", "2 hours", 200_000, 180_000, "recompute"),  # MAX cannot be subtracted
        ("SUM(x) AS a", "10 minutes", 1_000_000, 900_000, "recompute"),  # a few of them
        ("SUM(x) AS a", "20 minutes", 200_000, 1_000, "recompute"),
        ("SUM(x) AS a", "100 minutes", 200_000, 1_000, "merge"),
        ("SUM(x) AS a", "1 hour", 1_000_000, None, "merge"),  # groups not counted yet
        ("SUM(x) AS a", "2 hours", None, None, "subtract"),  # nothing counted
        ("MAX(x) AS a", "10 minutes", 1_000_000, 900_000, "recompute"),
        ("SUM(f) AS a", "10 minutes", None, None, "merge"),  # nothing known
    ],
)
def test_rule_of_thumb(items: str, window: str, rows: int | None, groups: int | None, expected: str) -> None:
    assert chosen(items, window, rows, groups) == expected


@pytest.mark.parametrize("strategy", ["merge", "subtract", "recompute"])
def test_what_is_asked_for_is_done(strategy: str) -> None:
    assert chosen("SUM(x) AS a, MAX(f) AS b", "5 minutes", strategy=strategy) == strategy


@pytest.mark.parametrize(
    ("items", "window", "strategy"),
    [("SUM(f) AS a", "5 minutes", "subtract"), ("AVG(w) AS a", "5 minutes", "merge"), ("SUM(x) AS a", "1 minute", "subtract")],
)  # fmt: skip
def test_what_cannot_be_done_is_said(items: str, window: str, strategy: str) -> None:
    with pytest.raises(TranslationError, match="bad-strategy"):
        chosen(items, window, strategy=strategy)


@pytest.mark.parametrize(
    ("items", "window", "expected"),
    [
        ("SUM(x) AS a", "5 minutes", {"recompute": 0, "merge": 1, "subtract": 2}),
        ("SUM(x) AS a, MAX(f) AS b", "5 minutes", {"recompute": 0, "merge": 1, "subtract": 3}),
        ("MAX(f) AS a", "5 minutes", {"recompute": 0, "merge": 1}),
        ("SUM(x) AS a", "1 minute", {}),  # windows do not overlap
        ("AVG(w) AS a", "5 minutes", {}),  # only from the rows
        ("STDDEV(f) AS a", "5 minutes", {"recompute": 0, "merge": 1}),
        ("STDDEV(f) AS a, SUM(x) AS b", "5 minutes", {"recompute": 0, "merge": 1, "subtract": 3}),
    ],
)
def test_every_way_that_is_possible_is_written(items: str, window: str, expected: dict[str, int]) -> None:
    """How many helpers each has; where there is nothing to choose, nothing is written twice."""
    made = translate(QueryView("v", f"SELECT g, {items} FROM s [WINDOW {window}] GROUP BY g", 60), {"s": TABLE})
    assert {variant.strategy: len(variant.views) - 1 for variant in made.variants} == expected
    assert (made.shape is not None) == bool(expected)


def test_a_variant_is_what_asking_for_it_gives() -> None:
    query = "SELECT g, SUM(x) AS a, COUNT(DISTINCT x) AS d, MAX(f) AS m FROM s [WINDOW 10 minutes] GROUP BY g"
    for variant in translate(QueryView("v", query, 60, partial=True), {"s": TABLE}).variants:
        asked = translate(QueryView("v", query, 60, partial=True, strategy=variant.strategy), {"s": TABLE})
        assert (variant.views, variant.notes) == (asked.views, asked.notes)
        assert asked.choice.why == "requested by strategy:"


def test_a_pane_of_many_parts_counts_all_of_them() -> None:
    view = QueryView("v", "SELECT g, SUM(x) AS a FROM s [WINDOW 1 day SLIDE 1 hour] GROUP BY g", 3600)
    shape = translate(view, {"s": TABLE}).shape
    assert shape is not None
    assert (shape.table, shape.ratio, shape.panes, shape.per_slide, shape.rolls) == ("s", 60, 24, 1, True)
    assert "1,440,000 rows in a window" in by_counts(shape, 1_000, 10).why
