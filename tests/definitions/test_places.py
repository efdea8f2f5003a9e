"""Places of SQL inside YAML: every way to write a text, to the line and column."""

import pytest

from partwise.compile.load import load_texts
from partwise.definitions import View
from partwise.definitions.yaml.places import placed
from partwise.definitions.yaml.text import TextFile, compose, document_at

SOURCE = "source: m\npart: 1 minute\ntime: t\ncolumns: {t: timestamp, src: string}\nfiles: a.csv\n---\n"

WAYS = {
    "literal": "update: |\n  SELECT src,\n    nope\n  FROM m[j]\n",
    "literal, deep": "update: |\n        SELECT src,\n          nope\n        FROM m[j]\n",
    "literal, indicator": "update: |2-\n    SELECT src,\n     nope\n    FROM m[j]\n\n",
    "literal, blank lines": "update: |\n\n\n  SELECT src,\n\n    nope\n\n  FROM m[j]\n",
    "folded": "update: >\n  SELECT src,\n  nope\n  FROM m[j]\n",
    "folded, strip": "update: >-\n  SELECT src,\n    nope\n\n  FROM m[j]\n",
    "plain": "update: SELECT src, nope FROM m[j]\n",
    "plain, lines": "update: SELECT src,\n  nope\n  FROM m[j]\n",
    "single": "update: 'SELECT ''a'' AS a, nope FROM m[j]'\n",
    "double": 'update: "SELECT \\"a\\" AS a,\\tnope\\n FROM m[j]"\n',
    "double, lines": 'update: "SELECT src,\n   \\\n   nope\n   FROM m[j]"\n',
    "double, escapes": "update: \"SELECT '\\u00e9\\x41' AS a, nope FROM m[j]\"\n",
    "wide characters": "update: |\n  SELECT 'größe 😀' AS a, nope\n  FROM m[j]\n",
    "comment behind": "update: |  # the query\n  SELECT src,\n    nope\n  FROM m[j]\n",
    "windows": "update: |\r\n  SELECT src,\r\n    nope\r\n  FROM m[j]\r\n",
}


@pytest.mark.parametrize("text", WAYS.values(), ids=WAYS.keys())
def test_an_error_in_sql_is_found_in_the_file(text: str) -> None:
    whole = f"{SOURCE}view: v\npart: 1 minute\n{text}"
    found = load_texts({"a.yaml": whole.encode()})
    assert [p.code for p in found.problems] == ["unknown-column"]
    problem = found.problems[0]
    line = whole.split("\n")[problem.line - 1]
    assert line[problem.column - 1 :].startswith("nope")


@pytest.mark.parametrize("text", WAYS.values(), ids=WAYS.keys())
def test_every_word_has_its_place(text: str) -> None:
    file = TextFile("a.yaml", text)
    node = compose(text)[0].get("update")
    assert node is not None
    value = placed(file, node)
    for word in ("SELECT", "nope", "FROM", "m[j]"):
        place = value.at(value.text.index(word))
        assert text.split("\n")[place.line - 1][place.column - 1 :].startswith(word)


def test_engines_report_lines_and_columns() -> None:
    whole = f"{SOURCE}view: v\npart: 1 minute\nupdate: |\n  SELECT src\n  FROM m[j]\n"
    view = load_texts({"a.yaml": whole.encode()}).tables["v"]
    assert isinstance(view, View)
    assert view.update is not None
    place = view.update.placed.at_line(2, 6)
    assert str(place) == "a.yaml:11:8"
    assert whole.split("\n")[10][7:].startswith("m[j]")


def test_a_file_with_a_mark_at_its_start() -> None:
    found = load_texts({"a.yaml": b"\xef\xbb\xbfveiw: a\n"})
    assert [(p.line, p.column, p.code) for p in found.problems] == [(1, 1, "not-a-definition")]


def test_the_document_of_a_line() -> None:
    text = "# of all\nview: a\npart: 60\n--- # second\nview: b\n---\nview: c\n\n"
    assert [document_at(text, line) for line in (1, 3)] == ["# of all\nview: a\npart: 60"] * 2
    assert document_at(text, 5) == "--- # second\nview: b"
    assert document_at(text, 7) == "view: c"
    assert document_at(text, 99) == ""
