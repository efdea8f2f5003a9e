"""What has no order or too many digits is refused with a place; what only looks so is not."""

from __future__ import annotations

import pytest

from partwise.compile import InputTable, QueryView, translate
from partwise.sql.parse import TranslationError

COLUMNS = {
    "g": "string",
    "ts": "timestamp",
    "x": "int",
    "m": "map<string,int>",
    "w": "decimal(28,4)",
    "p": "decimal(28,2)",
    "info": "struct<Size:int,id:bigint>",
    "tags": "array<string>",
}
TABLE = InputTable("s", "source", 60, COLUMNS, "ts")
DIMENSION = InputTable("d", "dimension", None, {"k": "string", "r": "string"})


def problems(query: str) -> list[tuple[str, str]]:
    """(code, the text from the place on)."""
    try:
        translate(QueryView("v", query, 60), {"s": TABLE, "d": DIMENSION})
    except TranslationError as error:
        return [(problem.code, query[problem.start :][:6]) for problem in error.problems]
    return []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT COUNT(*) AS n FROM s PATTERN [a, b+] WHERE b.m['k'] > 1", [("unsupported-type", "b.m['k")]),
        ("SELECT LAST(m['k']) AS n FROM s PATTERN [a, b+]", [("unsupported-type", "m['k']")]),
        ("SELECT COUNT(*) AS n FROM s PATTERN [a, b+] ORDER BY m", [("unsupported-type", "m")]),
        ("SELECT COUNT(*) AS n FROM s PATTERN [a, b+] WHERE m['k'] > 1 AND b.x > 1 GROUP BY m['j']", []),
        ("SELECT MAX(m['k']) AS n FROM s [WINDOW 3 minutes]", []),
        ("SELECT AVG(w) AS n FROM s PATTERN [a, b+]", [("unknown-type", "w) AS ")]),
        ("SELECT AVG(p) AS n, SUM(w) AS t FROM s PATTERN [a, b+]", []),
        ("SELECT 1 AS one FROM s [WINDOW 3 minutes]", [("no-aggregate", "1 AS o")]),
        ("SELECT 1 AS one FROM s [WINDOW 3 minutes] HAVING COUNT(*) > 1", []),
        ("SELECT g FROM s [WINDOW 3 minutes] GROUP BY g", []),
        ("SELECT percentile_cont(0.5) within group (order by x ASC) AS p FROM s [WINDOW 3 minutes]", []),
        ("SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x + 1) - 1 AS p FROM s [WINDOW 3 minutes]", []),
        ("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x DESC) AS p FROM s [WINDOW 3 minutes]", [("unsupported-aggregate", "WITHIN")]),
        ("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x, g) AS p FROM s [WINDOW 3 minutes]", [("unsupported-aggregate", "WITHIN")]),
        ("SELECT PERCENTILE_CONT(x, 0.5) AS p FROM s [WINDOW 3 minutes]", [("unsupported-aggregate", "PERCEN")]),
        ("SELECT SUM(x) WITHIN GROUP (ORDER BY x) AS p FROM s [WINDOW 3 minutes]", [("unsupported-aggregate", "WITHIN")]),
        ("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x) AS p FROM s PATTERN [a, b+]", [("unsupported-aggregate", "PERCEN")]),
        ("SELECT COUNT(*) AS n FROM s PATTERN [a, b+] WHERE b.x > PREV(PREV(b.x))", [("bad-condition", "PREV(b")]),
        ("SELECT COUNT(*) AS n FROM s PATTERN [a, b+] WHERE b.x > PREV(b.x) + PREV(b.p)", []),
        ("SELECT COUNT(*) AS n FROM s PATTERN [a, b+] PATTERN [a]", [("bad-from", "PATTER")]),
        ("SELECT COUNT(*) AS n FROM s [WINDOW 3 minutes] [WINDOW 4 minutes]", [("bad-from", "[WINDO")]),
        ("SELECT COUNT(*) AS n FROM s [WINDOW 3 minutes] JOIN d ON d.k = g AND rand() > 0.5", [("not-repeatable", "rand()")]),
        ("SELECT SUM(x) + rand() AS n FROM s [WINDOW 3 minutes]", [("not-repeatable", "rand()")]),
        ("SELECT COUNT(*) AS n FROM s PATTERN [a] WHERE a.x > unix_timestamp()", [("not-repeatable", "unix_t")]),
        ("SELECT COUNT(*) AS n FROM s PATTERN [a] WHERE a.x > unix_timestamp(a.ts) ORDER BY uuid()", [("not-repeatable", "uuid()")]),
        ("SELECT COUNT(*) AS n FROM s [WINDOW 3 minutes] WHERE x > unix_timestamp(ts)", []),
        ("SELECT COUNT(*) AS n FROM s PATTERN [a, b] WHERE a.x IS DISTINCT FROM b.x AND x IS NOT DISTINCT FROM p", []),
        ("SELECT COUNT(*) AS n FROM s PATTERN [a, b] FROM s", [("bad-query", "FROM s")]),
        ("SELECT COUNT(*) AS n FROM s [WINDOW 3 minutes] LIMIT 5", [("unsupported-clause", "LIMIT ")]),
        ("SELECT COUNT(*) AS n FROM s [WINDOW 3 minutes] WHERE g = 'it", [("bad-query", "'it")]),
        ("SELECT COUNT(*) AS n FROM s [WINDOW 3 minutes] WHERE (x > (1)", [("bad-query", "(x > (")]),
        ("SELECT COUNT(*) AS n FROM s [WINDOW 3 minutes] WHERE x > 1) OR (x", [("bad-query", ") OR (")]),
        ("SELECT COUNT(*) AS n FROM s PATTERN [a, (b] WHERE a.x > 1", [("bad-query", "(b] WH")]),
        ("SELECT COUNT(*) AS n FROM s PATTERN [a, b] WHERE a.x > 1 AND", [("bad-expression", "")]),
        ("SELECT COUNT(*) AS n FROM s PATTERN [a, b] WHERE AND a.x > 1", [("bad-expression", "AND a.")]),
        ("SELECT COUNT(*) AS n FROM s [WINDOW 3 minutes] HAVING MAX(xx) > 5", [("unknown-column", "xx)")]),
        ("SELECT COUNT(*) AS n FROM s PATTERN [a] HAVING MAX(xx) > 5", [("unknown-column", "xx)")]),
        ("SELECT COUNT(*) AS n FROM s [WINDOW 3 minutes] HAVING n > 5 AND MAX(x) > 1", []),
        ("SELECT COUNT(*) AS n FROM s [WINDOW 3 minutes] JOIN d ON d.kk = g AND gg = 1", [("unknown-column", "d.kk"), ("unknown-column", "gg")]),
        ("SELECT COUNT(*) AS n FROM s [WINDOW 3 minutes] JOIN d ON d.k = LEFT(g, 2) LEFT JOIN d e ON e.r = d.r AND e.k = s.g", []),
        ("SELECT COUNT(*) AS n FROM s [WINDOW 3 minutes] JOIN d ON d.k IN (SELECT 1)", [("unsupported-expression", "d.k")]),
        ("SELECT COUNT(*) AS n FROM s [WINDOW 3 minutes] WHERE x > PREV(x)", [("unsupported-expression", "PREV")]),
        ("SELECT COUNT(*) AS n FROM s [WINDOW 3 minutes] GROUP BY PREV(x)", [("unsupported-expression", "PREV")]),
        ("SELECT COUNT(*) AS n FROM s PATTERN [a] ORDER BY PREV(x)", [("unsupported-expression", "PREV")]),
        ("SELECT COUNT(*) AS n FROM s PATTERN [a] ORDER BY a.x", [("unsupported-clause", "a.x")]),
        ("SELECT COUNT(*) AS n FROM s PATTERN [a] ORDER BY s.x ASC", []),
        ("SELECT COUNT(DISTINCT *) AS n FROM s [WINDOW 3 minutes]", [("unsupported-aggregate", "*)")]),
        ("SELECT SUM(x) IGNORE NULLS AS n FROM s [WINDOW 3 minutes]", [("unsupported-aggregate", "SUM")]),
        ("SELECT FIRST(x IGNORE NULLS) AS n FROM s PATTERN [a]", [("unsupported-aggregate", "FIRST")]),
        ("SELECT COUNT(*) AS n FROM s PATTERN [a, b+] WHERE a.x > c.x", [("bad-condition", "c.x")]),
        ("SELECT SUM(y.x) AS n FROM s PATTERN [a, b+] WHERE z.x > 5", [("bad-condition", "y.x"), ("bad-condition", "z.x")]),
        ("SELECT COUNT(*) AS n FROM s [WINDOW 3 minutes] WHERE x > 3 foo", [("bad-expression", "foo")]),
        ("SELECT COUNT(*) AS n FROM s [WINDOW 3 minutes] WHERE exists(array(x), t -> t = 3)", []),
        ("SELECT COUNT(*) AS n FROM s [WINDOW 3 minutes] WHERE EXISTS (SELECT 1 FROM d)", [("unsupported-expression", "EXISTS")]),
        ("SELECT BOOL_OR(x > 1) AS n, ANY(x > 1) AS m FROM s [WINDOW 3 minutes]", []),
        ("SELECT part_timestamp, COUNT(*) AS n FROM s [WINDOW 3 minutes] GROUP BY 1", [("reserved-name", "part_t")]),
        ("SELECT g AS part, COUNT(*) AS n FROM s PATTERN [a] GROUP BY g", [("reserved-name", "g AS p")]),
    ],
)  # fmt: skip
def test_refused(query: str, expected: list[tuple[str, str]]) -> None:
    found = problems(query)
    assert [(code, text[: len(start)]) for (code, text), (_, start) in zip(found, expected, strict=True)] == expected


def test_several_percentiles_at_once_are_an_array() -> None:
    query = "SELECT APPROX_PERCENTILE(x, array(0.1, 0.9)) AS ends, APPROX_PERCENTILE(x, 0.5) AS middle FROM s [WINDOW 3 minutes]"
    update = translate(QueryView("v", query, 60), {"s": TABLE}).views[-1].update
    assert ", array(0.1, 0.9)) AS ARRAY<INT>)" in update
    assert ", 0.5) AS INT)" in update


NUMBERS = (
    "round(w, 2)", "floor(w)", "ceil(x)", "power(x, 2)", "size(tags)", "length(g)", "unix_timestamp(ts)", "hour(ts)", "info.size",
    "abs(info.id)", "year(ts) * 12 + month(ts)",
)  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_whose_type_is_known(number: str) -> None:
    """Over a pattern they can be summed up, over a window they need not be recomputed."""
    assert problems(f"SELECT SUM({number}) AS n FROM s PATTERN [a, b+] WHERE b.x > 1") == []
    window = QueryView("v", f"SELECT SUM({number}) AS n FROM s [WINDOW 3 minutes]", 60)
    assert "merge" in {variant.strategy for variant in translate(window, {"s": TABLE}).variants}


@pytest.mark.parametrize(("accuracy", "size"), [("", ""), (", 1", ", 8"), (", 100", ", 415"), (", 10000", ", 65535")])
def test_accuracy_is_the_size_of_the_sketch(accuracy: str, size: str) -> None:
    """Its error in rank is 2.296 / size^0.9021."""
    query = f"SELECT APPROX_PERCENTILE(x, 0.5{accuracy}) AS middle FROM s [WINDOW 3 minutes]"
    panes, view = translate(QueryView("v", query, 60, strategy="merge"), {"s": TABLE}).views
    assert f"kll_sketch_agg_bigint(CAST(x AS BIGINT){size})" in panes.update
    assert f"kll_merge_agg_bigint(sketch_x{size})" in view.update
    assert not size or 2.296 / int(size[2:]) ** 0.9021 < 1.05 / int(accuracy[2:])


@pytest.mark.parametrize("accuracy", ["0", "10001", "x", "0.01", "-5"])
def test_an_accuracy_that_no_sketch_has(accuracy: str) -> None:
    query = f"SELECT APPROX_PERCENTILE(x, 0.5, {accuracy}) AS middle FROM s [WINDOW 3 minutes]"
    with pytest.raises(TranslationError, match=f"a whole number from 1 to 10000, not {accuracy}"):
        translate(QueryView("v", query, 60), {"s": TABLE})


@pytest.mark.parametrize("where", ["WHERE x > 1 AND", "JOIN d ON", "JOIN d ON d.k =", "WHERE g = 'it", "WHERE set +"])
def test_no_words_from_inside(where: str) -> None:
    with pytest.raises(TranslationError) as caught:
        translate(
            QueryView("v", f"SELECT COUNT(*) AS n FROM s [WINDOW 3 minutes] {where}", 60), {"s": TABLE, "d": DIMENSION}
        )
    for problem in caught.value.problems:
        assert not any(word in problem.message for word in ("sqlglot", "<class", "Error", "''")), problem.message
