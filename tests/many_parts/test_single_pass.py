"""The single pass of generated helpers equals their update part after part: random patterns and windows on DuckDB."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from partwise.compile import GeneratedView, InputTable, QueryView, Translation, translate
from tests.compile import pattern_oracle, window_oracle
from tests.compile.duck import Duck, _fix, catch_up
from tests.compile.passes import single_pass_text
from tests.compile.test_patterns_random import TABLE as PATTERNS
from tests.compile.test_patterns_random import bag, translated
from tests.compile.test_windows_random import TABLE as WINDOWS


def to_duckdb(sql: str) -> str:
    return sqlglot.parse_one(sql, dialect="spark").transform(_arrays).transform(_fix).sql("duckdb")


def _arrays(node: exp.Expr) -> exp.Expr:
    """`aggregate` with what to do at the end, and `concat` of arrays, which sqlglot takes for text."""
    if isinstance(node, exp.Reduce) and node.args.get("finish"):
        fold = exp.Anonymous(this="LIST_REDUCE", expressions=[node.this, node.args["merge"], node.args["initial"]])
        ended = exp.Anonymous(this="LIST_TRANSFORM", expressions=[exp.Array(expressions=[fold]), node.args["finish"]])
        return exp.Anonymous(this="LIST_EXTRACT", expressions=[ended, exp.Literal.number(1)])
    if isinstance(node, exp.Concat):
        return exp.Anonymous(this="LIST_CONCAT", expressions=node.expressions)
    return node


def single_pass(duck: Duck, view: GeneratedView, first: int, last: int) -> dict[int, list[dict[str, Any]]]:
    cursor = duck.con.execute(to_duckdb(single_pass_text(view, first, last)))
    names = [d[0] for d in cursor.description]
    found: dict[int, list[dict[str, Any]]] = {part: [] for part in range(first, last + 1)}
    for row in cursor.fetchall():
        found[row[-1]].append(dict(zip(names[:-1], row, strict=False)))
    return found


def check(translation: Translation, table: InputTable, history: dict[int, list[Any]]) -> int:
    """Every run of parts that begins anywhere after the first; how many parts were compared."""
    duck, compared = Duck(translation, [table]), 0
    try:
        for rows in history.values():
            duck.insert("s", rows)
        catch_up(duck, {"s": set(history)})
        for view in [v for v in translation.views if v.single_pass]:
            built = sorted(duck.built[view.name])
            for first in built[1:4]:
                found = single_pass(duck, view, first, built[-1])
                for part in range(first, built[-1] + 1):
                    assert bag(found[part]) == bag(duck.rows(view.name, part)), f"{view.name}[{part}] from {first}"
                    compared += 1
    finally:
        duck.close()
    return compared


def sparse(rng: random.Random, history: dict[int, list[Any]]) -> dict[int, list[Any]]:
    """Some parts without rows, so that groups are silent for a while."""
    return {part: [] if rng.random() < 0.25 else rows for part, rows in history.items()}


@pytest.mark.parametrize("seed", range(4))
def test_patterns(seed: int) -> None:
    rng, compared = random.Random(seed), 0
    for pattern, translation in some_patterns(rng, 6):
        history = sparse(rng, pattern_oracle.random_history(rng, 6, rng.choice([1, 3])))
        try:
            compared += check(translation, PATTERNS, history)
        except AssertionError as why:
            why.add_note(f"{pattern.sql()} {pattern.gaps} {history}")
            raise
    assert compared >= 30


def some_patterns(rng: random.Random, count: int) -> Iterator[tuple[Any, Translation]]:
    while count:
        pattern = pattern_oracle.random_island(rng) if count % 3 == 0 else pattern_oracle.random_pattern(rng)
        translation = translated(pattern, PATTERNS)
        if translation is not None:
            count -= 1
            yield pattern, translation


@pytest.mark.parametrize("seed", range(4))
def test_rolling_windows(seed: int) -> None:
    rng, compared = random.Random(seed), 0
    exact = [a for a in window_oracle.ALL if a.exact]
    for slide, grouped in ((1, "g"), (1, ""), (2, "g")):
        text = ", ".join(
            [*([grouped] if grouped else []), *(f"{a.text} AS c{n}" for n, a in enumerate(rng.sample(exact, 3)))]
        )
        by = f" GROUP BY {grouped}" if grouped else ""
        query = f"SELECT {text} FROM s [WINDOW {rng.choice([4, 6])} minutes]{by}"
        translation = translate(QueryView("v", query, 60 * slide, strategy="subtract"), {"s": WINDOWS})
        history = sparse(rng, window_oracle.random_history(rng, 12, 14))
        compared += check(translation, WINDOWS, history)
    assert compared >= 20
