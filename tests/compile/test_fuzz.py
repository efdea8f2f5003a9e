"""Whatever stands in a query, the answer is a translation or a list of problems with places in the text."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from partwise.compile import QueryView, translate
from partwise.sql.parse import SqlProblem, TranslationError
from tests.compile.test_golden import REFUSED, STAGES, TABLES, settings_of

SEEDS = {name: text for golden in (*STAGES, REFUSED) for name, text in golden.cases.items()}
WORDS = [
    "(",
    ")",
    "[",
    "]",
    ",",
    ".",
    "*",
    "+",
    "-",
    ">",
    "=",
    "a",
    "b",
    "n",
    "1",
    "''",
    "'",
    "`",
    "SELECT",
    "FROM",
    "WHERE",
    "AND",
    "OR",
    "NOT",
    "NULL",
    "CASE",
    "END",
    "PREV(",
    "WINDOW",
    "PATTERN",
    "AS",
    "->",
    "FILTER",
    "OVER",
    "--",
    "/*",
]


@pytest.mark.parametrize("name", SEEDS)
def test_damaged_queries(name: str) -> None:
    rng = random.Random(name)
    text = SEEDS[name]
    for _ in range(40):
        words = text.split(" ")
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(words))
            choice = rng.random()
            if choice < 0.35:
                del words[at : at + rng.randint(1, 2)]
            elif choice < 0.7:
                words.insert(at, rng.choice(WORDS))
            else:
                words[at] = rng.choice(words)
            words = words or [""]
        damaged = " ".join(words)
        for problem in problems_of(replace(settings_of(text), query=damaged)):
            assert 0 <= problem.start <= len(damaged), damaged
            assert problem.message, damaged


def problems_of(view: QueryView) -> tuple[SqlProblem, ...]:
    try:
        translate(view, TABLES)
    except TranslationError as error:
        return error.problems
    return ()
