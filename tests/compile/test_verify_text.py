"""The reader that `verify` has for windows agrees with the translator's on what a query reads."""

from __future__ import annotations

import pytest

from partwise.compile.several.read import is_several as translated_so
from partwise.compile.several.read import windows_in
from spark_jobs.verify.windowed_text import cut, grouping, is_several
from tests.compile.test_several_golden import TABLES, cases, settings


@pytest.mark.parametrize("case", cases("forms"), ids=lambda case: case.splitlines()[0][10:])
def test_both_read_the_same(case: str) -> None:
    view = settings(case)
    text = cut(view.query)
    _, windows = windows_in(view.query)
    assert {(w.start, w.length, "ROWS" if w.count else "WINDOW") for w in text.windows} == {
        (start, seconds, kind) for start, (kind, seconds) in windows.items()
    }
    one_window_of_groups = view.output == "rolling" and len(windows) == 1 and "GROUP BY" in view.query
    assert is_several(view.query, view.output) != one_window_of_groups  # that one is verified like any window
    assert len(text.plain) <= len(view.query)
    assert "[" not in text.plain


@pytest.mark.parametrize(
    "query",
    [
        "SELECT src, COUNT(DISTINCT dest) AS n FROM measurements [WINDOW 10 minutes] GROUP BY src",
        "SELECT src, MAX(loss) AS `limit`, 'UNION SELECT' AS t FROM measurements [WINDOW 10 minutes] GROUP BY src -- LIMIT 3",
        "SELECT n.region, SUM(m.loss) AS s FROM measurements [WINDOW 10 minutes] m JOIN nodes n ON n.node = m.src GROUP BY n.region",
        "SELECT src, COUNT(*) AS n FROM measurements PATTERN [a, b+] WHERE a.loss > 1 GROUP BY src",
    ],
)
def test_one_window_is_left_to_others(query: str) -> None:
    assert not is_several(query, "snapshot")
    assert not translated_so(query, TABLES)


def test_places_and_words() -> None:
    text = cut(
        "SELECT a.src, '[WINDOW 1 minute]' AS t -- FROM x [WINDOW 1 minute]\n"
        "FROM measurements AS a [WINDOW 90 seconds SLIDE 30 seconds], alarms [ROWS 5 PER src, level WITHIN 1 day] b;"
    )
    assert [(w.table, w.length, w.count, w.by) for w in text.windows] == [
        ("measurements", 90, None, ()),
        ("alarms", 86400, 5, ("src", "level")),
    ]
    assert "'[WINDOW 1 minute]' AS t" in text.plain
    assert "--" not in text.plain
    largest = cut(
        "SELECT src, COUNT(*) AS n FROM measurements [WINDOW 3 minutes] GROUP BY src ORDER BY n DESC, src LIMIT 4"
    )
    assert (largest.order, largest.limit) == ("n DESC, src", 4)
    assert largest.plain.rstrip().endswith("GROUP BY src")


def test_joins_in_brackets_and_comments_at_the_end() -> None:
    joined = cut(
        "SELECT a.k FROM x [WINDOW 1 minute] a JOIN (y [WINDOW 2 minutes] b JOIN z [ROWS 1 PER per WITHIN 1 day])"
    )
    assert [(w.table, w.length, w.by) for w in joined.windows] == [
        ("x", 60, ()),
        ("y", 120, ()),
        ("z", 86400, ("per",)),
    ]
    largest = cut(
        "SELECT k FROM x [WINDOW 1 minute] GROUP BY k ORDER BY COUNT(*) DESC -- most first\nLIMIT 4 /* few */;"
    )
    assert (largest.order, largest.limit) == ("COUNT(*) DESC", 4)
    assert grouping(largest.plain) == "k"
