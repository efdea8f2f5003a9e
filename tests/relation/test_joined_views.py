"""What the planner knows of the joins of views with dimensions."""

from __future__ import annotations

import pytest

from partwise.compile.load import load_texts
from partwise.ledger.catalog import from_json, to_json
from partwise.parts import Bound, Reference
from partwise.tables import Keyed, Table

TABLES = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, k: string, g: int, x: double}
files: m.csv
---
dimension: d
columns: {k: string, region: string}
files: d.csv
---
dimension: f
change: forward
columns: {k: string, rate: double}
files: f.csv
---
view: sums
part: 1 minute
update: SELECT k AS Name, SUM(x) AS s FROM m[j] GROUP BY k
---
view: v
part: 1 minute
"""
LAST_TWO = Reference(Bound(1, -1), Bound(1, 0))


def table(text: str) -> Table:
    program = load_texts({"all.yaml": (TABLES + text).encode()})
    assert program.ok, program.problems
    found = program.graph()["v"]
    assert from_json(to_json(found)) == found
    return found


def test_joins_by_plain_columns_are_known() -> None:
    found = table("update: SELECT D.region, COUNT(*) AS n FROM M[j-1..j] a JOIN d ON a.K = d.k GROUP BY D.region\n")
    assert found.keyed == (Keyed("d", ("k",), "m", ("k",), LAST_TWO),)
    of_view = table("update: SELECT d.region, s.s FROM sums[j-1..j] s JOIN d ON d.k = s.name\n")
    assert [(item.table, item.columns) for item in of_view.keyed] == [("sums", ("Name",))]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("update: SELECT a.k FROM m[j] a JOIN d ON d.k = a.k, d e\n", id="read whole as well"),
        pytest.param("update: SELECT a.k, f.rate FROM m[j] a JOIN f ON f.k = a.k\n", id="changes count forward"),
        pytest.param(
            "initialize: SELECT k FROM m[i]\nupdate: SELECT a.k FROM m[j] a JOIN d ON d.k = a.k\n",
            id="another query first",
        ),
        pytest.param(
            "output: rolling\nquery: SELECT d.region, COUNT(*) AS n FROM m [WINDOW 5 minutes] a JOIN d ON d.k = a.k GROUP BY d.region\n",
            id="rolling",
        ),
    ],
)
def test_else_nothing_is_known(text: str) -> None:
    assert table(text).keyed == ()
