"""verify cuts queries by a reader of its own. Two readers that share nothing must agree."""

from __future__ import annotations

import random
from typing import Any

import pytest

from partwise.compile import InputTable, QueryView
from partwise.compile.parse import parse
from partwise.compile.pattern.plan import plan_pattern
from partwise.compile.select import select
from partwise.sql.calls import Call
from partwise.sql.parse import TranslationError
from partwise.sql.text import plain
from spark_jobs.verify import expressions as own
from spark_jobs.verify.clauses import read
from spark_jobs.verify.query import columns_by_use, condition
from tests.compile import pattern_oracle, window_oracle
from tests.compile.noise import with_comments
from tests.compile.words import in_table, in_text, random_words

COLUMNS = {"g": "string", "h": "int", "ts": "bigint", "tie": "bigint", "x": "int", "y": "decimal(6,1)", "z": "int"}
TABLE = InputTable("s", "source", 60, COLUMNS, "ts", "tie")
HARD = [
    "SELECT g, CASE WHEN g = 'end' THEN 1 ELSE 2 END n, MIN_BY(x, /* best */ z) FILTER (WHERE x > 1 OR z > 1) AS s, "
    "SUM(m.x DIV 2) AS d, LAST_VALUE(x IGNORE NULLS) o, 2 * (SUM(x) - 1) / COUNT(*) AS q "
    "FROM s m [WINDOW 5 minutes] LEFT JOIN nodes n ON n.node = m.g WHERE (m.x > 1 AND m.z BETWEEN 1 AND 2) AND NOT z > 3 "
    "GROUP BY 1, n HAVING s IS NOT NULL AND SUM(x) > 2 AND o IS DISTINCT FROM 1;",
    "SELECT PERCENTILE_CONT(0.4) WITHIN GROUP (ORDER BY x ASC) FILTER (WHERE z > 0) AS r, COUNT(DISTINCT x, z) AS c, "
    "EVERY(x > 0) AS e, COUNT(*) AS n FROM s [WINDOW 1 day SLIDE 1 hour] AS `m` WHERE x > 0 OR z > 0 AND y > 0",
    "SELECT g, COUNT(b.*) AS n, SUM(b.x + PI()) AS s FROM s PATTERN [a, b+, c] AS m "
    "WHERE b.x > PREV(b.x + b.z) AND (b.z > a.z AND c.x IN (1, 2)) AND m.h > 0 GROUP BY g ORDER BY ts ASC, x",
]


def texts() -> list[Any]:
    found = [pytest.param(text, id=f"hard {at}") for at, text in enumerate(HARD)]
    for seed in range(30):
        rng = random.Random(seed)
        window = window_oracle.random_query(rng, rng.sample(window_oracle.ALL, rng.randint(1, 3)))
        for kind, text in (("window", window.sql()), ("pattern", pattern_oracle.random_pattern(rng).sql())):
            spelled = in_text(text, random_words(rng, "gxyz"))
            found.append(pytest.param(with_comments(spelled, rng), id=f"{kind} {seed}"))
    return found


def told(call: Call | own.AggregateCall) -> tuple[Any, ...]:
    args = [" ".join(arg.text.split()) for arg in call.args]
    condition = None if call.filter is None else " ".join(call.filter.text.split())
    return call.name, args, call.distinct, condition, call.ignore_nulls, call.start, call.end


@pytest.mark.parametrize("text", texts())
def test_both_readers_agree(text: str) -> None:
    theirs, ours = parse(text), read(text)
    assert ours.table == plain(theirs.table)
    assert ours.alias == (None if theirs.alias is None else plain(theirs.alias))
    assert ours.pattern == tuple((v.name, v.plus) for v in theirs.pattern or ())
    assert [w.length for w in ours.windows] == ([theirs.window.length] if theirs.window else [])
    assert [(i.body.text, i.body.start, i.alias) for i in ours.items] == [
        (i.body.text, i.body.offset, i.alias) for i in theirs.items
    ]
    for here, there in (
        (own.conjuncts(ours.where) if ours.where else [], theirs.where.conjuncts() if theirs.where else []),
        (ours.group_by, theirs.group_by),
        (ours.order_by, theirs.order_by),
        ([ours.having] if ours.having else [], [theirs.having] if theirs.having else []),
    ):
        assert [(s.text, s.start) for s in here] == [(p.text, p.offset) for p in there]
    assert len(ours.plain) == len(text)
    qualifiers = {"m", "n", plain(theirs.table), *(v.name for v in theirs.pattern or ())}
    selection = select(theirs, qualifiers, None)
    assert [[told(c) for c in own.calls(i.body)] for i in ours.items] == [
        [told(c) for c in output.formula.calls] for output in selection.outputs
    ]
    assert [told(c) for c in own.calls_in_having(ours)] == (
        [told(c) for c in selection.having.all_calls()] if selection.having else []
    )
    assert ["".join(k.text.split()) for k in own.keys_of(ours, set(COLUMNS))] == [
        "".join(k.piece.text.split()) for k in selection.keys
    ]


@pytest.mark.parametrize("seed", range(40))
def test_rows_that_nothing_orders_are_ordered_by_the_same_columns(seed: int) -> None:
    rng = random.Random(seed)
    pattern, words = pattern_oracle.random_pattern(rng), random_words(rng, "gxyz")
    text, table = in_text(pattern.sql(), words), in_table(TABLE, words)
    try:
        plan = plan_pattern(QueryView("v", text, 60 * pattern.ratio), parse(text), table)
    except TranslationError:
        pytest.skip("refused")
    query = read(text)
    qualifiers = ["s", *([query.alias] if query.alias else [])]
    conditions = [
        condition(span, query.pattern, qualifiers) for span in (own.conjuncts(query.where) if query.where else [])
    ]
    ordered = {name.strip("`") for _, name in plan.order}
    found = [name for name in columns_by_use(query, conditions, qualifiers) if name not in ordered]
    assert found == list(plan.row_columns)
