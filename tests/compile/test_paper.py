"""The worked examples of the paper, to the number; and its views as a person would write them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from partwise.compile import GeneratedView, InputTable, QueryView, Translation, translate
from tests.compile.duck import Duck, catch_up

MEASUREMENTS = InputTable(
    "m", "source", 60, {"t": "timestamp", "src": "string", "dest": "string", "loss": "int", "g": "string"}, "t"
)
VIEW1 = """
    SELECT src, dest, COUNT(*) AS ct, SUM(loss) AS sum_loss
    FROM m PATTERN [a, b, c, d+]
    WHERE a.loss > 10 AND b.loss > 10 AND c.loss > 10 AND d.loss > 10
    GROUP BY src, dest
"""
LOSSES = [6, 12, 15, 24, 20, 16, 7]
MINUTES = [[10, 4, 2, 5, 6], [5, 3, 3, 4], [4, 4, 2, 3], [1, 1, 3, 9, 1, 4], [7, 1, 2, 1, 7]]


def run(translation: Translation, parts: list[list[dict[str, Any]]]) -> Duck:
    duck = Duck(translation, [MEASUREMENTS])
    for part, rows in enumerate(parts):
        duck.insert("m", [{"part": part, **row} for row in rows])
    catch_up(duck, {"m": set(range(len(parts)))})
    return duck


def test_view1_reports_at_10_04_and_10_05() -> None:
    translation = translate(QueryView("v", VIEW1, 60), {"m": MEASUREMENTS})
    duck = run(translation, [[{"src": "s", "dest": "d", "loss": loss}] for loss in LOSSES])
    found = [[(r["ct"], r["sum_loss"]) for r in duck.rows("v", part)] for part in range(7)]
    assert found == [[], [], [], [], [(4, 71)], [(5, 87)], []]


def test_view1_is_as_narrow_as_the_hand_written_helper() -> None:
    """Group keys, one counter, one sum."""
    translation = translate(QueryView("v", VIEW1, 60), {"m": MEASUREMENTS})
    duck = run(translation, [[{"src": "s", "dest": "d", "loss": 12}]])
    assert list(duck.rows("v__helper", 0)[0]) == ["src", "dest", "ct", "sum_loss"]


def test_groups_whose_runs_ended_leave_the_helper() -> None:
    translation = translate(QueryView("v", VIEW1, 60), {"m": MEASUREMENTS})
    parts = [[{"src": str(k), "dest": "d", "loss": 12 if k == part else 3} for k in range(5)] for part in range(5)]
    duck = run(translation, parts)
    assert [[r["src"] for r in duck.rows("v__helper", part)] for part in range(5)] == [
        ["0"],
        ["1"],
        ["2"],
        ["3"],
        ["4"],
    ]


@pytest.mark.parametrize("fast", [False, True])
def test_the_same_pattern_by_hand(fast: bool) -> None:
    """Helper and view as in section 2 of the paper, with its outer join given an ON."""
    by_hand = Translation(
        (
            GeneratedView(
                "helper", 60,
                initialize="SELECT src, dest, CAST(1 AS BIGINT) AS ct, loss AS sum_loss FROM m[i] WHERE loss > 10",
                update="""SELECT n.src, n.dest, COALESCE(p.ct, 0) + 1 AS ct, COALESCE(p.sum_loss, 0) + n.loss AS sum_loss
                          FROM m[j] n LEFT JOIN helper[j-1] p ON p.src <=> n.src AND p.dest <=> n.dest WHERE n.loss > 10""",
            ),
            GeneratedView("hand", 60, update="SELECT src, dest, ct, sum_loss FROM helper[j] WHERE ct >= 4", helper=False),
        ),
        translate(QueryView("v", VIEW1, 60), {"m": MEASUREMENTS}).choice,
    )  # fmt: skip
    parts = [
        [{"src": s, "dest": None, "loss": 20 + p if (p + 2 * k) % 7 else 5} for k, s in enumerate("abcde")]
        for p in range(12)
    ]
    hand = run(by_hand, parts)
    made = translate(QueryView("v", VIEW1, 60), {"m": MEASUREMENTS})
    if fast:
        helper = made.views[0]
        made = Translation(
            (GeneratedView(helper.name, 60, str(helper.fast_update), helper.initialize), made.views[1]), made.choice
        )
    ours = run(made, parts)
    found = [sorted(map(repr, ours.rows("v", p))) for p in range(12)]
    assert found == [sorted(map(repr, hand.rows("hand", p))) for p in range(12)]
    assert any(found)


@pytest.mark.parametrize("strategy", ["merge", "recompute", None])
def test_figure_5_max(strategy: Any) -> None:
    text = "SELECT g, MAX(loss) AS top FROM m [WINDOW 4 minutes] GROUP BY g"
    translation = translate(QueryView("v", text, 60, strategy=strategy), {"m": MEASUREMENTS})
    duck = run(translation, [[{"g": "a", "loss": x} for x in minute] for minute in MINUTES])
    assert sorted(duck.built["v"]) == [3, 4], "nothing before the first whole window"
    assert [duck.rows("v", p)[0]["top"] for p in (3, 4)] == [10, 9]


@pytest.mark.parametrize("strategy", ["merge", "subtract", "recompute"])
def test_figure_5_sum(strategy: Any) -> None:
    text = "SELECT g, SUM(loss) AS total FROM m [WINDOW 4 minutes] GROUP BY g"
    translation = translate(QueryView("v", text, 60, strategy=strategy), {"m": MEASUREMENTS})
    duck = run(translation, [[{"g": "a", "loss": x} for x in minute] for minute in MINUTES])
    assert [duck.rows("v", p)[0]["total"] for p in (3, 4)] == [Decimal(74), Decimal(65)]


@pytest.mark.parametrize("strategy", ["merge", "subtract", "recompute"])
def test_a_sum_of_zero_is_still_in_the_window(strategy: Any) -> None:
    """The paper's HAVING sum_A > 0 would lose it; a group that left must go all the same."""
    text = "SELECT g, SUM(loss) AS total, COUNT(*) AS n FROM m [WINDOW 2 minutes] GROUP BY g"
    translation = translate(QueryView("v", text, 60, strategy=strategy), {"m": MEASUREMENTS})
    rows = [[{"g": "a", "loss": -3}, {"g": "b", "loss": None}], [{"g": "a", "loss": 3}], [], []]
    duck = run(translation, rows)
    found = [{r["g"]: (r["total"], r["n"]) for r in duck.rows("v", p)} for p in (1, 2, 3)]
    assert found == [{"a": (0, 2), "b": (None, 1)}, {"a": (3, 1)}, {}]
