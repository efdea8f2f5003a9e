"""Generated SQL for random patterns against the meaning of patterns, over random histories."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import duckdb
import pytest

from partwise.translation import MANY_ROWS, InputTable, QueryView, Translation, TranslationError, translate
from tests.translation.duck import Duck, catch_up, repair
from tests.translation.pattern_oracle import Pattern, Row, random_history, random_pattern, random_row

COLUMNS = {"g": "string", "ts": "bigint", "tie": "bigint", "x": "int", "y": "decimal(6,1)", "z": "int"}
TABLE = InputTable("s", "source", 60, COLUMNS, "ts", "tie")


def bag(rows: list[Row]) -> Counter[str]:
    return Counter(repr(sorted((k, _plain(v)) for k, v in row.items())) for row in rows)


def _plain(value: Any) -> Any:
    return None if value is None else round(float(value), 4) if not isinstance(value, str) else value


def order_of(translation: Translation) -> Any:
    """How rows are sorted: as the struct says, NULL last (that is DuckDB's way; Spark has it first)."""
    assert translation.fold is not None
    names = re.findall(r"\w+", translation.fold.rows)[1:]
    return lambda row: tuple((row[n] is None, row[n] if row[n] is not None else 0) for n in names if n in row)


def translated(pattern: Pattern, table: InputTable) -> Translation | None:
    try:
        return translate(QueryView("v", pattern.sql(), 60, gaps=pattern.gaps), {"s": table})
    except TranslationError as error:
        if {p.code for p in error.problems} == {"impossible-condition"}:
            return None
        raise


def check(pattern: Pattern, history: dict[int, list[Row]], table: InputTable, rng: random.Random) -> bool:
    translation = translated(pattern, table)
    if translation is None:
        return False
    duck = Duck(translation, [table])
    try:
        for rows in history.values():
            duck.insert("s", rows)
        catch_up(duck, {"s": set(history)})
        compare(duck, pattern, history, translation)
        check_fast(duck, translation, history)
        for _ in range(2):
            part = rng.choice(sorted(history))
            late = [random_row(rng, part, rng.choice(["p", None]), 1000 + rng.randint(-2000, 2000))]
            history = {**history, part: history[part] + late}
            duck.insert("s", late)
            repair(duck, {("s", part)})
            compare(duck, pattern, history, translation)
    finally:
        duck.close()
    return True


def compare(duck: Duck, pattern: Pattern, history: dict[int, list[Row]], translation: Translation) -> None:
    for part in history:
        expected = bag(pattern.report(history, part, order_of(translation)))
        assert bag(duck.rows("v", part)) == expected, f"part {part}: {pattern.sql()} {pattern.gaps} {history}"


def check_fast(duck: Duck, translation: Translation, history: dict[int, list[Row]]) -> None:
    """The join gives the helper's rows where no group has two rows, and says so where one has."""
    helper = translation.views[0]
    assert helper.fast_update is not None
    filtered = re.search(r"z > 0", helper.update) is not None
    grouped = "GROUP BY" in helper.update
    assert helper.unique_by == (("g",) if grouped else ())
    for part in sorted(history)[1:]:
        kept = [row for row in history[part] if not filtered or row["z"] > 0]
        most = max(Counter(row["g"] if grouped else None for row in kept).values(), default=0)
        if most > 1:
            with pytest.raises(duckdb.Error, match=MANY_ROWS):
                duck.run_text(helper.fast_update, "j", part)
        else:
            key = grouped and None not in {row["g"] for row in kept}
            for text in (helper.fast_update, *([helper.unique_update or ""] if key else [])):
                names, rows = duck.run_text(text, "j", part)
                assert bag([dict(zip(names, row, strict=True)) for row in rows]) == bag(duck.rows(helper.name, part))


@pytest.mark.parametrize("seed", range(8))
def test_generated_sql_equals_the_meaning(seed: int) -> None:
    """8 x 20 queries over two histories each."""
    rng = random.Random(seed)
    done = 0
    while done < 20:
        table = TABLE if rng.random() < 0.7 else replace(TABLE, tie=None)
        pattern = random_pattern(rng)
        histories = [random_history(rng, rng.randint(3, 6), most) for most in (1, rng.choice([2, 3]))]
        done += all(check(pattern, history, table, rng) for history in histories)
