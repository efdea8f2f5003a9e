"""Windows in the text of a query, found by a reader of verify's own: what judges the translator shares nothing with it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from partwise.parts import seconds

_HIDDEN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|--[^\n]*|/\*.*?\*/""", re.DOTALL)
_WINDOW = re.compile(
    r"(?:\bFROM|\bJOIN|,)\s*`?(?P<table>\w+)`?(?P<alias>\s+(?:AS\s+)?(?!\[)`?\w+`?)?\s*\[\s*(?P<kind>WINDOW|ROWS)\b(?P<inside>[^\]]*)\]",
    re.IGNORECASE,
)
_ROWS = re.compile(r"\s*(\d+)\s+PER\s+(.+?)\s+WITHIN\s+(.+?)\s*$", re.IGNORECASE | re.DOTALL)
_FREQUENT = re.compile(r"\bFREQUENT\s*\(\s*(\d+)\s*\)", re.IGNORECASE)
_OTHER = re.compile(
    r"\b(?:UNION|EXCEPT|INTERSECT|MINUS)\s+(?:ALL\s+|DISTINCT\s+)?\(?\s*SELECT\b|\bSELECT\s+DISTINCT\b|\bLIMIT\s+\d+\s*;?\s*$|\bFREQUENT\s*\(",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Windowed:
    """A table with a window: where its name stands, the window's length, and for ROWS how many per which columns."""

    table: str
    start: int
    length: int
    count: int | None = None
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Text:
    """`plain` is the query without windows and comments, all places as they were."""

    plain: str
    windows: tuple[Windowed, ...]
    frequent: int | None
    order: str = ""
    limit: int | None = None


def masked(text: str) -> str:
    """The same length, with blanks for strings and comments."""
    return _HIDDEN.sub(lambda match: " " * len(match[0]), text)


def cut(text: str) -> Text:
    text = text.rstrip().rstrip(";")
    bare = masked(text)
    plain = text
    for match in _HIDDEN.finditer(text):
        if match[0].startswith(("--", "/*")):
            plain = plain[: match.start()] + " " * len(match[0]) + plain[match.end() :]
    windows = []
    for match in _WINDOW.finditer(bare):
        inside = match["inside"]
        by: tuple[str, ...] = ()
        count, length = None, re.split(r"\bSLIDE\b", inside, flags=re.IGNORECASE)[0]
        if match["kind"].upper() == "ROWS":
            parts = _ROWS.match(inside)
            assert parts is not None
            count, by, length = int(parts[1]), tuple(c.strip() for c in parts[2].split(",")), parts[3]
        windows.append(Windowed(match["table"], match.start("table"), seconds(length.strip()), count, by))
        opening = bare.index("[", match.end("alias") if match["alias"] else match.end("table"))
        plain = plain[:opening] + " " * (match.end() - opening) + plain[match.end() :]
    frequent = _FREQUENT.search(bare)
    if frequent is not None:
        counted = "COUNT(*) n"  # no longer than what it replaces
        plain = plain[: frequent.start()] + counted.ljust(frequent.end() - frequent.start()) + plain[frequent.end() :]
    order, limit = "", None
    if (
        tail := re.search(r"\bORDER\s+BY\b(?P<order>[^()]*?)\bLIMIT\s+(?P<limit>\d+)\s*$", bare, re.IGNORECASE)
    ) is not None:
        order, limit = text[tail.start("order") : tail.end("order")].strip(), int(tail["limit"])
        plain = plain[: tail.start()]
    return Text(plain, tuple(windows), int(frequent[1]) if frequent else None, order, limit)


def is_several(text: str, output: str) -> bool:
    """Whether a query is more than one window with GROUP BY."""
    bare = masked(text)
    found = list(_WINDOW.finditer(bare))
    if re.search(r"\bPATTERN\s*\[", bare, re.IGNORECASE) or not found:
        return False
    return output != "snapshot" or len(found) > 1 or found[0]["kind"].upper() == "ROWS" or bool(_OTHER.search(bare))


def grouping(text: str) -> str:
    """What stands behind GROUP BY, up to HAVING or the end."""
    bare = masked(text)
    found = list(re.finditer(r"\bGROUP\s+BY\b", bare, re.IGNORECASE))[-1]
    end = re.search(r"\bHAVING\b", bare[found.end() :], re.IGNORECASE)
    return text[found.end() : found.end() + end.start() if end else None].strip()
