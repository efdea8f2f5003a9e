"""Columns: unknown ones are found where that is certain, and right queries are never blamed."""

import pytest

from partwise.sql.columns import named_in, outputs, unknown
from partwise.sql.references import analyse

TABLES = {
    "m": ("event_time", "src", "dest", "loss", "arr", "place"),
    "n": ("node", "region"),
    "open": None,
}

RIGHT = [
    "SELECT src, m.dest, M.Loss FROM m[j]",
    "SELECT x.src, part, x.part_timestamp FROM m[j] x",
    "SELECT src AS s, SUM(loss) AS total FROM m[j] GROUP BY s HAVING total > 5 ORDER BY total",
    "SELECT loss * 2 AS twice, twice + 1 AS more FROM m[j]",
    "SELECT anything FROM open[j]",
    "SELECT anything, src FROM open[j] o JOIN m[j] ON m.src = o.whatever",
    "SELECT place.lat, m.place.lat, arr[0].x FROM m[j]",
    "SELECT transform(arr, x -> x + 1) AS t, filter(arr, e -> e.loss > 5) AS f FROM m[j]",
    "SELECT q FROM m[j] LATERAL VIEW explode(arr) t AS q",
    "SELECT t.q, src FROM m[j] LATERAL VIEW OUTER posexplode(arr) t AS p, q",
    "SELECT src FROM m[j] WHERE EXISTS (SELECT 1 FROM n WHERE node = src AND n.region = m.dest)",
    "SELECT src, (SELECT MAX(region) FROM n WHERE n.node = a.src) AS r FROM m[j] a",
    "WITH c AS (SELECT src AS s FROM m[j]) SELECT s, c.s FROM c",
    "WITH c(a, b) AS (SELECT src, loss FROM m[j]) SELECT a, c.b FROM c",
    "WITH c AS (SELECT * FROM m[j]), d AS (SELECT src, loss FROM c) SELECT d.src, c.dest FROM d JOIN c ON c.src = d.src",
    "SELECT * FROM m[j] PIVOT (SUM(loss) FOR src IN ('a' AS x, 'b' AS y))",
    "SELECT x, y FROM m[j] PIVOT (SUM(loss) FOR src IN ('a' AS x, 'b' AS y))",
    "SELECT v.a, b FROM (VALUES (1, 2)) AS v(a, b)",
    "SELECT a, b FROM m[j] AS x(a, b, c, d, e, f)",
    "SELECT id FROM range(10)",
    "SELECT r.id, src FROM m[j] JOIN range(10) r ON r.id = loss",
    "SELECT src FROM m[j] JOIN n USING (node)",
    "SELECT src FROM m[j] UNION SELECT node FROM n ORDER BY src",
    "SELECT src, ROW_NUMBER() OVER (PARTITION BY dest ORDER BY loss) AS r FROM m[j] QUALIFY r = 1",
    "SELECT src, SUM(loss) OVER w AS s FROM m[j] WINDOW w AS (PARTITION BY src)",
    "SELECT l.top, m.src FROM m[j], LATERAL (SELECT MAX(loss) AS top FROM m[j-1] x WHERE x.src = m.src) l",
    "SELECT INTERVAL 5 minutes AS i, DATE '2026-10-03' AS d, CURRENT_CATALOG FROM m[j]",
    "SELECT date_trunc('MINUTE', event_time) AS t, date_add(event_time, 1) AS u, extract(HOUR FROM event_time) AS h FROM m[j]",
    "SELECT timestampdiff(MINUTE, event_time, event_time) AS d FROM m[j]",
    "SELECT CAST(loss AS decimal(10, 2)) AS l, try_cast(src AS int) AS i FROM m[j]",
    "SELECT struct(src AS a, loss AS b).a AS x, named_struct('a', 1).a AS y FROM m[j]",
    "SELECT * EXCEPT (loss) FROM m[j]",
    "SELECT s.dest FROM (SELECT * EXCEPT (loss) FROM m[j]) s",
    "SELECT src, COUNT(*) AS n FROM m[j] GROUP BY ALL",
    "SELECT src, dest, SUM(loss) AS s FROM m[j] GROUP BY GROUPING SETS ((src), (dest))",
    "SELECT col FROM (SELECT explode(arr) FROM m[j])",
    "SELECT a.src FROM (m[j] a JOIN n ON n.node = a.src)",
    "SELECT MAX(loss) FILTER (WHERE src = 'a') AS x FROM m[j]",
    "SELECT max_by(src, loss) AS s FROM m[j]",
    "SELECT m.* FROM m[j] LEFT SEMI JOIN n ON n.node = m.src",
    "SELECT src FROM m[j] WHERE loss > (SELECT MAX(loss) FROM m[j-1])",
    "FROM m[j] SELECT src",
    "SELECT inline(arr) FROM m[j]",
    "SELECT stack(2, src, dest) AS (x) FROM m[j]",
    "SELECT map('a', 1)['a'] AS x, map_keys(map(src, loss)) AS k FROM m[j]",
    "SELECT o.a, p.b FROM open[j] o, (SELECT src AS b FROM m[j]) p WHERE c = 5",
    "SELECT CASE WHEN loss > 5 THEN 'high' ELSE src END AS x FROM m[j]",
]


def columns(name: str) -> tuple[str, ...] | None:
    return TABLES.get(name)


@pytest.mark.parametrize("sql", RIGHT)
def test_right_queries_are_not_blamed(sql: str) -> None:
    analysis = analyse(sql)
    assert not analysis.found.problems
    assert analysis.tree is not None
    assert unknown(analysis.tree, columns) == ()


@pytest.mark.parametrize(
    "sql, wrong",
    [
        ("SELECT lost FROM m[j]", ["lost"]),
        ("SELECT m.lost FROM m[j]", ["lost"]),
        ("SELECT x.lost FROM m[j] x JOIN open[j] o ON o.a = x.src", ["lost"]),
        ("SELECT src FROM m[j] x WHERE y.src = 'a'", ["y"]),
        ("SELECT src FROM m[j] WHERE losss > 1 GROUP BY scr", ["losss", "scr"]),
        ("SELECT a.total FROM (SELECT src, SUM(loss) AS sum FROM m[j] GROUP BY src) a", ["total"]),
        ("WITH c AS (SELECT src FROM m[j]) SELECT c.dest FROM c", ["dest"]),
        ("WITH c AS (SELECT * FROM m[j]) SELECT wrong FROM c", ["wrong"]),
        ("SELECT src FROM m[j] WHERE EXISTS (SELECT 1 FROM n WHERE nod = src)", ["nod"]),
        ("SELECT src FROM m[j] UNION SELECT nodes FROM n", ["nodes"]),
        ("SELECT m.src FROM m[j] JOIN n ON n.name = m.src", ["name"]),
    ],
)
def test_unknown_columns_are_found_at_their_place(sql: str, wrong: list[str]) -> None:
    tree = analyse(sql).tree
    assert tree is not None
    assert [sql[p.start : p.end] for p in unknown(tree, columns)] == wrong


@pytest.mark.parametrize(
    "sql, names",
    [
        ("SELECT src, loss AS l, SUM(loss) FROM m[j]", ("src", "l", None)),
        ("SELECT * FROM n", ("node", "region")),
        ("SELECT n.*, m.src FROM n JOIN m[j] ON TRUE", ("node", "region", "src")),
        ("SELECT src FROM m[j] UNION ALL SELECT node FROM n", ("src",)),
        ("WITH c AS (SELECT node AS x FROM n) SELECT * FROM c", ("x",)),
        ("SELECT * FROM open[j]", None),
        ("SELECT explode(arr) FROM m[j]", None),
        ("SELECT * FROM n JOIN m[j] USING (node)", None),
        ("SELECT * EXCEPT (node) FROM n", None),
    ],
)
def test_columns_of_results(sql: str, names: tuple[str | None, ...] | None) -> None:
    tree = analyse(sql).tree
    assert tree is not None
    found = outputs(tree, columns)
    assert (None if found is None else tuple(o.name for o in found)) == names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT amount, COUNT(*) FROM m GROUP BY amount", ["amount"]),
        ("SELECT Amount * 2, 3*other FROM m", ["amount", "other"]),
        ("SELECT (1)*other, count ( * ) FROM m", ["other"]),
        ("SELECT x.`weird name` FROM m x", ["Weird Name"]),
        ("SELECT * FROM m", ALL := ["amount", "other", "Weird Name"]),
        ("SELECT DISTINCT * FROM m", ALL),
        ("SELECT m.* FROM m", ALL),
        ("SELECT count, * FROM m", ALL),
        ("SELECT mycount(*) FROM m", ALL),
        ("SELECT struct(*) FROM m", ALL),
        ("SELECT -- these\n * FROM m", ALL),
        ("SELECT /* these */ * FROM m", ALL),
        ("SELECT '--', * FROM m", ALL),
        ("SELECT k FROM m NATURAL JOIN n", ALL),
        ("FROM m |> WHERE k > 1", ALL),
        ("SELECT k FROM (TABLE m)", ALL),
        ("SELECT IDENTIFIER('am' || 'ount') FROM m", ALL),
    ],
)
def test_columns_that_a_text_may_use(text: str, expected: list[str]) -> None:
    """A column too many is read for nothing, one that is missing would be NULL."""
    assert named_in(text, ["amount", "other", "Weird Name"]) == expected
