"""Views whose parts are longer than those of what they read."""

from __future__ import annotations

from partwise.compile import InputTable, QueryView, translate
from tests.compile.duck import Duck, catch_up

SOURCE = InputTable("s", "source", 60, {"g": "string", "ts": "bigint", "x": "int"}, "ts")
VIEW = InputTable("u", "view", 60, {"g": None, "x": None})


def test_a_pattern_over_five_parts_at_once() -> None:
    """A gap is a part of the view without rows: missing minutes inside it break nothing."""
    query = (
        "SELECT g, COUNT(*) AS n, LAST(x) AS x FROM s PATTERN [a, b+] WHERE b.x > a.x AND b.x > PREV(b.x) GROUP BY g"
    )
    duck = Duck(translate(QueryView("v", query, 300), {"s": SOURCE}), [SOURCE])
    minutes = {0: 1, 3: 2, 4: 3, 5: 4, 15: 9, 16: 10}
    duck.insert("s", [{"part": m, "g": "a", "ts": 60 * m, "x": x} for m, x in minutes.items()])
    catch_up(duck, {"s": set(range(20))})
    shown = [[(r["n"], r["x"]) for r in duck.rows("v", part)] for part in range(4)]
    assert shown == [[(3, 3)], [(4, 4)], [], [(2, 10)]]


def test_a_view_without_event_time_is_read_in_the_order_of_its_parts() -> None:
    query = "SELECT g, FIRST(x) AS first_x, LAST(x) AS last_x FROM u PATTERN [a+] WHERE a.x > 0 GROUP BY g"
    made = translate(QueryView("v", query, 120), {"u": VIEW})
    assert "SELECT g, part_timestamp AS by_1," in made.views[0].update
    assert "NULLS LAST, by_1, last_x" in made.views[0].update
    assert made.warnings
    real = InputTable("u", "view", 60, {"g": "string", "x": "int", "part_timestamp": "timestamp"})
    duck = Duck(made, [real])
    values = [(0, 9), (1, 2), (2, 5), (3, 4)]
    duck.insert("u", [{"part": p, "g": "a", "x": x, "part_timestamp": f"2026-10-03 10:0{p}:00"} for p, x in values])
    catch_up(duck, {"u": set(range(4))})
    shown = [[(r["first_x"], r["last_x"]) for r in duck.rows("v", part)] for part in range(2)]
    assert shown == [[(9, 2)], [(9, 4)]]


def test_a_window_of_a_view() -> None:
    """Where the types of a view's columns are not known, sums of sums could have another type than the query's."""
    made = translate(
        QueryView("v", "SELECT g, SUM(x) AS s, AVG(x) AS a FROM u [WINDOW 3 minutes] GROUP BY g", 60), {"u": VIEW}
    )
    duck = Duck(made, [InputTable("u", "view", 60, {"g": "string", "x": "int"})])
    duck.insert("u", [{"part": p, "g": "a", "x": x} for p, x in enumerate([1, 2, None, 6])])
    catch_up(duck, {"u": set(range(4))})
    assert made.choice.strategy == "recompute"
    assert [[(r["s"], r["a"]) for r in duck.rows("v", p)] for p in (2, 3)] == [[(3, 1.5)], [(8, 4.0)]]


def test_windows_that_do_not_overlap_or_leave_gaps() -> None:
    for window, expected in ((60, [4, 6]), (120, [7, 11])):
        query = f"SELECT SUM(x) AS total FROM s [WINDOW {window} seconds SLIDE 2 minutes]"
        duck = Duck(translate(QueryView("v", query, 120), {"s": SOURCE}), [SOURCE])
        duck.insert("s", [{"part": p, "g": "a", "ts": 60 * p, "x": x} for p, x in enumerate([3, 4, 5, 6])])
        catch_up(duck, {"s": set(range(4))})
        assert [duck.rows("v", p)[0]["total"] for p in range(2)] == expected
