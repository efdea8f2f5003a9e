"""The cost rule of repairs: what it chooses, and that definitions overrule it."""

from __future__ import annotations

import pytest

from partwise.choose import repair
from partwise.choose.repair import FIXED, Figures, choose, costs


@pytest.mark.parametrize(
    "figures, by, why",
    [
        (Figures(carrying=200_000, whole=0, result=10_000, changed=1), "recompute", "computed quicker"),
        (Figures(carrying=5_000_000, whole=0, result=100_000, changed=1), "keys", "times less work"),
        (Figures(carrying=5_000_000, whole=0, result=100_000, changed=600_000), "recompute", "12 % of the rows"),
        (Figures(carrying=0, whole=5_000_000, result=100_000, changed=1), "recompute", "less work than any other"),
    ],
    ids=["small parts", "large parts", "many changed rows", "nothing can be filtered"],
)
def test_choice(figures: Figures, by: str, why: str) -> None:
    found = choose("auto", figures, automatic=True)
    assert found.by == by
    assert why in found.why


@pytest.mark.parametrize("wanted", ["recompute", "keys"])
def test_definitions_overrule_costs(wanted: str) -> None:
    for figures in (Figures(10, 0, 1, 1), Figures(50_000_000, 0, 100, 1)):
        assert choose(wanted, figures).by == wanted


def test_more_rows_never_cost_less() -> None:
    small, large = Figures(FIXED, 10, 10, 10), Figures(2 * FIXED, 20, 20, 20)
    assert all(costs(small)[by] < costs(large)[by] for by in costs(small))


def test_merging_is_taken_where_it_is_possible_and_costs_less() -> None:
    figures = Figures(carrying=0, whole=5_000_000, result=100_000, changed=1)
    assert choose("auto", figures, ("keys", "merge"), automatic=True).by == "merge"
    assert choose("merge", figures, ("keys",), automatic=True).by == "recompute"


def test_what_would_be_chosen_for_one_late_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair, "AUTOMATIC", True)
    from partwise.choose.repair import foreseen
    from partwise.compile.load import load_texts
    from partwise.compile.program import Runnable
    from partwise.compile.relations import Relations

    text = (
        b"source: m\npart: 1 minute\ntime: t\ncolumns: {t: timestamp, k: string, x: double}\nfiles: m.csv\n"
        b"---\nview: v\npart: 1 minute\nupdate: SELECT k, SUM(x) AS s FROM m[j-9..j] GROUP BY k\n"
        b"---\nview: top\npart: 1 minute\nupdate: SELECT k, x FROM m[j] ORDER BY x, k LIMIT 3\n"
    )
    program = load_texts({"all.yaml": text})
    relations = Relations(program)

    def said(view: str, rows: int | None) -> str | None:
        table = program.usable[view]
        assert isinstance(table, Runnable)
        found = foreseen(relations.of(table), lambda name: rows if name == "m" else 100, view, 5, "auto")
        return None if found is None else found.by

    assert said("v", None) is None
    assert said("v", 1_000) == "recompute"
    assert said("v", 1_000_000) == "keys"  # ten parts
    assert said("top", 10_000_000) is None
