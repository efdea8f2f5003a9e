"""Generated SQL for random patterns against the meaning of patterns, over random histories."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import duckdb
import pytest

from partwise.compile import MANY_ROWS, InputTable, QueryView, Translation, translate
from partwise.sql.parse import TranslationError
from tests.compile.duck import Duck, catch_up, repair
from tests.compile.pattern_oracle import Pattern, Row, random_history, random_island, random_pattern, random_row, value
from tests.compile.sorting import sorted_by
from tests.compile.words import Words, back, in_row, in_table, in_text, random_words
from tests.thinned import thinned

COLUMNS = {"g": "string", "ts": "bigint", "tie": "bigint", "x": "int", "y": "decimal(6,1)", "z": "int"}
TABLE = InputTable("s", "source", 60, COLUMNS, "ts", "tie")


def bag(rows: list[Row]) -> Counter[str]:
    return Counter(repr(sorted((k, _plain(v)) for k, v in row.items())) for row in rows)


def _plain(value: Any) -> Any:
    return None if value is None else round(float(value), 4) if not isinstance(value, str) else value


def order_of(translation: Translation, words: Words) -> Any:
    """How rows are sorted: as the struct says, NULL last (that is DuckDB's way; Spark has it first)."""
    texts = [back(text.split(" AS ")[0], words) for text in sorted_by(translation)]
    return lambda row: tuple((v is None, v if v is not None else 0) for v in (value(text, row) for text in texts))


def translated(pattern: Pattern, table: InputTable, words: Words | None = None) -> Translation | None:
    text = in_text(pattern.sql(), words or {})
    try:
        return translate(QueryView("v", text, 60 * pattern.ratio, gaps=pattern.gaps), {"s": table})
    except TranslationError as error:
        if {p.code for p in error.problems} == {"impossible-condition"}:
            return None
        raise


def check(pattern: Pattern, history: dict[int, list[Row]], table: InputTable, rng: random.Random, words: Words) -> bool:
    table = in_table(table, words)
    translation = translated(pattern, table, words)
    if translation is None:
        return False
    duck = Duck(translation, [table])
    try:
        for rows in history.values():
            duck.insert("s", [in_row(row, words) for row in rows])
        catch_up(duck, {"s": set(history)})
        compare(duck, pattern, history, translation, words)
        check_fast(duck, translation, pattern, history, words)
        for _ in range(2):
            part = rng.choice(sorted(history))
            late = [random_row(rng, part, rng.choice(["p", None]), 1000 + rng.randint(-2000, 2000))]
            history = {**history, part: history[part] + late}
            duck.insert("s", [in_row(row, words) for row in late])
            repair(duck, {("s", part)})
            compare(duck, pattern, history, translation, words)
    finally:
        duck.close()
    return True


def compare(
    duck: Duck, pattern: Pattern, history: dict[int, list[Row]], translation: Translation, words: Words
) -> None:
    assert duck.built["v"] == set(pattern.parts(history))
    for part in pattern.parts(history):
        expected = bag([in_row(row, words) for row in pattern.report(history, part, order_of(translation, words))])
        text = in_text(pattern.sql(), words)
        assert bag(duck.rows("v", part)) == expected, f"part {part}: {text} {pattern.gaps} {history}"


def check_fast(
    duck: Duck, translation: Translation, pattern: Pattern, history: dict[int, list[Row]], words: Words
) -> None:
    """The join gives the helper's rows where no group has two rows, and says so where one has."""
    helper = translation.views[0]
    assert helper.fast_update is not None
    assert helper.unique_by == ((words.get("g", "g"),) if pattern.key and pattern.key[0] == "g" else ())
    assert (helper.unique_update is None) == (not helper.unique_by)
    for part in pattern.parts(history)[1:]:
        if pattern.most(history, part) > 1:
            with pytest.raises(duckdb.Error, match=MANY_ROWS):
                duck.run_text(helper.fast_update, "j", part)
        else:
            texts = [helper.fast_update, *([helper.unique_update or ""] if pattern.is_unique(history, part) else [])]
            for text in texts:
                names, rows = duck.run_text(text, "j", part)
                assert bag([dict(zip(names, row, strict=True)) for row in rows]) == bag(duck.rows(helper.name, part))


@pytest.mark.parametrize("seed", thinned(range(8), 5))
def test_generated_sql_equals_the_meaning(seed: int) -> None:
    """8 x 20 queries over two histories each; some columns and variables are called like words of SQL."""
    rng = random.Random(seed)
    done = 0
    while done < 20:
        table = TABLE if rng.random() < 0.7 else replace(TABLE, tie=None)
        pattern = random_pattern(rng)
        histories = [random_history(rng, rng.randint(3, 6), most) for most in (1, rng.choice([2, 3]))]
        words = random_words(rng, "gxyzabcd")
        done += all(check(pattern, history, table, rng, words) for history in histories)


@pytest.mark.parametrize("seed", thinned(range(5), 3))
def test_one_condition_for_all_variables(seed: int) -> None:
    """5 x 20 queries whose rows are not folded, over histories with many rows in a group."""
    rng = random.Random(f"island {seed}")
    for _ in range(20):
        table = TABLE if rng.random() < 0.7 else replace(TABLE, tie=None)
        pattern = random_island(rng)
        translation = translated(pattern, table)
        assert translation is not None
        assert "aggregate(" not in translation.views[0].update
        assert check(
            pattern,
            random_history(rng, rng.randint(3, 6), rng.choice([1, 3, 6])),
            table,
            rng,
            random_words(rng, "gxyzabcd"),
        )
