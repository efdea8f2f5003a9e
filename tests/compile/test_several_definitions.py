"""Queries over several streams in YAML: what they read, what they are kept in, and which keys they take."""

from __future__ import annotations

from pathlib import Path

import pytest

from partwise.compile.load import load
from partwise.compile.program import Program
from partwise.compile.update_class import update_class
from partwise.definitions import View

SOURCES = "".join(
    f"source: {name}\npart: 1 minute\ntime: {{column: ts, tie: tie}}\n"
    f"columns: {{ts: timestamp, tie: int, k: string, x: int}}\nfiles: {name}/*.csv\n---\n"
    for name in ("a", "b")
)


def loaded(at: Path, *views: str) -> Program:
    (at / "views.yaml").write_text(SOURCES + "---\n".join(views))
    return load(str(at))


def view(name: str, query: str, more: str = "") -> str:
    return f"view: {name}\npart: 1 minute\n{more}query: |\n  {query}\n"


def test_what_they_read(tmp_path: Path) -> None:
    program = loaded(
        tmp_path,
        view("z", "SELECT a.k FROM a [WINDOW 3 minutes], late [WINDOW 2 minutes] WHERE a.k = late.k"),
        view("late", "SELECT DISTINCT k FROM b [WINDOW 2 minutes]", "strategy: last\n"),
        view(
            "met", "SELECT a.k, b.x FROM a [WINDOW 3 minutes] JOIN b [WINDOW 2 minutes] ON a.k = b.k", "output: pairs\n"
        ),
        view("newest", "SELECT r.k, r.x FROM a [ROWS 2 PER k WITHIN 5 minutes] r"),
        view("often", "SELECT k, FREQUENT(5) FROM a [WINDOW 5 minutes] GROUP BY k"),
        view("most", "SELECT k, COUNT(*) AS n FROM late [WINDOW 5 minutes] GROUP BY k ORDER BY n DESC LIMIT 3"),
    )
    assert program.ok, [str(problem) for problem in program.problems]
    graph = program.with_own(program.views).graph()  # helpers are called after their view
    assert graph.order.index("late") < graph.order.index("z")
    read = {
        name: {f"{i.table}{i.reference.text()}" for i in table.inputs if i.reference}
        for name, table in graph.tables.items()
    }
    assert read["z"] == {"a[j-2..j]", "late[j-1..j]"}
    assert read["late"] == {"late__last[j]"}
    assert read["late__last"] == {"late__last[j-1]", "b[j]", "b[j-2]"}
    assert read["met"] == {"a[j]", "a[j-2..j]", "b[j]", "b[j-1..j]"}
    assert graph["met"].optional == ("a", "b")
    assert read["newest__rows"] == {"a[j]"}
    assert read["often"] == {"often__top[j-4..j]"}
    assert dict(program.views["most"].types)["n"] == "bigint"
    tables = {name.lower(): table for name, table in program.tables.items()}
    classes = {name: update_class(table, tables) for name, table in tables.items() if isinstance(table, View)}
    assert {name: found.name for name, found in classes.items() if found} == {
        "z": "weak", "late": "weak", "met": "monotonic", "newest": "strict", "often": "strict", "most": "strict",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ("output: pairs\nupdate: SELECT k FROM a[j]\n", "keys-exclude"),
        ("output: pairs\nquery: SELECT COUNT(*) AS n FROM a PATTERN [p, q+]\n", "pairs-query"),
        (
            "output: rolled\nquery: SELECT k FROM a [WINDOW 2 minutes] UNION ALL SELECT k FROM b [WINDOW 2 minutes]\n",
            "wrong-value",
        ),
        ("partial: true\nquery: SELECT DISTINCT k AS partial FROM a [WINDOW 2 minutes]\n", "reserved-name"),
        (
            "partial: true\noutput: pairs\nquery: SELECT a.k FROM a [WINDOW 2 minutes] JOIN b [WINDOW 2 minutes] ON b.k = a.k\n",
            "bad-window",
        ),
        ("partial: true\nstrategy: last\nquery: SELECT DISTINCT k FROM a [WINDOW 2 minutes]\n", "bad-strategy"),
        ("updates: monotonic\nquery: SELECT DISTINCT k FROM a [WINDOW 2 minutes]\n", "updates-class"),
        ("gaps: carry\nquery: SELECT DISTINCT k FROM a [WINDOW 2 minutes]\n", "keys-exclude"),
    ],
)
def test_keys_that_do_not_fit(tmp_path: Path, more: str, code: str) -> None:
    program = loaded(tmp_path, f"view: v\npart: 1 minute\n{more}")
    assert code in {problem.code for problem in program.problems}, [str(p) for p in program.problems]


def test_equal_groups_are_ordered_by_every_key(tmp_path: Path) -> None:
    """`a.k` and `b.k` are two keys, whatever they are called in the result."""
    join = "a [WINDOW 3 minutes] JOIN b [WINDOW 2 minutes] ON a.x = b.x"
    query = f"SELECT a.k AS one, b.k AS other, COUNT(*) AS n FROM {join} GROUP BY a.k, b.k ORDER BY n DESC LIMIT 3"
    program = loaded(tmp_path, view("v", query))
    assert program.ok, [str(problem) for problem in program.problems]
    text = program.alternative("v").table.update.text
    assert "ORDER BY n DESC NULLS LAST, one ASC NULLS FIRST, other ASC NULLS FIRST" in text
