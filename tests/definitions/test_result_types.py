"""Types of a view's columns, where its query makes them plain, and what windows make of them."""

from __future__ import annotations

import pytest

from partwise.compile.load import load_texts

TABLES = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, g: string, x: int, d: "decimal(8,2)"}
files: landing/m/*.csv
---
dimension: nodes
columns: {node: string, g: string, weight: double, x: double}
files: landing/nodes.csv
"""


def types(update: str, initialize: str = "", more: str = "") -> dict[str, str]:
    text = f"{TABLES}---\nview: v\npart: 1 minute\nupdate: |\n  {update}\n"
    text += f"initialize: |\n  {initialize}\n" if initialize else ""
    found = load_texts({"all.yaml": (text + more).encode()})
    assert found.ok, found.problems
    return dict(found.views["w" if more else "v"].types)


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ("SELECT g, x AS n, d * 2 AS double_d FROM m[j]", {"g": "string", "n": "int", "double_d": "decimal(10,2)"}),
        ("SELECT g, SUM(d) AS s, COUNT(*) AS c FROM m[j] GROUP BY g", {"g": "string", "s": "decimal(18,2)", "c": "bigint"}),
        ("SELECT CAST(x AS DECIMAL(5, 1)) AS a, upper(g) AS b FROM m[j]", {"a": "decimal(5,1)"}),
        ("SELECT m.g, m.x AS x, weight * d AS w FROM m[j] m JOIN nodes n ON n.node = m.g", {"g": "string", "w": "double"}),
        ("SELECT a * 2 AS b FROM (SELECT d AS a FROM m[j-1..j]) q", {"b": "decimal(10,2)"}),
        ("SELECT x FROM m[j] UNION ALL SELECT d FROM m[j]", {}),
        ("SELECT * FROM m[j]", {}),
        ("WITH m2 AS (SELECT * FROM m[j]) SELECT x FROM m2", {}),
        ("SELECT x FROM m[j] LATERAL VIEW explode(array(1.5)) e AS x", {}),
    ],
)  # fmt: skip
def test_types_of_a_result(update: str, expected: dict[str, str]) -> None:
    assert types(update) == expected


def test_a_view_that_reads_itself_must_keep_its_types() -> None:
    first = "SELECT g, d AS total, x AS n FROM m[i]"
    later = "SELECT m.g, v.total AS total, v.n + v.total AS n FROM m[j] m JOIN v[j-1] v ON v.g = m.g"
    assert types(later, first) == {"g": "string", "total": "decimal(8,2)"}


WINDOW = "---\nview: w\npart: 1 minute\nquery: SELECT g, {item} AS r FROM v [WINDOW 5 minutes] GROUP BY g\n"


@pytest.mark.parametrize(
    ("item", "kind"),
    [("SUM(n)", "bigint"), ("AVG(n * 1.5)", "decimal(17,5)"), ("MAX(n) - 1", "int"), ("MEDIAN(n)", None), ("STDDEV(n)", "double")],
)  # fmt: skip
def test_a_window_over_a_view_has_types_too(item: str, kind: str | None) -> None:
    assert types("SELECT g, x AS n FROM m[j]", more=WINDOW.format(item=item)).get("r") == kind


@pytest.mark.parametrize(
    ("update", "strategy"),
    [
        ("SELECT g, d AS n FROM m[j]", "merge"),
        ("SELECT g, round(d) AS n FROM m[j]", "merge"),
        ("SELECT g, bround(d) AS n FROM m[j]", "recompute"),
    ],
)
def test_what_is_known_decides_how_a_sum_can_be_kept(update: str, strategy: str) -> None:
    text = f"{TABLES}---\nview: v\npart: 1 minute\nupdate: {update}\n{WINDOW.format(item='AVG(n)')}"
    found = load_texts({"all.yaml": text.encode()})
    assert found.ok, found.problems
    chosen = found.choice("w")
    assert chosen is not None
    assert chosen.strategy == strategy
