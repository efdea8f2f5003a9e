"""What Spark or Delta would refuse at the first run is told by `validate`. tests/spark/test_refused_sql.py asks Spark the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from partwise.compile.load import load_texts
from partwise.definitions.names import bad_name
from tests.golden import FOLDER

SOURCE = """source: {name}
part: 1 minute
time: t
columns: {{t: timestamp, u: timestamp, d: date, s: string, x: double, n: bigint}}
files: landing/*.csv
---
view: v
part: 1 minute
"""
RESULTS = [
    tuple(line.split(" | ", 1)) for line in (FOLDER / "result_types.txt").read_text(encoding="utf-8").splitlines()
]
#: Queries with odd forms, and whether Spark takes them.
ODD = [
    tuple(line.split(" | ", 1)) for line in (FOLDER / "refused_by_spark.txt").read_text(encoding="utf-8").splitlines()
]
#: Ways to name a table in a query, and a word of its part's rows.
FORMS = (
    "SELECT x FROM {name}[j]",
    "SELECT o.x FROM {name}[j] o",
    "SELECT {name}.x FROM {name}[j]",
    "SELECT o.x FROM {name}[j-1] m JOIN {name}[j] o ON m.t = o.t",
    "SELECT m.x FROM {name}[j-1] m, {name}[j] WHERE true",
)
WORDS = (Path(__file__).with_name("spark_words.txt")).read_text(encoding="utf-8").split()


def errors(text: str) -> list[str]:
    found = load_texts({"all.yaml": text.encode()})
    return [f"{p.code}: {p.message}" for p in found.problems if p.severity == "error"]


def update(sql: str, name: str = "m") -> list[str]:
    return errors(SOURCE.format(name=name) + f'update: "{sql}"\n')


def query(sql: str) -> list[str]:
    return errors(SOURCE.format(name="m") + f'query: "{sql}"\n')


@pytest.mark.parametrize("verdict, sql", RESULTS)
def test_results_that_no_table_can_hold(verdict: str, sql: str) -> None:
    found = update(sql)
    if verdict == "fine":
        assert found == []
    else:
        word = {"interval": "is an interval", "void": "is NULL", "decimal": "there is no ", "other": "has the type "}[
            verdict
        ]
        assert len(found) == 1
        assert found[0].startswith("bad-type: ")
        assert word in found[0]


def test_odd_queries_are_refused_where_spark_refuses_them() -> None:
    found = [("refused" if errors(f"{SOURCE.format(name='m')}update: |\n  {sql}\n") else "fine", sql) for _, sql in ODD]
    assert found == [(told, sql) for told, sql in ODD]


@pytest.mark.parametrize(
    "sql, code",
    [
        ("SELECT s, MAX(t) - MIN(t) AS q FROM m [WINDOW 10 minutes] GROUP BY s", "bad-type"),
        ("SELECT s, NULL AS q FROM m [WINDOW 10 minutes] GROUP BY s", "bad-type"),
        ("SELECT s, SUM(CAST(x AS decimal(39,2))) AS q FROM m [WINDOW 10 minutes] GROUP BY s", "bad-type"),
        ("SELECT s, SUM(FOOBAR(x)) AS q FROM m [WINDOW 10 minutes] GROUP BY s", "unknown-function"),
        ("SELECT s, SUM(x) AS q FROM m [WINDOW 10 minutes] WHERE s = :p GROUP BY s", "sql-syntax"),
        ("SELECT s, SUM(x) AS q FROM m [WINDOW 10 minutes] WHERE s SIMILAR TO 'a' GROUP BY s", "sql-syntax"),
        ("SELECT s, SUM(CAST(n AS int64)) AS q FROM m [WINDOW 10 minutes] GROUP BY s", "bad-type"),
        ("SELECT s, SUM(x) AS q FROM m [WINDOW 10 minutes] WHERE s = '${p}' GROUP BY s", "sql-syntax"),
        ("SELECT s, SUM(x) AS `a b` FROM m [WINDOW 10 minutes] GROUP BY s", "bad-name"),
        ("SELECT a.s, a.t - b.t AS q FROM m [WINDOW 2 minutes] a JOIN m [WINDOW 3 minutes] b ON a.s = b.s", "bad-type"),
        ("SELECT COUNT(*) AS n, MAX(t) - MIN(t) AS q FROM m PATTERN [a, b+] WHERE a.x > 1 AND b.x > 1", "bad-type"),
        ("SELECT COUNT(*) AS n FROM m PATTERN [a+] WHERE a.x > FOOBAR(a.n)", "unknown-function"),
        ("SELECT s, SUM(x) AS q FROM m [WINDOW 999999999999 minutes] GROUP BY s", "bad-window"),
    ],
)
def test_queries_with_windows_and_patterns_are_looked_at_as_well(sql: str, code: str) -> None:
    assert [problem.partition(":")[0] for problem in query(sql)] == [code]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT s, SUM(x) AS q FROM m [WINDOW 10 minutes] GROUP BY s",
        "SELECT COUNT(*) AS n FROM m PATTERN [a, b+] WHERE a.x > 1 AND b.x > PREV(b.x)",
        "SELECT s, FREQUENT(40) FROM m [WINDOW 1 day] GROUP BY s",
        "SELECT s, ARG_MAX(x, n) AS a, ARG_MIN(x, n) AS b, COUNTIF(x > 1) AS c FROM m [WINDOW 10 minutes] GROUP BY s",
    ],
)
def test_words_of_partwise_itself_are_no_functions_of_spark(sql: str) -> None:
    assert query(sql) == []


@pytest.mark.parametrize("word", WORDS)
def test_every_word_of_sql_names_a_table_or_is_refused_at_the_source(word: str) -> None:
    refused = bool(bad_name(word))
    for form in FORMS:
        found = update(form.format(name=word), f'"{word}"')
        codes = {problem.partition(":")[0] for problem in found}
        assert "bad-name" in codes if refused else found == [], (word, form, found)
