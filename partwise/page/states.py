"""The states of a part on the page: a word, a letter for transport, and which of them outweighs which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Word = Literal[
    "none",
    "empty",
    "fresh",
    "repaired",
    "open",
    "building",
    "missing",
    "deferred",
    "manual",
    "stale",
    "blocked",
    "failed",
]


@dataclass(frozen=True, slots=True)
class State:
    word: Word
    letter: str
    meaning: str


#: From the least to the worst: a cell of many parts shows the worst of them.
STATES = (
    State("none", "-", "not there and not expected: before the start, expired, or still to come"),
    State("empty", "e", "built, without rows"),
    State("fresh", "f", "built from what its inputs hold now"),
    State("repaired", "r", "fresh, and its content changed since the chosen time"),
    State("open", "o", "rows have arrived, the part is not closed yet"),
    State("building", "b", "being computed now"),
    State("missing", "m", "never built"),
    State("deferred", "d", "ready, but its view refreshes later: see its `refresh` policy"),
    State("manual", "h", "stale, and its view is repaired manually"),
    State("stale", "s", "an input or the definition is newer; it is computed next"),
    State("blocked", "w", "due, but waits for an input that is missing or stale"),
    State("failed", "x", "a check or the query failed; nothing was published"),
)
RANK: dict[Word, int] = {state.word: at for at, state in enumerate(STATES)}
LETTERS = "".join(state.letter for state in STATES)
