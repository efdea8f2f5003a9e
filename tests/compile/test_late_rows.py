"""After a late row exactly the parts that can change are computed again."""

from __future__ import annotations

from tests.compile.duck import Duck, catch_up, repair
from tests.compile.shown import TABLE, translated


def filled(query: str, parts: int, **settings: str) -> Duck:
    duck = Duck(translated(query, **settings), [TABLE])
    duck.insert("s", [{"part": p, "g": "a", "ts": 60 * p, "x": 1, "y": p} for p in range(parts)])
    catch_up(duck, {"s": set(range(parts))})
    return duck


def test_a_rolling_sum_is_repaired_in_the_windows_that_hold_the_row() -> None:
    duck = filled("SELECT g, SUM(x) AS total FROM s [WINDOW 3 minutes] GROUP BY g", 12, strategy="subtract")
    duck.insert("s", [{"part": 5, "g": "a", "ts": 301, "x": 10, "y": 0}])
    done = repair(duck, {("s", 5)})
    assert [part for view, part in done if view == "v"] == [5, 6, 7]
    # Part 8 reads pane 5 as the one that leaves: it is computed, comes out unchanged, and ends the repair.
    assert [part for view, part in done if view == "v__rolling"] == [5, 6, 7, 8]
    assert [duck.rows("v", p)[0]["total"] for p in range(4, 10)] == [3, 13, 13, 13, 3, 3]


def test_a_pattern_is_repaired_until_the_run_is_over() -> None:
    query = "SELECT g, COUNT(*) AS n FROM s PATTERN [a, b+] WHERE a.y <> 7 AND b.y <> 7 GROUP BY g"
    duck = filled(query, 12)
    duck.insert("s", [{"part": 4, "g": "a", "ts": 241, "x": 1, "y": 0}])
    done = repair(duck, {("s", 4)})
    assert [part for view, part in done if view == "v__helper"] == [4, 5, 6, 7], "the row with y = 7 ends the run"
    assert [part for view, part in done if view == "v"] == [4, 5, 6]
    assert [row["n"] for p in range(3, 10) for row in duck.rows("v", p)] == [4, 6, 7, 8, 2]
