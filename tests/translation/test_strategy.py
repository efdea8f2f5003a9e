"""The rule of thumb, and what `strategy:` may ask for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from partwise.translation import InputTable, QueryView, TranslationError, translate

TABLE = InputTable("s", "source", 60, {"g": "string", "t": "timestamp", "x": "int", "f": "double"}, "t")


def chosen(items: str, window: str, rows: int | None = None, groups: int | None = None, **settings: Any) -> str:
    view = QueryView("v", f"SELECT g, {items} FROM s [WINDOW {window}] GROUP BY g", 60, groups=groups, **settings)
    return translate(view, {"s": replace(TABLE, rows=rows)}).choice.strategy


@pytest.mark.parametrize(
    ("items", "window", "rows", "groups", "expected"),
    [
        ("SUM(x) AS a", "1 minute", None, None, "recompute"),  # windows do not overlap
        ("STDDEV(f) AS a", "1 hour", None, None, "recompute"),  # no exact sums
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
    [("SUM(f) AS a", "5 minutes", "subtract"), ("STDDEV(f) AS a", "5 minutes", "merge"), ("SUM(x) AS a", "1 minute", "subtract")],
)  # fmt: skip
def test_what_cannot_be_done_is_said(items: str, window: str, strategy: str) -> None:
    with pytest.raises(TranslationError, match="bad-strategy"):
        chosen(items, window, strategy=strategy)
