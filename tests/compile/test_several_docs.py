"""The queries in docs/several_streams.md are translated, and run; its table is what comes out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from partwise.compile import QueryView, translate
from tests.compile.duck import Duck, catch_up
from tests.compile.test_several_golden import TABLES

PAGE = Path(__file__).parents[2] / "docs" / "several_streams.md"
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
VIEWS = re.findall(r"query: \|\n(.*?)```", PAGE.read_text(), re.DOTALL)
STREAMS = ("measurements", "alarms", "pings")


def filled(query: str, output: str = "snapshot") -> Duck:
    view = QueryView("v", query, 60, output=output)  # type: ignore[arg-type]
    return Duck(translate(view, TABLES), [TABLES[name] for name in (*STREAMS, "nodes")])


@pytest.mark.parametrize("query", QUERIES, ids=[q.split("\n")[0] for q in QUERIES])
def test_query_runs(query: str) -> None:
    duck = filled(query)
    duck.insert("nodes", [{"node": "a", "region": "north"}])
    for part in range(12):
        time = f"2026-10-03 10:{part:02d}:00"
        duck.insert("measurements", [{"part": part, "event_time": time, "seq": part, "src": "a", "loss": 7.0}])
        duck.insert("alarms", [{"part": part, "event_time": time, "src": "a", "level": "red"}])
        duck.insert("pings", [{"part": 2 * part, "event_time": time, "src": "a", "ms": 500}])
    catch_up(duck, {"measurements": set(range(12)), "alarms": set(range(12)), "pings": set(range(24))})
    assert duck.rows("v", 11)


def test_the_worked_example() -> None:
    rows = [line.split("|")[1:-1] for line in PAGE.read_text().split("\n") if line.startswith("| 10:0")]
    lines = [(row[0].strip()[-1], *row[1:]) for row in rows]
    assert len(lines) == 5
    for output, column in (("snapshot", 3), ("pairs", 4)):
        duck = filled(VIEWS[0], output)
        for minute, measured, alarmed, *_ in lines:
            time = f"2026-10-03 10:0{minute}:00"
            for src, loss in re.findall(r"(\w+) (\d)", measured):
                row = {"part": int(minute), "event_time": time, "seq": 1, "src": src, "loss": float(loss)}
                duck.insert("measurements", [row])
            for src, level in re.findall(r"(\w+) (\w+)", alarmed):
                duck.insert("alarms", [{"part": int(minute), "event_time": time, "src": src, "level": level}])
        catch_up(duck, {"measurements": set(range(5)), "alarms": set(range(5))})
        for line in lines:
            found = [f"{row['src']} {row['loss']:.0f} {row['level']}" for row in duck.rows("v", int(line[0]))]
            assert sorted(found) == sorted(re.findall(r"ams \d \w+", line[column])), line
        assert duck.built["v"] == ({2, 3, 4} if output == "snapshot" else {0, 1, 2, 3, 4})
