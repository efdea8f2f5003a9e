"""What people read: values with intervals, where they lie, refusals with what would help."""

from __future__ import annotations

from dataclasses import replace

import pytest

from partwise.cli.views.fresh_shown import fresh_json, show_fresh
from partwise.fresh.answer import FreshAnswer, FreshBound, FreshCell, FreshRow, RefusedCell, SelectedRows, Unseen
from partwise.fresh.states import PartStates
from partwise.parts import Parts, parse_part

HOUR = 3600
NINE, TEN, ELEVEN = (parse_part(f"2026-10-03T{h}:00", HOUR) for h in ("09", "10", "11"))
STATES = PartStates(
    Parts.of((NINE - 3, NINE - 1)), Parts.single(NINE), Parts.single(TEN), Parts.single(ELEVEN), {TEN: (NINE,)}
)
NO = RefusedCell(
    "revenue", {"region": "AQ"}, "few-keys", "revenue: 7 of the sampled keys changed it, and 30 are needed",
    "refresh revenue[2026-10-03T09:00], or sample more keys",
)  # fmt: skip
ROWS = (
    FreshRow({"region": "EU"}, {"revenue": FreshCell(100.0, 180.0, 160.0, 200.0, "correction", 45, 3.0)}),
    FreshRow({"region": "US"}, {"revenue": FreshCell(150.0, 140.0, 135.0, 145.0, "sample", 50, 2.0)}),
    FreshRow({"region": "AQ"}, {"revenue": FreshCell(90.0, differing=7, refused=NO)}),
    FreshRow({"region": None}, {"revenue": FreshCell(None, 120.0, 120.0, 120.0, "exact", 0, 0.0)}),
)
ANSWER = FreshAnswer("revenue", ROWS, STATES, 0.95, 0.05, (1010, 112, 204), Unseen(59, 118), length=HOUR)


def test_each_group_has_its_interval_and_a_plot(capsys: pytest.CaptureFixture[str]) -> None:
    show_fresh(ANSWER, "10:42:07")
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "region  result   fresh            published",
        "─" * 69,
        "EU      revenue  180 ± 20 (95 %)  100          ○            ├───●───┤",
        "US      revenue  140 ± 5 (95 %)   150                 ├●─┤○",
        "AQ      revenue  refused          90         ○",
        "NULL    revenue  120              NULL             ●",
        "region AQ: revenue: 7 of the sampled keys changed it, and 30 are needed.",
        "  Refresh revenue[2026-10-03T09:00], or sample more keys.",
        "Fresh as of 10:42:07: 1 stale + 1 missing of 5 parts, 5 % of keys. Not in it, because an input is missing: 1 part from 2026-10-03T11:00 on.",
    ]


def test_an_exact_answer_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    show_fresh(replace(ANSWER, rows=ROWS[-1:], states=replace(STATES, beyond=Parts())), "10:42:07")
    assert "Exact, fresh as of 10:42:07: 1 stale + 1 missing of 5 parts.\n" in capsys.readouterr().out
    clean = PartStates(Parts.single(NINE), Parts(), Parts(), Parts())
    show_fresh(replace(ANSWER, rows=ROWS[-1:], states=clean), "10:42:07")
    assert "Exact: nothing of 1 part is stale. Fresh as of 10:42:07.\n" in capsys.readouterr().out


def test_one_value_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def shown(cell: FreshCell, states: PartStates = STATES) -> list[str]:
        show_fresh(replace(ANSWER, rows=(FreshRow({}, {"revenue": cell}),), states=states), "10:42")
        return capsys.readouterr().out.splitlines()

    whole = replace(STATES, stale=Parts.of((NINE, NINE + 1)), beyond=Parts())
    assert shown(FreshCell(197_040.0, 221_310.0, 220_180.0, 222_440.0, "correction", 204, 88.0), whole) == [
        "revenue  221,310 ± 1,130 (95 %)   published: 197,040   fresh as of 10:42, 2 stale + 1 missing parts, 5 % of keys"
    ]
    assert shown(FreshCell(90.0, 95.0, 95.0, 95.0, "exact", 0, 0.0), replace(whole, missing=Parts())) == [
        "revenue  95   published: 90   exact, fresh as of 10:42, 2 stale parts"
    ]
    assert shown(FreshCell(90.0, differing=7, refused=replace(NO, group={}))) == [
        "revenue  refused   published: 90   fresh as of 10:42, 1 stale + 1 missing parts, 5 % of keys",
        "revenue: 7 of the sampled keys changed it, and 30 are needed.",
        "  Refresh revenue[2026-10-03T09:00], or sample more keys.",
        "Not in it, because an input is missing: 1 part from 2026-10-03T11:00 on.",
    ]


def test_bounds_and_rows(capsys: pytest.CaptureFixture[str]) -> None:
    top = FreshCell(910.0, method="bound", bound=FreshBound(955.0, True, 59))
    least = FreshCell(1.0, method="bound", bound=FreshBound(2.0, False, None))
    shown = replace(
        ANSWER,
        rows=(FreshRow({}, {"top": top, "least": least}),),
        selected=SelectedRows(("customer", "x"), ((("a", 2.5), True), (("b", None), False))),
    )
    show_fresh(shown, "10:42")
    out = capsys.readouterr().out
    assert "≥ 955, 59 rows beyond it at most" in out
    assert "≤ 2" in out
    assert ["a", "2.5", "yes"] in [line.split() for line in out.splitlines()]
    assert ["b", "NULL", "no"] in [line.split() for line in out.splitlines()]


def test_json_is_as_it_is_documented() -> None:
    found = fresh_json(ANSWER, 8123, 1791024127.0)
    assert list(found) == [
        "view", "as_of", "sequence", "confidence", "ratio", "parts", "keys", "rows", "unseen_groups", "refused", "checked",
    ]  # fmt: skip
    assert found["parts"] == {
        "clean": 3,
        "stale": ["2026-10-03T09:00"],
        "missing": ["2026-10-03T10:00"],
        "stand_in": {"2026-10-03T10:00": "2026-10-03T09:00"},
        "beyond": ["2026-10-03T11:00"],
    }
    assert found["keys"] == {"sampled": 1010, "exact": 112, "differing": 204}
    assert found["rows"][0] == {
        "group": {"region": "EU"},
        "cells": {
            "revenue": {
                "published": 100.0, "estimate": 180.0, "low": 160.0, "high": 200.0, "method": "correction",
                "differing": 45, "largest_unknown": 3.0,
            }
        },
    }  # fmt: skip
    refused = found["rows"][2]["cells"]["revenue"]
    assert (refused["published"], refused["estimate"], refused["low"], refused["method"]) == (90.0, None, None, None)
    assert found["refused"] == [
        {"column": "revenue", "group": {"region": "AQ"}, "code": NO.code, "message": NO.message, "hint": NO.hint}
    ]
    assert found["unseen_groups"] == {"rows_each_at_most": 118, "keys_each_at_most": 59}
