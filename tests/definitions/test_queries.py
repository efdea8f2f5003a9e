"""Queries with PATTERN or WINDOW become plain views when definitions are loaded."""

from pathlib import Path

import pytest

from partwise.compile.load import load, load_texts
from partwise.compile.program import Program
from partwise.definitions import View
from partwise.parts import Reference
from partwise.tables import Graph, Input

EXAMPLE = Path(__file__).parents[2] / "view_defs"
SOURCE = """\
source: m
part: 1 minute
time: {column: t, tie: n}
columns: {t: timestamp, n: bigint, src: string, loss: bigint}
files: a.csv
---
"""
QUERY = """\
view: v
part: 1 minute
query: |
  SELECT src, COUNT(*) AS ct FROM m PATTERN [a, b+]
  WHERE a.loss > 10 AND b.loss > 10 GROUP BY src
"""
WINDOW = """\
view: v
part: 1 minute
query: |
  SELECT src, COUNT(*) AS ct FROM m [WINDOW 5 minutes] GROUP BY src
"""


def read(text: str) -> Program:
    return load_texts({"a.yaml": text.encode()})


def test_a_query_is_translated_with_its_helpers() -> None:
    found = read(SOURCE + QUERY)
    assert found.problems == ()
    view = found.tables["v"]
    assert isinstance(view, View)
    assert view.query is not None
    assert view.update is None, "what is generated stands beside what was written"
    assert found.views["v"].columns == ("src", "ct")
    assert found.helpers
    assert all(helper.helper_of == "v" for helper in found.helpers.values())
    assert set(found.tables) == {"m", "v"}
    assert set(found.graph().tables) == {"m", "v", *found.helpers}


def test_the_pattern_of_the_example_reads_its_own_previous_part() -> None:
    found = load(EXAMPLE)
    graph = found.graph()
    helpers = [graph[name] for name, helper in found.helpers.items() if helper.helper_of == "high_loss"]
    assert len(helpers) == 1
    assert Input(helpers[0].name, Reference.same(-1)) in helpers[0].inputs
    assert graph["high_loss"].input_names == (helpers[0].name,)


def test_generated_sql_has_the_place_of_the_query() -> None:
    found = read(SOURCE + QUERY)
    for view in (found.alternative("v").table, *found.helpers.values()):
        for statement in view.statements:
            assert statement.found.problems == ()
            assert str(statement.placed.at(len(statement.text) // 2)) == "a.yaml:10:3"


def test_helpers_of_a_view_with_errors_are_not_used() -> None:
    found = read(SOURCE + QUERY + "checks:\n  - expect_column_values_to_not_be_null: {column: nope}\n")
    assert [p.code for p in found.problems] == ["unknown-column"]
    assert found.helpers
    assert set(found.usable) == {"m"}


def test_a_helper_needs_a_name_of_its_own() -> None:
    """One that others may share is called by what it holds; if that is taken, the view has one that is called after it."""
    shared = next(iter(read(SOURCE + QUERY).helpers))
    taken = "---\nview: {}\npart: 1 minute\nupdate: SELECT src FROM m[j]\n"
    found = read(SOURCE + QUERY + taken.format(shared))
    assert found.problems == ()
    assert list(found.helpers) == ["v__helper"]
    found = read(SOURCE + QUERY + taken.format(shared) + taken.format("v__helper"))
    assert [(p.code, p.table) for p in found.problems] == [("duplicate-name", "v")]
    assert set(found.usable) == {"m", shared, "v__helper"}


def test_views_can_read_what_a_query_gives() -> None:
    found = read(SOURCE + QUERY + "---\nview: w\npart: 1 minute\nupdate: SELECT src, ct FROM v[j] WHERE ct > 5\n")
    assert found.problems == ()
    assert found.graph()["w"].input_names == ("v",)
    wrong = read(SOURCE + QUERY + "---\nview: w\npart: 1 minute\nupdate: SELECT src, cnt FROM v[j]\n")
    assert [p.code for p in wrong.problems] == ["unknown-column"]


def test_the_fingerprint_of_a_query_follows_its_meaning() -> None:
    before = read(SOURCE + QUERY).graph()
    same = read(SOURCE + QUERY.replace("  WHERE", "  -- high\n  where")).graph()
    other = read(SOURCE + QUERY.replace("a.loss > 10", "a.loss > 11")).graph()
    carry = read(SOURCE + QUERY + "gaps: carry\n").graph()

    def meaning(graph: Graph) -> dict[str, str]:
        """Helpers are called by what they hold."""
        return {name: table.fingerprint for name, table in graph.tables.items()}

    assert meaning(before) == meaning(same)
    for changed in (other, carry):
        assert meaning(before) != meaning(changed)


@pytest.mark.parametrize(
    ("query", "setting", "expected"),
    [
        (QUERY, "strategy: merge", ["a.yaml:12:1: keys-exclude: strategy means nothing for a pattern"]),
        (QUERY, "partial: true", ["a.yaml:12:1: keys-exclude: partial means nothing for a pattern"]),
        (QUERY, "gaps: carry", []),
        (WINDOW, "gaps: break", ["a.yaml:11:1: keys-exclude: gaps means nothing for a window"]),
        (WINDOW, "partial: true", []),
        (WINDOW, "strategy: merge", []),
    ],
)
def test_settings_of_the_other_kind_are_not_ignored(query: str, setting: str, expected: list[str]) -> None:
    found = read(SOURCE + query + setting + "\n").problems
    assert [f"{p.file}:{p.line}:{p.column}: {p.code}: {p.message}" for p in found] == expected


@pytest.mark.parametrize(
    "said", ["-- rows FROM w\n", "/* JOIN w */\n", "'not FROM w' AS said,\n", "src IS DISTINCT FROM w AS differs,\n"]
)
def test_words_in_comments_and_strings_make_no_cycle(said: str) -> None:
    """`w` reads `v`, and `v` only speaks of it."""
    source = SOURCE.replace("loss: bigint}", "loss: bigint, w: string}")
    query = "".join(f"  {line}\n" for line in f"SELECT src,\n{said}COUNT(*) AS ct".splitlines())
    grouped = "  FROM m [WINDOW 5 minutes] GROUP BY src, w\n---\nview: w\npart: 1 minute\nupdate: SELECT * FROM v[j]\n"
    found = read(source + "view: v\npart: 1 minute\nquery: |\n" + query + grouped)
    assert "cycle" not in [problem.code for problem in found.problems]
    assert {"v", "w"} <= found.usable.keys(), [str(p) for p in found.problems]
