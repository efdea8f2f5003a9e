"""Words of SQL as names of columns and variables, in place of the single letters that random queries use."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from partwise.compile import InputTable

#: Statements, types, units and clauses that Spark takes for a name where a name can stand.
WORDS = (
    "load", "comment", "set", "begin", "refresh", "use", "copy", "cache", "desc", "describe", "merge", "update", "delete",
    "truncate", "kill", "call", "show", "execute", "explain", "date", "day", "timestamp", "offset", "limit", "window", "pivot",
    "end", "filter", "first", "drop", "insert",
)  # fmt: skip
Words = Mapping[str, str]


def random_words(rng: random.Random, letters: str) -> Words:
    """Some of the letters, each with a word of its own."""
    chosen = [letter for letter in letters if rng.random() < 0.3]
    return dict(zip(chosen, rng.sample(WORDS, len(chosen)), strict=True))


def in_text(text: str, words: Words) -> str:
    return re.sub(r"\b[a-z]\b", lambda found: words.get(found[0], found[0]), text)


def back(text: str, words: Words) -> str:
    letters = {word: letter for letter, word in words.items()}
    return re.sub(r"`?\b(\w+)\b`?", lambda found: letters.get(found[1], found[0]), text)


def in_row(row: dict[str, Any], words: Words) -> dict[str, Any]:
    return {words.get(name, name): value for name, value in row.items()}


def in_table(table: InputTable, words: Words) -> InputTable:
    return replace(table, columns=in_row(dict(table.columns or {}), words))
