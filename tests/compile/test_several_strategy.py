"""How DISTINCT over a window is kept: recompute, unless counts speak for the last occurrence or the author does."""

from __future__ import annotations

import pytest

from partwise.choose.window import by_counts, costs_of, is_worth_it
from partwise.compile import QueryView, Translation, translate
from tests.compile.test_several_golden import TABLES

QUERY = "SELECT DISTINCT src, dest FROM measurements [WINDOW {} minutes]"


def made(minutes: int = 200, strategy: str | None = None, query: str = QUERY) -> Translation:
    return translate(QueryView("v", query.format(minutes), 60, strategy=strategy), TABLES)  # type: ignore[arg-type]


def test_default_and_requested() -> None:
    assert made().choice.strategy == "recompute"
    assert [view.name for view in made().views] == ["v"]
    assert made(strategy="last").choice.strategy == "last"
    assert [view.name for view in made(strategy="last").views] == ["v__last", "v"]
    assert [variant.strategy for variant in made().variants] == ["recompute", "last"]
    assert made(1).variants == (), "a window of one part has nothing to keep"


@pytest.mark.parametrize(
    ("rows", "groups", "expected"),
    [
        (1_000, 2_000, "last"),  # opening 200 files costs more than reading them
        (1_000, 500_000, "recompute"),
        (100_000, 2_000, "last"),
        (100_000, 5_000_000, "recompute"),
        (100_000, None, "recompute"),
    ],
)
def test_by_counts(rows: int, groups: int | None, expected: str) -> None:
    shape = made().shape
    assert shape is not None
    assert by_counts(shape, rows, groups).strategy == expected
    assert set(costs_of(shape, rows, groups)) == {"recompute", "last"}


def test_a_short_window_is_read() -> None:
    shape = made(10).shape
    assert shape is not None
    assert by_counts(shape, 20_000, 2_000).strategy == "recompute"


def test_it_is_changed_only_where_that_pays() -> None:
    shape = made().shape
    assert shape is not None
    assert is_worth_it(shape, 1_000_000, 2_000, "recompute")
    assert not is_worth_it(shape, 100_000, 2_000_000, "recompute")
    assert "groups in a window" in by_counts(shape, 100_000, 2_000).why


NEAR = (
    "SELECT m.src, a.level FROM measurements [WINDOW {} minutes] m JOIN alarms [WINDOW 50 minutes] a ON a.src = m.src"
)


def test_large_rolling_tables_are_kept_as_a_grid() -> None:
    found = translate(QueryView("v", NEAR.format(200), 60, output="rolling"), TABLES)
    assert found.choice.strategy == "recompute"
    assert [variant.strategy for variant in found.variants] == ["recompute", "grid"]
    shape = found.shape
    assert shape is not None
    assert (shape.counted, shape.panes) == ("grid", 50), "no row stays longer than the shortest window"
    for new, expected in ((100, "recompute"), (19_000, "recompute"), (21_000, "grid")):
        choice = by_counts(shape, 1_000, new)
        assert choice.strategy == expected
        assert f"rolling table of about {50 * new:,} rows" in choice.why
    assert is_worth_it(shape, 1_000, 80_000, "recompute")
    assert not is_worth_it(shape, 1_000, 30_000, "recompute")
    assert made(200, query=NEAR).shape is None, "of a snapshot all rows are written in each part, however it is kept"


COUNTS = (
    "SELECT m.src, COUNT(*) AS n, MAX(m.loss) AS worst FROM measurements [WINDOW 50 minutes] m "
    "JOIN pings [WINDOW 50 minutes] p ON p.src = m.src{} GROUP BY m.src"
)


@pytest.mark.parametrize(
    ("condition", "rows", "new", "expected"),
    [  # of 50 parts, as measured: docs/benchmarks/patterns_and_windows.md
        ("", 4_000, 8_000, "recompute"),
        ("", 4_000, 80_000, "factor"),
        ("", 40_000, 80_000, "factor"),
        (" AND p.ms < m.hops", 4_000, 80_000, "recompute"),
        (" AND p.ms < m.hops", 40_000, 800_000, "cells"),
    ],
)
def test_groups_of_a_join_are_kept_by_the_counts_of_its_rows(
    condition: str, rows: int, new: int, expected: str
) -> None:
    found = made(query=COUNTS.format(condition))
    assert found.choice.strategy == "recompute"
    shape = found.shape
    assert shape is not None
    assert (shape.counted, shape.weight) == ("cells", "n")
    assert ("factor" in shape.possible) == (not condition)
    choice = by_counts(shape, rows, new)
    assert choice.strategy == expected
    assert f"{round(new * 2500 / 99):,} joined ones" in choice.why


def test_cells_say_of_how_many_joined_rows_they_are() -> None:
    """Whatever the columns of the query are called."""
    query = COUNTS.format("").replace("m.src, COUNT(*) AS n,", "m.src AS n,").replace("MAX(m.loss)", "MIN(m.loss)")
    found = made(query=query)
    assert found.shape is not None
    [cells] = [view for way in found.variants if way.strategy == "cells" for view in way.views if view.helper]
    assert found.shape.weight is not None
    assert f"COUNT(*) AS {found.shape.weight}" in cells.update


def test_strategies_of_joins_are_taken_as_requested() -> None:
    assert [view.name for view in made(200, "grid", NEAR).views] == ["v__grid", "v"]
    grouped = NEAR.replace("SELECT m.src, a.level", "SELECT m.src, COUNT(*) AS n") + " GROUP BY m.src"
    assert [view.name for view in made(200, "cells", grouped).views] == ["v__cells", "v"]
    assert made(200, query=grouped).choice.strategy == "recompute"
