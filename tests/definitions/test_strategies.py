"""A window can be kept in several ways: each stands in the definitions once it is chosen, without a parser."""

from __future__ import annotations

import pickle
import subprocess
import sys

from partwise.compile import Choice
from partwise.compile.load import load_texts
from partwise.compile.program import CompiledView, Program

SOURCE = """\
source: m
part: 1 minute
time: t
columns: {t: timestamp, g: string, x: bigint}
files: a.csv
---
"""
WINDOW = """\
view: w
share: false
part: 1 minute
query: |
  SELECT g, SUM(x) AS a FROM m [WINDOW 10 minutes] GROUP BY g
checks:
  - expect_column_values_to_not_be_null: {column: g}
---
"""
READER = """\
view: r
part: 1 minute
update: SELECT g, a FROM w[j] WHERE a > 5
"""


def read(text: str) -> Program:
    return load_texts({"a.yaml": text.encode()})


def view_of(program: Program) -> CompiledView:
    return program.views["w"]


def test_the_chosen_way_stands() -> None:
    found = read(SOURCE + WINDOW + READER)
    assert set(found.helpers) == {"w__panes"}
    expected = {"recompute": set(), "merge": {"w__panes"}, "subtract": {"w__panes", "w__rolling"}}
    for strategy, helpers in expected.items():
        asked = read(SOURCE + WINDOW.replace("query:", f"strategy: {strategy}\nquery:") + READER)
        made = found.choosing({"w": Choice(strategy, "counted")})  # type: ignore[arg-type]
        assert set(made.helpers) == helpers
        assert set(made.usable) == {"m", "w", "r", *helpers}
        assert made.graph() == asked.graph(), "the same as if it had been requested"
        assert made.choice("w") == Choice(strategy, "counted")  # type: ignore[arg-type]
        assert made.usable["w"].checks == found.tables["w"].checks != ()
        again = made.choosing({"w": found.choice("w")})  # type: ignore[dict-item]
        assert again.graph() == found.graph(), "and back"


def test_what_the_author_asked_for_and_what_is_not_possible_stays() -> None:
    asked = read(SOURCE + WINDOW.replace("query:", "strategy: merge\nquery:"))
    assert asked.choosing({"w": Choice("recompute", "counted")}) is asked
    largest = read(SOURCE + WINDOW.replace("SUM(x)", "MAX(x)"))
    assert largest.choosing({"w": Choice("subtract", ""), "gone": Choice("merge", "")}) is largest
    assert largest.choosing({}) is largest


def test_the_mark_is_of_what_the_query_means() -> None:
    first = read(SOURCE + WINDOW)
    same = [
        WINDOW.replace("SELECT g", "SELECT /* the group */ g"),
        WINDOW.replace("query:", "strategy: merge\nquery:"),
        WINDOW.replace("query:", "description: other words\nquery:"),
    ]
    assert {view_of(read(SOURCE + text)).mark for text in same} == {view_of(first).mark}
    assert view_of(first.choosing({"w": Choice("subtract", "")})).mark == view_of(first).mark
    other = [
        WINDOW.replace("SUM(x)", "SUM(x + 1)"),
        WINDOW.replace("10 minutes", "20 minutes"),
        WINDOW.replace("query:", "partial: true\nquery:"),
        WINDOW.replace("part: 1 minute", "part: 2 minutes"),
    ]
    assert len({view_of(first).mark, *(view_of(read(SOURCE + text)).mark for text in other)}) == 5


def test_helpers_of_every_way_need_names_of_their_own() -> None:
    taken = "---\nview: w__rolling\npart: 1 minute\nupdate: SELECT g FROM m[j]\n"
    found = read(SOURCE + WINDOW.rstrip("-\n") + "\n" + taken)
    assert [(p.code, p.table) for p in found.problems] == [("duplicate-name", "w")]


def test_choosing_needs_no_parser() -> None:
    """Commands read definitions from a cache: what stands in it is enough."""
    kept = pickle.dumps(read(SOURCE + WINDOW + READER))
    program = """
import pickle, sys
from partwise.compile import Choice
from partwise.choose.window import by_counts
found = pickle.loads(sys.stdin.buffer.read())
made = found.choosing({"w": by_counts(found.views["w"].shape, 100, 10)})
print(sorted(made.graph().tables), made.views["w"].mark == found.views["w"].mark != "", "sqlglot" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], input=kept, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "['m', 'r', 'w'] True False"
