"""Names as people type them: upper and lower case are the same, and a near miss is worth a hint."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

#: How alike two words must be to be taken for each other.
_ALIKE = 0.65


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
