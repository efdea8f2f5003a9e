"""One text for all the ways to write the same query; functions that give another value each time."""

import pytest

from partwise.sql import canonical
from partwise.sql.determinism import not_repeatable
from partwise.sql.references import analyse

QUERY = "SELECT m.src, SUM(m.loss) AS total FROM measurements[60*j..60*j+59] m WHERE m.src <> 'a b' GROUP BY m.src"


@pytest.mark.parametrize(
    "same",
    [
        "select m.src,sum( m.loss )as total\nfrom measurements[60*j..60*j+59] m where m.src<>'a b' group by m.src",
        "SELECT m.src, -- the node\n SUM(m.loss) AS total FROM measurements[60*j..60*j+59] m /* hm */ WHERE m.src <> 'a b' GROUP BY m.src",
        QUERY.replace("60*j..60*j+59", " j*60 .. 59 + 60*j "),
        QUERY.replace("measurements", "Measurements"),
        QUERY.replace("SELECT", "SELECT /*+ BROADCAST(m) */"),
        QUERY.replace("m.src <>", "m.`src` <>"),
        QUERY.replace("'a b'", '"a b"'),
    ],
)
def test_same_meaning_same_text(same: str) -> None:
    assert canonical(same) == canonical(QUERY)


@pytest.mark.parametrize(
    "other",
    [
        QUERY.replace("60*j+59", "60*j+58"),
        QUERY.replace("'a b'", "'a  b'"),
        QUERY.replace("'a b'", "'A B'"),
        QUERY.replace("'a b'", "`a b`"),
        QUERY.replace("SUM", "MAX"),
        QUERY.replace("AS total", "AS Total"),
        QUERY.replace("<>", "="),
        QUERY.replace("m.loss", "-m.loss"),
        QUERY + " LIMIT 5",
    ],
)
def test_other_meaning_other_text(other: str) -> None:
    assert canonical(other) != canonical(QUERY)


@pytest.mark.parametrize(
    "sql, found",
    [
        ("SELECT now() AS n FROM m[j]", ["now"]),
        ("SELECT CURRENT_DATE AS n, current_timestamp AS t FROM m[j]", ["CURRENT_DATE", "current_timestamp"]),
        ("SELECT rand(5) + randn() AS n FROM m[j]", ["rand", "randn"]),
        ("SELECT unix_timestamp() AS n FROM m[j]", ["unix_timestamp"]),
        ("SELECT a FROM m[j] TABLESAMPLE (5 ROWS)", ["TABLESAMPLE"]),
        ("SELECT monotonically_increasing_id() AS i, input_file_name() AS f FROM m[j]", ["monotonically_increasing_id", "input_file_name"]),
        ("SELECT unix_timestamp(t) AS n, 'now()' AS s, m.now, uuid, user FROM m[j] -- rand()", []),
        ("SELECT a AS current_date, m.current_timestamp FROM m[j]", []),
        ("SELECT `rand`, version FROM m[j]", []),
    ],
)  # fmt: skip
def test_functions_that_give_another_value(sql: str, found: list[str]) -> None:
    assert [sql[p.start : p.end] for p in not_repeatable(analyse(sql).tokens)] == found
