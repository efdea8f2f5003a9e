"""Which tables a text reads, and whether it names the columns of parts: comments and strings say nothing of it."""

import pytest

from partwise.sql import find
from partwise.sql.tables import tables_read


@pytest.mark.parametrize(
    "text, expected",
    [
        ("SELECT a FROM m PATTERN [a, b+] WHERE a.x > 1", ["m"]),
        ("SELECT a FROM m [WINDOW 5 minutes] x JOIN d ON d.k = x.k", ["m", "d"]),
        ("SELECT a FROM M x [WINDOW 5 minutes], `n` [WINDOW 1 day] WHERE a IN (1, v)", ["m", "n"]),
        ("SELECT a -- FROM v\n/* JOIN v */ FROM m [WINDOW 5 minutes] WHERE a = 'FROM v' OR a = \"JOIN v\"", ["m"]),
        ("SELECT EXTRACT(hour FROM v), a IS DISTINCT FROM v, TRIM(BOTH 'x' FROM v) FROM m", ["m"]),
        ("SELECT a IS NOT DISTINCT FROM v FROM m WHERE b IS DISTINCT FROM v GROUP BY a, v", ["m"]),
        ("SELECT a.from, a.join FROM m a WHERE a.join > v", ["m"]),
        ("SELECT a FROM (SELECT b FROM m [WINDOW 1 day] UNION ALL SELECT c FROM n) x, o", ["m", "n", "o"]),
        ("WITH w AS (SELECT 1 FROM m) SELECT a FROM w JOIN n USING (v)", ["m", "n"]),
        ("SELECT a FROM m [ROWS 3 PER g, h WITHIN 1 day] WHERE NOT EXISTS (SELECT 1 FROM n WHERE n.x = v)", ["m", "n"]),
        ("SELECT a FROM range(3) r, LATERAL (SELECT 1 FROM m) x", ["m"]),
        ("SELECT a FROM", []),
        ("'never closed", []),
        ("", []),
    ],
)
def test_tables_are_found_by_tokens(text: str, expected: list[str]) -> None:
    assert list(tables_read(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT part FROM t[j]",
        "SELECT t.`PART` FROM t[j]",
        "SELECT * EXCEPT (part_timestamp) FROM t[j]",
        "SELECT a.x FROM t[j] a JOIN t[j-1] b USING (part)",
        "SELECT x, row_number() OVER (PARTITION BY part ORDER BY x) AS n FROM t[j-1..j]",
        "SELECT max(struct(x, part)).x AS x FROM t[j-1..j]",
        "SELECT transform(array(1), y -> y + part) AS x FROM t[j]",
        "SELECT x FROM (SELECT x, part FROM t[j]) s",
    ],
)
def test_a_query_that_names_a_column_of_parts_sees_them(text: str) -> None:
    assert find(text).names_part


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t[j]",
        "-- this part\nSELECT DISTINCT * FROM t[j-1..j]",
        "SELECT DISTINCT * /* part */ FROM t[j-1..j] WHERE x <> 'part'",
        "SELECT /*+ REPARTITION(part) */ DISTINCT * FROM t[j-1..j]",
        "SELECT DISTINCT part.* FROM t[j-1..j] part",
        "SELECT DISTINCT part.x FROM part[j-1..j]",
        "WITH part AS (SELECT x FROM t[j]) SELECT * FROM part",
        'SELECT DISTINCT *, "part_timestamp" AS s FROM t[j-1..j]',
    ],
)
def test_a_word_elsewhere_is_no_column(text: str) -> None:
    assert not find(text).problems
    assert not find(text).names_part


def test_where_a_table_stands_is_no_comment_or_string() -> None:
    text = "-- m of last week\nSELECT 'm' AS m FROM /* m */ M, n"
    assert tables_read(text) == {"m": text.index("M, n"), "n": text.index("n", text.index("M, n"))}
