"""The queries in docs/patterns_and_windows.md are translated, and run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from partwise.compile import QueryView, translate
from tests.compile.duck import Duck, catch_up
from tests.compile.test_golden import TABLES

PAGE = Path(__file__).parents[2] / "docs" / "patterns_and_windows.md"
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("query", QUERIES, ids=[q.split("\n")[1] for q in QUERIES])
def test_query_runs(query: str) -> None:
    translation = translate(QueryView("v", query, 60), TABLES)
    duck = Duck(translation, [TABLES["measurements"], TABLES["nodes"]])
    duck.insert("nodes", [{"node": "a", "region": "north"}])
    for part in range(62):
        time = f"2026-10-03 {10 + part // 60}:{part % 60:02d}:00"
        row = {
            "part": part,
            "event_time": time,
            "seq": part,
            "src": "a",
            "dest": "b",
            "loss": part + 11.0,
            "hops": 9,
            "cost": 2,
        }
        duck.insert("measurements", [row])
    catch_up(duck, {"measurements": set(range(62))})
    assert duck.rows("v", 61), "a run of 62 rising values matches every pattern, and fills every window"
