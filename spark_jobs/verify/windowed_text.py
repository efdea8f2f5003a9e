"""Queries over several windows, cut by verify's own reader: what judges the translator shares nothing with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from spark_jobs.verify.clauses import Cut, Windowed, Word, read, windows_in, without_comments
from spark_jobs.verify.expressions import calls

_SETS = ("UNION", "EXCEPT", "INTERSECT", "MINUS")


@dataclass(frozen=True)
class Text:
    """`plain` is the query without windows and comments, all places as they were."""

    plain: str
    windows: tuple[Windowed, ...]
    frequent: int | None
    order: str = ""
    limit: int | None = None


def cut(text: str) -> Text:
    whole = Cut(without_comments(text), 0)
    words = whole.words
    windows, plain = windows_in(whole)
    frequent = None
    if (at := _frequent(words)) is not None:
        frequent, start, end = int(words[at + 2].text), words[at].start, words[at + 3].end
        counted = "COUNT(*) n"  # no longer than what it replaces
        plain = plain[:start] + counted.ljust(end - start) + plain[end:]
    order, limit = "", None
    ordered = [word for word in words if word.depth == 0 and word.upper == "ORDER BY"]
    if ordered and _limited(words):
        order, limit = whole.cut(ordered[-1].end, words[-2].start).text, int(words[-1].text)
        plain = plain[: ordered[-1].start]
    return Text(plain, windows, frequent, order, limit)


def is_several(text: str, output: str) -> bool:
    """Whether a query is more than one window with GROUP BY or aggregates."""
    whole = Cut(without_comments(text), 0)
    words, (windows, _) = whole.words, windows_in(whole)
    if not windows or any((a.upper, b.text) == ("PATTERN", "[") for a, b in pairwise(words)):
        return False
    if output == "pairs" or len(windows) > 1 or windows[0].count is not None:
        return True
    if _from_query(words) or (output == "rolling" and _is_plain(text)):
        return True
    distinct = any((a.upper, b.upper) == ("SELECT", "DISTINCT") for a, b in pairwise(words))
    return distinct or _limited(words) or _frequent(words) is not None or _combines(words)


def _from_query(words: Sequence[Word]) -> bool:
    return any(a.upper == "FROM" and a.depth == 0 and b.text == "(" for a, b in pairwise(words))


def _is_plain(text: str) -> bool:
    """Whether rows are shown as they are."""
    query = read(text)
    return not query.group_by and query.having is None and not any(calls(item.body) for item in query.items)


def grouping(text: str) -> str:
    """What stands behind GROUP BY, up to HAVING or the end."""
    return ", ".join(key.text for key in read(text).group_by)


def _frequent(words: Sequence[Word]) -> int | None:
    return next((at for at, (a, b) in enumerate(pairwise(words)) if (a.upper, b.text) == ("FREQUENT", "(")), None)


def _limited(words: Sequence[Word]) -> bool:
    return len(words) > 1 and words[-2].upper == "LIMIT" and words[-1].text.isdigit()


def _combines(words: Sequence[Word]) -> bool:
    """Whether UNION or the like stands before a SELECT; `minus` alone may be a name."""
    told = [word.upper for word in words if word.upper not in ("ALL", "DISTINCT", "(")]
    return any(a in _SETS and b == "SELECT" for a, b in pairwise(told))
