"""Names as people type them: upper and lower case are the same, and a near miss is worth a hint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

#: How alike two words must be to be taken for each other.
_ALIKE = 0.65
_Table = TypeVar("_Table")


def as_spelled(word: str, known: Iterable[str]) -> str | None:
    """The known name that is meant, in its own spelling."""
    return next((name for name in known if name.lower() == word.lower()), None)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The most similar known name, if one is similar."""
    names = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), list(names), n=1, cutoff=_ALIKE)
    return names[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """A hint that names the most similar known name, if one is similar."""
    name = nearest(word, known)
    return f"did you mean {name}?" if name is not None else otherwise


def named(tables: Mapping[str, _Table], name: str) -> _Table | None:
    """The table of this name, whatever the case it is written in. Only a name that is unknown is compared with all."""
    from partwise.sql.text import plain  # it imports the parser

    for known in (name, plain(name)):
        if known in tables:
            return tables[known]
    return next((tables[known] for known in tables if plain(known) == plain(name)), None)
