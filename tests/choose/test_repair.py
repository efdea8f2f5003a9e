"""The cost rule of repairs: what it chooses, and that definitions overrule it."""

from __future__ import annotations

import pytest

from partwise.choose.outcomes import Score, learned, score
from partwise.choose.repair import Figures, choose, costs
from partwise.ledger.records.repairs import By, MeasuredRepair

LARGE = Figures(carrying=5_000_000, whole=0, result=100_000, changed=1)


@pytest.mark.parametrize(
    "figures, by, why",
    [
        (Figures(carrying=200_000, whole=0, result=10_000, changed=1), "recompute", "computed quicker"),
        (Figures(carrying=5_000_000, whole=0, result=100_000, changed=1), "keys", "times as quick"),
        # A window of a hundred parts, and as many of them stale: each reads all of it again.
        (Figures(carrying=400_000, whole=0, result=20_000, changed=1, spread=20_000_000), "keys", "times as quick"),
        (Figures(carrying=5_000_000, whole=0, result=100_000, changed=600_000), "recompute", "12 % of the rows"),
        (Figures(carrying=0, whole=5_000_000, result=100_000, changed=1), "recompute", "no other repair"),
    ],
    ids=["small parts", "large parts", "many parts of a long window", "many changed rows", "nothing can be filtered"],
)
def test_choice(figures: Figures, by: str, why: str) -> None:
    found = choose("auto", figures)
    assert found.by == by
    assert why in found.why


@pytest.mark.parametrize("wanted", ["recompute", "keys"])
def test_definitions_overrule_costs(wanted: str) -> None:
    for figures in (Figures(10, 0, 1, 1), Figures(50_000_000, 0, 100, 1)):
        assert choose(wanted, figures).by == wanted


def test_more_rows_never_cost_less() -> None:
    small, large = Figures(1_000_000, 10, 10, 10, 10), Figures(2_000_000, 20, 20, 20, 20)
    assert all(costs(small)[by] < costs(large)[by] for by in costs(small))


def test_merging_is_taken_where_it_is_possible_and_costs_less() -> None:
    figures = Figures(carrying=0, whole=5_000_000, result=100_000, changed=1)
    assert choose("auto", figures, ("keys", "merge")).by == "merge"
    assert choose("merge", figures, ("keys",)).by == "recompute"


def done(by: By, seconds: float, foreseen: float = 1.0) -> MeasuredRepair:
    return MeasuredRepair(by, {"recompute": 10.0, "keys": 5.0}, foreseen, seconds)


def test_what_repairs_took_corrects_what_the_next_ones_are_foreseen_to_take() -> None:
    general = choose("auto", LARGE)
    assert general.foreseen == general.costs
    assert general.by == "keys"
    slow = choose("auto", LARGE, past=[done("keys", 20.0), done("recompute", 10.0)])
    assert slow.by == "recompute", "touched keys take four times as long as the constants say"
    assert slow.foreseen["keys"] == pytest.approx(4 * slow.costs["keys"])
    # A slow machine is slow with everything: what was never tried is as far off as what was.
    assert learned([done("recompute", 30.0)]) == {"recompute": 3.0, "keys": 3.0, "merge": 3.0}
    # One that took an hour says nothing, and old ones are forgotten.
    assert learned([done("keys", 5.0), done("keys", 5.0), done("keys", 3600.0)])["keys"] == 1.0
    assert learned([done("keys", 25.0)] * 30 + [done("keys", 5.0)] * 20)["keys"] == 1.0


def test_choices_are_judged_by_what_was_measured() -> None:
    assert score([done("keys", 1.5), done("keys", 4.0)]) == Score(2, 1, 0, 0)
    # Keys take a second, and computing everything ten; the last repair by keys took longer than that.
    past = [done("keys", 1.0), done("keys", 1.0), done("recompute", 10.0), done("keys", 30.0)]
    assert score(past) == Score(4, 2, 4, 2)


def test_what_would_be_chosen_for_one_late_row() -> None:
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
