"""Helpers that several views read: the same name for the same meaning, whoever reads it, and for nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from partwise.choose.covering import with_covers
from partwise.compile import Choice
from partwise.compile.load import load_texts
from partwise.compile.program import Program, Runnable
from partwise.compile.sharing.text import without_alias
from partwise.definitions.definitions import Statement
from partwise.definitions.yaml.places import Placed
from partwise.sql.canonical import canonical_of
from partwise.sql.references import analyse
from partwise.tables import Graph

SOURCE = """\
source: m
part: 1 minute
time: {column: t, tie: n}
columns: {t: timestamp, n: bigint, g: string, x: bigint, y: double, xs: array<bigint>}
files: a.csv
---
dimension: nodes
columns: {node: string, region: string}
files: nodes.csv
"""
PLAIN = "SELECT g, SUM(x) AS s FROM m [WINDOW 10 minutes] GROUP BY g"


def view(name: str, query: str, *lines: str) -> str:
    return "\n".join(["---", f"view: {name}", "part: 1 minute", *lines, f"query: {query}", ""])


def program(*views: str) -> Program:
    found = load_texts({"a.yaml": (SOURCE + "".join(views)).encode()})
    assert found.ok, found.problems
    return found


def helpers(found: Program, name: str) -> list[str]:
    return sorted(helper.name for helper in found.helpers.values() if name in [v.name for v in helper.served])


def alike(one: str, other: str, *lines: str, strategy: str | None = None) -> bool:
    """Whether two queries read the same helpers; `lines` belong to the other one."""
    found = program(view("a", one), view("b", other, *lines))
    if strategy is not None:
        found = found.choosing({name: Choice(strategy, "") for name in "ab"})  # type: ignore[arg-type]
    assert helpers(found, "a")
    assert helpers(found, "b")
    return helpers(found, "a") == helpers(found, "b")


SAME = {
    "a longer window": PLAIN.replace("10", "30"),
    "another name of the result": PLAIN.replace("AS s", "AS total"),
    "a condition on the result": PLAIN + " HAVING SUM(x) > 3",
    "comments and case": PLAIN.replace("SELECT", "select /* groups */"),
    "the table has an alias": "SELECT q.g, SUM(q.x) AS s FROM m [WINDOW 10 minutes] q GROUP BY q.g",
    "AS before the alias": "SELECT q.g, SUM(q.x) AS s FROM m [WINDOW 10 minutes] AS q GROUP BY q.g",
    "the name of the table in front": "SELECT m.g, SUM(m.x) AS s FROM m [WINDOW 10 minutes] GROUP BY m.g",
    "the mean of the same": PLAIN.replace("SUM(x)", "AVG(x)"),
    "how many there are": PLAIN.replace("SUM(x)", "COUNT(x)"),
    "several of it in another order": "SELECT g, COUNT(x) AS n, AVG(x) AS a, SUM(x) AS s FROM m [WINDOW 5 minutes] GROUP BY g",
    "more done with the same sum": "SELECT g, SUM(x) AS s, SUM(x) + 1 AS more FROM m [WINDOW 10 minutes] GROUP BY g",
}
OTHER = {
    "another column": PLAIN.replace("SUM(x)", "SUM(n)"),
    "another function": PLAIN.replace("SUM(x)", "MAX(x)"),
    "another key": "SELECT n, SUM(x) AS s FROM m [WINDOW 10 minutes] GROUP BY n",
    "no key": "SELECT SUM(x) AS s FROM m [WINDOW 10 minutes]",
    "a condition": PLAIN.replace(" GROUP", " WHERE x > 5 GROUP"),
    "a join": "SELECT g, SUM(x) AS s FROM m [WINDOW 10 minutes] JOIN nodes ON node = g GROUP BY g",
    "only of some rows": PLAIN.replace("SUM(x)", "SUM(x) FILTER (WHERE y > 0)"),
}


@pytest.mark.parametrize("strategy", ["merge", None])
@pytest.mark.parametrize("other", SAME.values(), ids=SAME.keys())
def test_the_same_meaning_is_one_helper(other: str, strategy: str | None) -> None:
    assert alike(PLAIN, other, strategy=strategy)


@pytest.mark.parametrize("strategy", ["merge", "subtract"])
def test_the_order_of_aggregates_does_not_matter(strategy: str) -> None:
    query = "SELECT g, {} FROM m [WINDOW 10 minutes] GROUP BY g"
    one, other = query.format("SUM(x) AS s, MIN(x) AS low, MAX(n) AS top"), query.format("MAX(n) AS t, SUM(x), MIN(x)")
    assert alike(one, other, strategy=strategy)
    assert not alike(one, query.format("SUM(x) AS s, MAX(x) AS low, MAX(n) AS top"), strategy=strategy)


@pytest.mark.parametrize("column", ["CAST(y AS DECIMAL(30, 2))", "CAST(x AS DECIMAL(38, 0))", "g"])
def test_counting_never_brings_what_may_fail(column: str) -> None:
    """A sum of decimals may be too large, where counting them never fails; text has no sum."""
    found = program(
        view("a", f"SELECT n, COUNT({column}) AS c FROM m [WINDOW 10 minutes] GROUP BY n", "strategy: merge")
    )
    (helper,) = found.helpers.values()
    assert "SUM(" not in helper.update.text


@pytest.mark.parametrize("strategy", ["merge", "subtract"])
@pytest.mark.parametrize("other", OTHER.values(), ids=OTHER.keys())
def test_another_meaning_is_another_helper(other: str, strategy: str) -> None:
    if strategy == "subtract" and "MAX" in other:
        return  # it cannot be subtracted
    assert not alike(PLAIN, other, strategy=strategy)


def test_the_text_of_rolling_sums_says_nothing_about_the_rows_behind_them() -> None:
    """But for the names of their panes it is the same for every condition."""
    found = program(
        *(view(f"w{n}", PLAIN.replace(" GROUP", f" WHERE x > {n} GROUP"), "strategy: subtract") for n in (1, 2))
    )
    rolling = [helper for helper in found.helpers.values() if "__rolling_" in helper.name]
    own = [h.update.text for v in found.views.values() for h in v.own[-1].helpers if h.name.endswith("rolling")]
    assert len(rolling) == 2
    assert len({text.replace("w1", "w").replace("w2", "w") for text in own}) == 1


def test_rolling_sums_are_shared_for_equal_windows_only() -> None:
    assert alike(PLAIN, SAME["another name of the result"], strategy="subtract")
    found = program(view("a", PLAIN, "strategy: subtract"), view("b", SAME["a longer window"], "strategy: subtract"))
    both = {name for name in found.helpers if [v.name for v in found.helpers[name].served] == ["a", "b"]}
    assert [name.split("__")[1].split("_")[0] for name in both] == ["panes"], "the panes are the same, the sums are not"


def test_all_columns_at_once_are_not_all_rows() -> None:
    """COUNT(q.*) counts rows in which nothing is NULL."""
    whole, rows = (f"SELECT g, COUNT({each}) AS n FROM m [WINDOW 10 minutes] q GROUP BY g" for each in ("q.*", "*"))
    found = load_texts({"a.yaml": (SOURCE + view("a", whole) + view("b", rows)).encode()})
    assert not found.ok or helpers(found, "a") != helpers(found, "b")


def said(sql: str) -> str:
    analysis = analyse(sql, "j")
    return without_alias(
        Statement(sql, "j", analysis.found, Placed(sql, "", ((0, 1, 1),)), canonical_of(sql, analysis))
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT COUNT(q.*) AS n FROM m[j] q", "SELECT COUNT(*) AS n FROM m[j]"),
        ("SELECT SUM(transform(xs, q -> q.x)[0]) AS n FROM m[j] q", "SELECT SUM(transform(xs, q -> x)[0]) AS n FROM m[j]"),
        ("SELECT SUM(q.q.x) AS n FROM m[j] q", "SELECT SUM(x) AS n FROM m[j]"),
        ("SELECT SUM(q.x) AS n FROM m[j] q", "SELECT SUM(q.x) AS n FROM m[j]"),
        ("SELECT MAX('q.x') AS n FROM m[j] q", "SELECT MAX('x') AS n FROM m[j]"),
        ("SELECT SUM(x) AS n FROM m[j] q WHERE x > (SELECT MAX(q.x) FROM r[j] q)", "SELECT SUM(x) AS n FROM m[j] WHERE x > (SELECT MAX(x) FROM r[j])"),
    ],
)  # fmt: skip
def test_what_is_no_alias_stays(one: str, other: str) -> None:
    assert said(one) != said(other)


def test_an_alias_says_nothing() -> None:
    plain = "SELECT g, SUM(x) AS n FROM m[j-1..j] WHERE s.x > 1 GROUP BY g"
    assert said(plain) == said("SELECT q.g, SUM(q.x) AS n FROM m[j-1..j] AS q WHERE q.s.x > 1 GROUP BY q.g")
    assert said(plain) == said("SELECT `Q`.g AS g, SUM(q.x) AS n FROM m[j-1..j] q WHERE q.s.x > 1 GROUP BY q.g")


def test_a_name_inside_a_lambda_is_not_the_alias() -> None:
    body = "SELECT g, MAX(aggregate(xs, 0L, (a, q) -> a + {})) AS s FROM m [WINDOW 10 minutes] q GROUP BY g"
    one, other = (body.format(each) for each in ("q.x", "x"))
    assert not alike(one, other)
    assert alike(one, one)


def test_patterns_that_differ_in_the_last_threshold() -> None:
    pattern = "SELECT g, COUNT(*) AS n FROM m PATTERN [{}+] WHERE {} GROUP BY g"

    def of(*names: str, least: int = 1) -> str:
        return pattern.format(", ".join(names), " AND ".join(f"{name}.x > {least}" for name in names))

    assert alike(of("a", "b", "c"), of("a", "b", "c", "d"))
    assert alike(of("a", "b", "c"), of("p", "q"), "gaps: break")
    assert not alike(of("a", "b", "c"), of("a", "b", "c", least=2))
    assert not alike(of("a", "b", "c"), of("a", "b", "c"), "gaps: carry")


@pytest.mark.parametrize(
    "line", ["share: false", "engine: submit", "refresh: {every: 1 hour}", "start: latest", "start: 2026-10-03T10:00"]
)
def test_what_keeps_helpers_apart(line: str) -> None:
    assert not alike(PLAIN, PLAIN, line)


def test_views_on_the_same_other_engine_share() -> None:
    found = program(view("a", PLAIN, "engine: submit"), view("b", PLAIN, "engine: submit"), view("c", PLAIN))
    assert helpers(found, "a") == helpers(found, "b") != helpers(found, "c")


def test_named_by_meaning_even_for_one_view() -> None:
    """Who comes and goes changes nothing for the others but whom the helper serves."""
    alone, both = program(view("b", PLAIN)), program(view("a", PLAIN), view("b", PLAIN))
    (name,) = alone.helpers
    assert name.startswith("m__panes_")
    assert list(both.helpers) == [name]
    assert both.graph()[name].serves == ("a", "b")
    assert alone.graph()[name].serves == ("b",)
    assert alone.graph()["b"] == both.graph()["b"]
    assert replace(both.graph()[name], helper_of="b", also=()) == alone.graph()[name]


def test_whose_text_runs_does_not_matter() -> None:
    first, second = view("a", PLAIN), view("b", SAME["the table has an alias"])
    one, other = (
        program(first, second),
        program(second.replace("view: b", "view: a"), first.replace("view: a", "view: b")),
    )
    (name,) = one.helpers
    assert one.helpers[name].update.text != other.helpers[name].update.text
    assert one.graph()[name] == other.graph()[name]


def test_the_most_eager_settings_win() -> None:
    lines = ("repair: manual", "patience: 10 minutes", "freshness: 5 minutes")
    found = program(view("a", PLAIN, *lines), view("b", PLAIN, "patience: 20 minutes"))
    (name,) = found.helpers
    table = found.graph()[name]
    assert (table.repair, table.patience, table.freshness) == ("automatic", 600.0, 300)
    assert program(view("a", PLAIN, *lines)).graph()[name].repair == "manual"


def test_a_view_with_errors_takes_nothing_from_the_others() -> None:
    bad = view("a", PLAIN, "checks: [{expect_nothing: {}}]")
    found = load_texts({"a.yaml": (SOURCE + bad + view("b", PLAIN)).encode()})
    assert not found.ok
    (helper,) = (t for t in found.usable.values() if isinstance(t, Runnable) and t.helper_of)
    assert [v.name for v in helper.served] == ["b"]


def test_helpers_of_its_own_are_what_they_were() -> None:
    """What was built by earlier releases stays as it is."""
    found = program(view("a", PLAIN), view("b", PLAIN)).with_own(["a"])
    assert set(found.helpers) == {"a__panes", *helpers(program(view("b", PLAIN)), "b")}
    assert found.graph()["a"].input_names == ("a__panes",)


def test_panes_of_a_view_that_subtracts_only_some_serve_one_that_merges() -> None:
    both = "SELECT g, SUM(x) AS s, MAX(x) AS top FROM m [WINDOW 10 minutes] GROUP BY g"
    top = "SELECT g, MAX(x) AS top FROM m [WINDOW 20 minutes] GROUP BY g"
    found = program(view("a", both, "strategy: subtract"), view("b", top, "strategy: merge"))
    assert set(helpers(found, "b")) < set(helpers(found, "a"))


@pytest.mark.parametrize("strategy", ["merge", "subtract"])
def test_renamed_texts_are_as_if_they_had_been_read(strategy: str) -> None:
    queries = [*SAME.values(), *OTHER.values(), PLAIN + " HAVING COUNT(DISTINCT x) > 1"]
    views = [view(f"v{at}", query, "partial: true") for at, query in enumerate(queries)]
    pattern = "SELECT g, COUNT(*) AS n FROM m PATTERN [a, b+] WHERE a.x > 1 AND b.x > a.x GROUP BY g"
    found = program(*views, view("p", pattern))
    found = found.choosing({name: Choice(strategy, "") for name in found.views})  # type: ignore[arg-type]
    tables = [table for table in found.usable.values() if isinstance(table, Runnable)]
    assert len(tables) > 30
    for statement in (statement for table in tables for statement in table.statements):
        again = analyse(statement.text, statement.index)
        assert statement.found == again.found
        assert statement.canonical == canonical_of(statement.text, again)
    for text in (text for t in tables for text in (t.single_pass, t.fast_update, t.unique_update) if text):
        assert "__panes[" not in text
        assert "__helper[" not in text
        assert {each.table for each in analyse(text, "j").found.parts} <= found.usable.keys()


def team() -> list[str]:
    """Queries as people write them over one source: 32 windows and 8 patterns."""

    def window(items: str, minutes: int = 10, by: str = "g", more: str = "") -> str:
        return f"SELECT {by}, {items} FROM m [WINDOW {minutes} minutes]{more} GROUP BY {by}"

    def run(names: str, least: int, column: str = "y") -> str:
        conditions = " AND ".join(f"{name}.{column} > {least}" for name in names)
        return f"SELECT g, COUNT(*) AS n FROM m PATTERN [{', '.join(names)}+] WHERE {conditions} GROUP BY g"

    found = [window(f"{call}(y) AS v", minutes) for minutes in (5, 10, 30, 60) for call in ("AVG", "MAX")]
    found += [window("SUM(y) AS s, COUNT(*) AS n"), window("COUNT(*) AS n"), window("COUNT(*) AS many", 60)]
    found += [window("SUM(y) AS s", 15), window("COUNT(y) AS c", 15), window("SUM(x) AS s"), window("AVG(x) AS a", 20)]
    found += [window("AVG(x) AS a, MAX(x) AS top", 20), window("MAX(x) AS top, SUM(x) AS s", 5)]
    found += [
        window("COUNT(*) AS many", by="g, n"),
        window("AVG(y) AS a", by="g, n"),
        window("SUM(y) AS s", 30, "g, n"),
    ]
    found += [f"SELECT {call} AS v FROM m [WINDOW 1 hour]" for call in ("COUNT(*)", "AVG(y)", "SUM(y)")]
    found += [window("COUNT(*) AS n", minutes, more=" WHERE y > 10") for minutes in (10, 30)]
    found += [window("COUNT(*) AS n", more=" WHERE g = 'a'")]
    found += [
        window(f"{call}(y) AS v", minutes, "region", " JOIN nodes ON node = g")
        for call, minutes in (("AVG", 10), ("SUM", 30))
    ]
    found += [window("VARIANCE(y) AS v", 30), window("STDDEV(y) AS v, AVG(y) AS a", 30)]
    found += [window("MIN(y) AS low", minutes, "n") for minutes in (5, 30)]
    found += [run("abc", 10), run("abcd", 10), run("abcdef", 10), run("ab", 20), run("xyz", 20), run("ab", 3, "x")]
    rises = "SELECT g, COUNT(*) AS n FROM m PATTERN [{0}, {1}+] WHERE {0}.x > 1 AND {1}.x > PREV({1}.x) GROUP BY g"
    return [*found, rises.format("a", "b"), rises.format("p", "q")]


def test_what_forty_views_share() -> None:
    queries = team()
    found = program(*(view(f"v{at:02}", query) for at, query in enumerate(queries)))
    found = found.choosing({name: Choice("merge", "") for name in found.views})
    assert (len(queries), len(found.with_own(found.views).helpers), len(found.helpers)) == (40, 40, 21)
    panes = [name for name in found.helpers if "__panes_" in name]
    assert len(panes) == 16, "of 32"
    found, _ = with_covers(Graph.of(()), found)
    panes = [name for name in found.helpers if "__panes_" in name]
    assert (len(found.helpers), len(panes)) == (16, 11), "some hold what others need"
