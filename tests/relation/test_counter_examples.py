"""Queries for which the obvious rule is wrong: what the right rule says, and that the wrong one would be noticed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from sqlglot import exp

from partwise.relation import Known, Tree, build, carried, delta, joined, key
from partwise.relation.restriction import restriction
from tests.relation import test_random as oracle
from tests.relation.duck import Duck, Query
from tests.relation.test_random import Case

_TABLES = {
    "m": Known({"k": "bigint", "v": "bigint", "s": "string", "x": "double", "at": "timestamp"}),
    "n": Known({"k": "bigint", "v": "bigint", "s": "string"}),
    "d": Known({"k": "bigint", "r": "string"}, ("k",)),
    "t": Known({"k": "bigint", "v": "bigint"}, ("k",)),  # a view with a key
}


def tree(sql: str) -> Tree:
    return build(sql, _TABLES.get)


def module(name: str) -> Any:
    return sys.modules[f"partwise.relation.{name}"]


# -- what references carry


@pytest.mark.parametrize(
    "sql, expected",
    [
        pytest.param(
            "SELECT a.k AS k, b.k AS other FROM m[j] a LEFT JOIN n[j] b ON a.k = b.k",
            {0: {"k": "`k`"}, 1: {"k": "`k`"}},
            id="r2: not the right column of a LEFT JOIN",
        ),
        pytest.param(
            "SELECT a.k AS k FROM m[j] a FULL JOIN n[j] b ON a.k = b.k",
            {0: {}, 1: {}},
            id="r3: one side of a FULL JOIN",
        ),
        pytest.param(
            "SELECT COALESCE(b.k, a.k) AS k FROM m[j] a FULL JOIN n[j] b ON a.k = b.k",
            {0: {"k": "`k`"}, 1: {"k": "`k`"}},
            id="r3: both sides of a FULL JOIN",
        ),
        pytest.param(
            "SELECT COALESCE(a.v, b.v) AS v FROM m[j] a FULL JOIN n[j] b ON a.k = b.k",
            {0: {}, 1: {}},
            id="r3: columns that ON does not compare",
        ),
        pytest.param(
            "SELECT k, v, SUM(v) OVER (PARTITION BY k) AS a, COUNT(*) OVER (PARTITION BY k, v) AS b FROM m[j]",
            {0: {"k": "`k`"}},
            id="r4: only what every window is partitioned by",
        ),
        pytest.param("SELECT k, RANK() OVER (ORDER BY v) AS r FROM m[j]", {0: {}}, id="r4: no PARTITION BY"),
        pytest.param(
            "SELECT k FROM m[j] WHERE k NOT IN (SELECT k FROM n[j])", {0: {"k": "`k`"}, 1: {}}, id="r5: NOT IN"
        ),
        pytest.param(
            "SELECT k FROM m[j] a WHERE NOT EXISTS (SELECT 1 FROM n[j] b WHERE b.k = a.k)",
            {0: {"k": "`k`"}, 1: {"k": "`k`"}},
            id="r5: NOT EXISTS",
        ),
        pytest.param(
            "WITH w AS (SELECT k, v FROM m[j]) SELECT a.k AS k FROM w a JOIN w b ON a.v = b.k",
            {0: {}},
            id="r6: WITH used twice, for two columns",
        ),
        pytest.param("SELECT k FROM m[j] ORDER BY k LIMIT 3", {0: {}}, id="r7: LIMIT"),
        pytest.param("SELECT k, COUNT(*) AS c FROM m[j] GROUP BY ROLLUP (k)", {0: {}}, id="r8: ROLLUP"),
        pytest.param("SELECT COUNT(*) AS c FROM m[j]", {0: {}}, id="r8: one row for all"),
        pytest.param(
            "SELECT a.k AS k FROM m[j] a JOIN n[j] b ON a.k = b.s", {0: {"k": "`k`"}, 1: {}}, id="r9: 1 = '01'"
        ),
        pytest.param("SELECT k FROM m[j] UNION ALL SELECT s FROM n[j]", {0: {}, 1: {}}, id="r9: UNION converts"),
        pytest.param("SELECT x, COUNT(*) AS c FROM m[j] GROUP BY x", {0: {}}, id="r9: 0.0 = -0.0"),
        pytest.param(
            "SELECT 10 / v AS q, COUNT(*) AS c FROM m[j] WHERE v <> 0 GROUP BY 10 / v", {0: {}}, id="r10: may fail"
        ),
        pytest.param(
            "SELECT CAST(s AS BIGINT) AS q, COUNT(*) AS c FROM m[j] GROUP BY ALL",
            {0: {}},
            id="r10: text may not be a number",
        ),
        pytest.param(
            "SELECT lower(s) AS s, date_trunc('hour', at) AS h, COUNT(*) AS c FROM m[j] GROUP BY 1, 2",
            {0: {"s": "lower(`s`)", "h": "date_trunc('HOUR', `at`)"}},
            id="r10: total functions",
        ),
        pytest.param(
            "SELECT n.r AS r, COUNT(*) AS c FROM m[j] a JOIN d n ON n.k = a.k GROUP BY n.r",
            {0: {}, 1: {"r": "`r`"}},
            id="a column of the dimension",
        ),
        pytest.param(
            "SELECT a.k AS k, (SELECT MAX(b.v) FROM n[j] b WHERE b.k = a.k) AS v FROM m[j] a",
            {0: {}, 1: {"k": "`k`"}},
            id="a subquery in an expression",
        ),
        pytest.param("SELECT k, explode(array(v)) AS e FROM m[j]", {0: {}}, id="a function that makes rows"),
        pytest.param("SELECT k FROM unknown[j]", {0: {}}, id="columns that are not known"),
    ],
)
def test_carried(sql: str, expected: dict[int, dict[str, str]]) -> None:
    assert carried(tree(sql)) == expected


# -- keys


@pytest.mark.parametrize(
    "sql, expected",
    [
        pytest.param("SELECT k FROM t[j] UNION ALL SELECT k FROM t[j-1]", None, id="k1: UNION ALL"),
        pytest.param("SELECT k FROM t[j] UNION SELECT k FROM t[j-1]", ("k",), id="k1: UNION"),
        pytest.param("SELECT k, v FROM t[j]", ("k",), id="k2: one part"),
        pytest.param("SELECT k, v FROM t[j-1..j]", None, id="k2: several parts"),
        pytest.param("SELECT k, part AS p, v FROM t[j-1..j]", ("k", "p"), id="k2: several parts, with the part"),
        pytest.param(
            "SELECT COALESCE(a.k, b.k) AS k FROM t[j] a FULL JOIN t[j-1] b ON a.k = b.k",
            None,
            id="k3: two NULL rows by =",
        ),
        pytest.param(
            "SELECT COALESCE(b.k, a.k) AS k FROM t[j] a FULL JOIN t[j-1] b ON a.k <=> b.k", ("k",), id="k3: by <=>"
        ),
        pytest.param(
            "SELECT COALESCE(a.k, b.k) AS k FROM t[j] a FULL JOIN t[j-1] b ON a.k <=> b.k AND a.v > 1",
            None,
            id="k3: by <=> and something else",
        ),
        pytest.param(
            "SELECT a.k AS k, d.r AS r FROM t[j] a LEFT JOIN d ON d.k = a.v", ("k",), id="the other key is compared"
        ),
        pytest.param("SELECT a.k AS k, b.v AS v FROM t[j] a LEFT JOIN m[j] b ON b.k = a.k", None, id="it is not"),
        pytest.param("SELECT a.k AS x, b.k AS y FROM t[j] a, t[j-1] b WHERE a.v = b.v", ("x", "y"), id="both keys"),
        pytest.param("SELECT d.k AS k FROM t[j] a, d WHERE d.k = a.k", ("k",), id="equal columns are one"),
        pytest.param("SELECT k, v, COUNT(*) AS c FROM m[j] WHERE v = 3 GROUP BY k, v", ("k", "v"), id="group"),
        pytest.param("SELECT v FROM t[j] WHERE k = 3", (), id="a constant"),
        pytest.param("SELECT COUNT(*) AS c FROM m[j]", (), id="one row"),
        pytest.param(
            "SELECT k, v FROM m[j] QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) = 1", ("k",), id="first"
        ),
        pytest.param("SELECT k, COUNT(*) AS c FROM m[j] GROUP BY CUBE (k)", None, id="CUBE"),
    ],
)
def test_key(sql: str, expected: tuple[str, ...] | None) -> None:
    assert key(tree(sql)) == expected


# -- merging


@pytest.mark.parametrize(
    "sql, operator",
    [
        pytest.param("SELECT a.k FROM m[j] a LEFT JOIN d ON d.k = a.k", "left join", id="d6"),
        pytest.param("SELECT a.k FROM m[j] a LEFT SEMI JOIN d ON d.k = a.k", "semi join", id="d6: semi"),
        pytest.param("SELECT DISTINCT k FROM m[j]", "distinct", id="d7"),
        pytest.param("SELECT k FROM m[j] UNION SELECT k FROM m[j-1]", "union", id="d7: UNION"),
        pytest.param("SELECT k, SUM(x) AS s FROM m[j] GROUP BY k", "group", id="d8: doubles"),
        pytest.param("SELECT k, COUNT(DISTINCT v) AS s FROM m[j] GROUP BY k", "group", id="COUNT DISTINCT"),
        pytest.param(
            "SELECT k, SUM(c) AS s FROM (SELECT k, v, COUNT(*) AS c FROM m[j] GROUP BY k, v) GROUP BY k",
            "group",
            id="twice",
        ),
        pytest.param("SELECT COUNT(*) AS c FROM m[j]", "group", id="one row"),
        pytest.param(
            "WITH w AS (SELECT k FROM m[j]) SELECT a.k FROM w a JOIN w b ON a.k = b.k", "scan", id="WITH twice"
        ),
        pytest.param("SELECT k FROM m[j] WHERE v > (SELECT MAX(v) FROM n[j])", "filter", id="subquery"),
    ],
)
def test_not_merged(sql: str, operator: str) -> None:
    found = delta(tree(sql)).obstacle
    assert found is not None
    assert found.operator == operator
    assert found.why


@pytest.mark.parametrize(
    "sql, published, extremes",
    [
        pytest.param("SELECT k, COUNT(*) AS n, SUM(v) AS s, COUNT(v) AS c FROM m[j] GROUP BY k", True, False, id="all"),
        pytest.param("SELECT k, SUM(v) AS s, COUNT(v) AS c FROM m[j] GROUP BY k", False, False, id="no COUNT(*)"),
        pytest.param("SELECT k, COUNT(*) AS n, SUM(v) AS s FROM m[j] GROUP BY k", False, False, id="SUM without COUNT"),
        pytest.param("SELECT k, COUNT(*) AS n FROM m[j] GROUP BY k HAVING COUNT(*) > 1", False, False, id="d3: HAVING"),
        pytest.param("SELECT COUNT(*) AS n FROM m[j] GROUP BY k", False, False, id="a group that is not shown"),
        pytest.param("SELECT k, COUNT(*) AS n, MAX(v) AS m FROM m[j] GROUP BY k", True, True, id="d2: MAX"),
    ],
)
def test_state(sql: str, published: bool, extremes: bool) -> None:
    found = delta(tree(sql))
    assert (found.possible, found.published, found.extremes) == (True, published, extremes)


def test_later_occurrences_read_what_they_held_before() -> None:
    """d1: both reading the new rows counts a pair of two new rows twice."""
    query, duck = Query("SELECT a.k AS k FROM m[j] a JOIN n[j] b ON a.k = b.k"), Duck()
    old, new, late = [(1, 1)], [(1, 1), (1, 2)], [(1, 2)]
    start = duck.run(query, {0: old, 1: old}).total()
    right = duck.run(query, {0: late, 1: old}) + duck.run(query, {0: new, 1: late})
    wrong = duck.run(query, {0: late, 1: new}) + duck.run(query, {0: new, 1: late})
    assert duck.run(query, {0: new, 1: new}).total() == start + right.total() == 4
    assert start + wrong.total() == 5


# -- several references changed at once


def test_sets_of_different_columns_filter_only_what_carries_one_of_each() -> None:
    found = carried(tree("SELECT a.k AS k, b.v AS v FROM m[j] a JOIN n[j] b ON a.s = b.s JOIN d ON d.k = a.k"))
    assert found == {0: {"k": "`k`"}, 1: {"v": "`v`"}, 2: {"k": "`k`"}}
    both = restriction(found, [0, 1])
    assert both is not None
    assert [each.columns for each in both.sets] == [("k",), ("v",)]
    assert both.filters == {}
    one = restriction(found, [0])
    assert one is not None
    assert sorted(one.filters) == [0, 2]
    assert restriction(carried(tree("SELECT k FROM m[j] LIMIT 1")), [0]) is None


# -- wrong rules are noticed

HARD = {
    "r2": "SELECT b.k AS k, a.v AS v FROM m[j-1..j] a LEFT JOIN n[j-1..j] b ON a.k = b.k",
    "r3": "SELECT a.k AS k, b.v AS v FROM m[j-1..j] a FULL JOIN n[j-1..j] b ON a.k = b.k",
    "r4": "SELECT k, v, COUNT(*) OVER (PARTITION BY v) AS c FROM m[j-2..j]",
    "r5": "SELECT k, v FROM m[j-2..j] WHERE k NOT IN (SELECT v FROM n[j])",
    "r6": "WITH w AS (SELECT k, v FROM m[j-2..j]) SELECT a.k AS k, b.v AS v FROM w a JOIN w b ON a.v = b.k",
    "r7": "SELECT k, v FROM m[j-2..j] ORDER BY 1, 2 LIMIT 2",
    "r8": "SELECT k, COUNT(*) AS c FROM m[j-2..j] GROUP BY ROLLUP (k)",
    "k1": "SELECT k, v FROM m[j] UNION ALL SELECT k, v FROM m[j-1]",
    "k2": "SELECT k, v FROM m[j-2..j]",
    "k3": "SELECT COALESCE(a.k, b.k) AS k, a.v AS v FROM m[j] a FULL JOIN n[j] b ON a.k = b.k",
    "d1": "SELECT a.k AS k, b.v AS v FROM m[j] a JOIN m[j] b ON a.k = b.k",
    "d6": "SELECT a.k AS k, b.v AS v FROM m[j-1..j] a LEFT JOIN n[j-1..j] b ON a.k = b.k",
    "d7": "SELECT DISTINCT k, v FROM m[j-2..j]",
}
FAULTS: dict[str, tuple[str, Callable[[pytest.MonkeyPatch], None]]] = {}


def wrong(name: str, tries: int) -> bool:
    """Whether any rule gives a wrong result for this query, over random rows and changes."""
    duck = Duck()
    cases = (Case(seed, HARD[name]) for seed in range(tries))
    return any(check(duck, case) is False for case in cases for check, _ in oracle.RULES.values())


@pytest.mark.parametrize("name", HARD)
def test_right_rules(name: str) -> None:
    assert not wrong(name, 40)


def fault(name: str) -> Callable[[Callable[[pytest.MonkeyPatch], None]], None]:
    def add(apply: Callable[[pytest.MonkeyPatch], None]) -> None:
        FAULTS[apply.__name__] = name, apply

    return add


@fault("r4")
def in_does_not_find_null(patch: pytest.MonkeyPatch) -> None:
    """r1."""
    patch.setitem(HARD, "r4", "SELECT k, COUNT(*) AS c FROM m[j-2..j] GROUP BY k")
    plain = lambda pairs: " AND ".join(f"({e}) = {'NULL' if v is None else v}" for e, v in pairs)  # noqa: E731
    patch.setattr(oracle, "condition", plain)


def _joins_are_inner(patch: pytest.MonkeyPatch, kind: str) -> None:
    joined, of = module("carried")._joined, module("carried")

    def as_inner(node: Any, wants: Any) -> Any:
        both = of._all_ways(wants, of.equalities(node.on))
        return [both, both] if node.kind == kind else joined(node, wants)

    patch.setattr(of, "_joined", as_inner)


@fault("r2")
def a_left_join_is_an_inner_one(patch: pytest.MonkeyPatch) -> None:
    _joins_are_inner(patch, "left")


@fault("r3")
def a_full_join_is_an_inner_one(patch: pytest.MonkeyPatch) -> None:
    _joins_are_inner(patch, "full")


@fault("r4")
def windows_look_at_any_row(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module("carried"), "_partitioned", lambda node, wants: wants)


@fault("r5")
def not_in_is_an_anti_join(patch: pytest.MonkeyPatch) -> None:
    builder = module("build").Builder
    semi = builder._semi

    def with_not_in(self: Any, node: Any, e: Any, scope: Any, env: Any) -> Any:
        if isinstance(e, exp.Not) and isinstance(e.this, exp.In):
            inner = module("expressions").expression(e.this.this, scope)
            return self._related(node, "anti", e.this.args["query"], inner, scope, env, e)
        return semi(self, node, e, scope, env)

    patch.setattr(builder, "_semi", with_not_in)


@fault("r6")
def one_use_of_a_with_query_speaks_for_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module("carried"), "_every_use", lambda one, other: one)


@fault("r7")
def limit_lets_columns_through(patch: pytest.MonkeyPatch) -> None:
    below = module("carried")._below
    limit = module("tree").Limit
    patch.setattr(module("carried"), "_below", lambda n, w: [w] if isinstance(n, limit) else below(n, w))


@fault("k1")
def union_all_has_the_key_of_its_left_side(patch: pytest.MonkeyPatch) -> None:
    of = module("keys")
    patch.setattr(of, "_of_set", lambda node: [of._all(node)])


@fault("k2")
def a_key_holds_across_parts(patch: pytest.MonkeyPatch) -> None:
    of, ref = module("keys"), module("tree").Ref
    patch.setattr(of, "_of_table", lambda n: [frozenset([ref(n.columns[n.names.index("k")])])])


@fault("k3")
def null_keys_meet_by_equality(patch: pytest.MonkeyPatch) -> None:
    full, equal = module("keys")._of_full, module("tree").Equal
    safe = lambda node, on: full(node, tuple(equal(e.left, e.right, True) for e in on))  # noqa: E731
    patch.setattr(module("keys"), "_of_full", safe)


@fault("d6")
def a_left_join_is_linear(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module("delta"), "_not_linear", lambda node: None)


@fault("d7")
def distinct_is_linear(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module("delta"), "_not_linear", lambda node: None)


@fault("d1")
def every_occurrence_reads_new_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(oracle, "held", lambda n, old, new: new)


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_rule_is_noticed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    example, apply = FAULTS[name]
    apply(monkeypatch)
    assert wrong(example, 600)


# -- what dimensions are joined with


@pytest.mark.parametrize(
    "sql, expected",
    [
        ("SELECT a.k FROM m[j] a JOIN d ON d.k = a.k", [("k", "m", "k")]),
        ("SELECT a.k FROM m[j] a, d WHERE d.k = a.v AND d.r = a.s", [("k r", "m", "v s")]),
        ("SELECT a.k FROM m[j] a LEFT JOIN d ON d.k = a.k AND d.r <> a.s", [("k", "m", "k")]),
        ("SELECT a.k FROM m[j] a WHERE EXISTS (SELECT 1 FROM d WHERE d.k = a.k)", [("k", "m", "k")]),
        ("SELECT a.k FROM m[j] a WHERE NOT EXISTS (SELECT 1 FROM d WHERE d.k = a.k)", [("k", "m", "k")]),
        ("SELECT a.k FROM m[j] a JOIN (SELECT k, MAX(r) AS r FROM d GROUP BY k) x ON x.k = a.k", [("k", "m", "k")]),
        (
            "SELECT a.k FROM (SELECT k FROM m[j] UNION ALL SELECT v FROM n[j-1]) a JOIN d ON d.k = a.k",
            [("k", "m", "k"), ("k", "n", "v")],
        ),
        ("WITH x AS (SELECT * FROM d) SELECT a.k FROM m[j] a JOIN x ON x.k = a.k JOIN x y ON y.k = a.v",
         [("k", "m", "k"), ("k", "m", "v")]),
        ("SELECT a.k FROM m[j] a LEFT JOIN n[j] b ON b.k = a.k LEFT JOIN d ON d.k = b.v", [("k", "n", "v")]),
    ],
)  # fmt: skip
def test_a_changed_row_of_a_dimension_matters_where_it_meets_a_row(
    sql: str, expected: list[tuple[str, str, str]]
) -> None:
    run = Query(sql)
    found = joined(tree(sql))
    names = [table.table for table in run.found.tables]
    by = {tuple(each) for n, each in found.items() if names[n] == "d"}
    assert [(" ".join(b.own), names[b.occurrence], " ".join(b.columns)) for each in by for b in each] == expected


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("SELECT a.k FROM m[j] a WHERE a.k NOT IN (SELECT k FROM d)", id="one NULL hides every row"),
        pytest.param(
            "SELECT d.k FROM d LEFT JOIN m[j] a ON d.k = a.k", id="rows of the dimension show without a partner"
        ),
        pytest.param("SELECT d.k FROM m[j] a FULL JOIN d ON d.k = a.k", id="the same on both sides"),
        pytest.param("SELECT d.k FROM m[j] a RIGHT JOIN d ON d.k = a.k", id="the same on the right"),
        pytest.param("SELECT d.k FROM d LEFT SEMI JOIN m[j] a ON d.r > a.s", id="no equality"),
        pytest.param("SELECT a.k FROM m[j] a JOIN d ON d.k = a.k + 1", id="a computed key"),
        pytest.param("SELECT a.k FROM m[j] a JOIN d ON d.r = a.k", id="text compared with numbers"),
        pytest.param("SELECT a.k, (SELECT MAX(r) FROM d) AS r FROM m[j] a", id="a value of all rows"),
        pytest.param("SELECT a.k FROM m[j] a JOIN d ON d.k = a.k, d e", id="joined once, and read whole once"),
        pytest.param(
            "SELECT a.k FROM m[j] a JOIN (SELECT * FROM d ORDER BY k LIMIT 3) x ON x.k = a.k", id="LIMIT of it"
        ),
        pytest.param("SELECT a.k FROM m[j] a JOIN (SELECT MAX(k) AS k FROM d) x ON x.k = a.k", id="an aggregate of it"),
        pytest.param(
            "WITH x AS (SELECT * FROM d) SELECT a.k FROM m[j] a JOIN x ON x.k = a.k WHERE a.v NOT IN (SELECT k FROM x)",
            id="joined once, and looked through once",
        ),
        pytest.param(
            "SELECT a.k FROM m[j] a LEFT JOIN n[j] b ON b.k = a.k LEFT JOIN d ON d.k <=> b.v",
            id="NULL that a join made meets NULL",
        ),
        pytest.param(
            "SELECT a.k FROM (SELECT MAX(k) AS k FROM m[j]) a JOIN d ON d.k = a.k", id="an aggregate of the part"
        ),
    ],
)
def test_else_it_matters_everywhere(sql: str) -> None:
    read = {n for n, table in enumerate(Query(sql).found.tables) if table.table == "d"}
    assert not read <= joined(tree(sql)).keys()
