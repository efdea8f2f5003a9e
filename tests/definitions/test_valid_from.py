"""`valid_from:` on dimensions: what it needs, and what becomes of views that read such a dimension."""

from __future__ import annotations

import pytest

from partwise.compile.load import load_texts
from partwise.compile.program import Program
from partwise.ledger.catalog import from_json, to_json

SOURCE = """\
source: sales
part: 1 minute
time: ts
columns: {ts: timestamp, item: string, n: bigint}
files: a.csv
---
dimension: prices
columns: {item: string, price: bigint, since: timestamp, name: string}
files: prices.csv
"""
TIMED = SOURCE + "key: item\nvalid_from: since\n"
VIEW = "---\nview: v\npart: 1 minute\nupdate: SELECT s.item, s.n * p.price AS paid FROM sales[j] s JOIN prices p ON p.item = s.item\n"
WINDOW = """---
view: w
part: 1 minute
query: SELECT p.name, SUM(s.n * p.price) AS paid FROM sales [WINDOW 5 minutes] s JOIN prices p ON p.item = s.item GROUP BY p.name
"""


def read(text: str) -> Program:
    return load_texts({"a.yaml": text.encode()})


def test_what_runs_compares_times_and_the_planner_knows() -> None:
    program = read(TIMED + VIEW)
    assert not program.problems
    assert program.graph().timed == {"prices"}
    assert program.graph()["v"].input_names == ("sales", "prices")
    assert "__valid_until" in program.alternative("v").table.update.text
    assert "__valid_until" not in program.tables["v"].update.text, "what somebody wrote stays as it is"
    plain = read(SOURCE + "key: item\n" + VIEW)
    assert not plain.graph().timed
    assert plain.graph()["v"].fingerprint != program.graph()["v"].fingerprint, "it means something else"
    assert plain.graph()["prices"].fingerprint == program.graph()["prices"].fingerprint, "its rows are the same"


def test_the_planner_knows_whether_rows_of_earlier_parts_have_a_time() -> None:
    first = (
        "---\nview: v\npart: 1 minute\ninitialize: SELECT item, SUM(n) AS n FROM sales[i] GROUP BY item\nupdate: |\n  "
    )
    mine = "SELECT o.item, o.n + p.price AS n FROM v[j-1] o JOIN prices p ON p.item = o.item CROSS JOIN sales[j] s"
    others = "SELECT o.item, o.n + p.price AS n FROM v[j-1] o JOIN sales[j] s ON s.item = o.item JOIN prices p ON p.item = s.item"
    for query, known in ((mine, True), (others, False)):
        program = read(TIMED + first + query + "\n")
        assert not program.problems
        table = program.graph()["v"]
        assert table.own_times is known
        assert from_json(to_json(table)) == table


def test_windows_join_it_in_a_helper_by_every_strategy() -> None:
    program = read(TIMED + WINDOW)
    assert not program.problems
    ways = program.views["w"].alternatives
    assert len(ways) == 3
    for way in ways:
        dated, *others = *way.helpers, way.table
        assert dated.name == "w__dated"
        assert "__valid_until" in dated.update.text
        assert all("prices" not in other.inputs for other in others)


def test_each_row_of_a_key_is_unique_by_its_time() -> None:
    dimension = read(TIMED).tables["prices"]
    assert dimension.key == ("item", "since")
    (check,) = dimension.checks
    assert check.arguments["column_list"] == ["item", "since"]


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ("valid_from: since\n", "missing-key", "valid_from needs it"),
        ("key: item\nvalid_from: sinc\n", "unknown-column", "did you mean since?"),
        ("key: item\nvalid_from: price\n", "bad-type", "a timestamp or a date"),
        ("key: [item, since]\nvalid_from: since\n", "wrong-value", "remove it from key"),
        ("key: item\nvalid_from: since\nchange: forward\n", "keys-exclude", "rows say themselves"),
    ],
)
def test_what_it_needs(more: str, code: str, said: str) -> None:
    [problem] = read(SOURCE + more).problems
    assert problem.code == code
    assert said in f"{problem.message} {problem.hint}"


def test_problems_of_views_have_their_places() -> None:
    text = TIMED + VIEW.replace("JOIN prices p ON p.item = s.item", ", prices p WHERE p.item = s.item")
    [problem] = read(text).problems
    assert (problem.code, problem.table, problem.line) == ("valid-from", "v", 15)
    assert "v" not in read(text).usable
