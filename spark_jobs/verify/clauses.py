"""The clauses of a query with PATTERN or WINDOW, cut by a reader of verify's own: what judges the translator shares
nothing with it.

    SELECT ... FROM m PATTERN [a, b+] WHERE ... GROUP BY ... HAVING ... ORDER BY ...
    SELECT ... FROM m [WINDOW 5 minutes] a JOIN n b [WINDOW 1 day SLIDE 1 hour] ON ... WHERE ...

Queries that reach verify have passed validate, so nothing is refused here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from partwise.parts import seconds
from partwise.sql.parse import tokenise

_CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY")
#: Behind these an operand follows, so that `end` there is the name of a column.
_BEFORE_OPERANDS = frozenset(["AND", "BETWEEN", "CASE", "ELSE", "IN", "LIKE", "NOT", "OR", "THEN", "WHEN", "WHERE"])


@dataclass(frozen=True)
class Word:
    """A token: its letters, where they stand, and how many brackets and CASEs are around it."""

    text: str
    start: int
    end: int
    depth: int
    dotted: bool

    @property
    def upper(self) -> str:
        """Empty where the word can only be a name: `a.end`."""
        return "" if self.dotted else " ".join(self.text.upper().split())

    @property
    def name(self) -> bool:
        return self.text[0].isalpha() or self.text[0] in "_`"


@dataclass(frozen=True)
class Cut:
    """A piece of the query; `start` is its place in the whole text."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @cached_property
    def words(self) -> tuple[Word, ...]:
        return words(self.text, self.start)

    def cut(self, start: int, end: int) -> Cut:
        """Between two places of the whole text, without blanks around."""
        text = self.text[start - self.start : end - self.start]
        return Cut(text.strip(), start + len(text) - len(text.lstrip()))

    def split(self, at: Iterable[Word]) -> list[Cut]:
        cuts = list(at)
        starts, ends = [self.start, *(w.end for w in cuts)], [*(w.start for w in cuts), self.end]
        return [self.cut(a, b) for a, b in zip(starts, ends, strict=True)]

    def items(self) -> list[Cut]:
        """At commas outside of brackets."""
        return self.split(w for w in self.words if w.text == "," and w.depth == 0) if self.words else []

    def written(self, changes: Iterable[tuple[int, int, str]]) -> str:
        """With some places of the whole text written differently, on one line."""
        text = self.text
        for start, end, new in sorted(changes, reverse=True):
            text = text[: start - self.start] + new + text[end - self.start :]
        return one_line(text)


@dataclass(frozen=True)
class SelectItem:
    """One expression of the SELECT list; `alias` None: the query gives no name."""

    body: Cut
    alias: str | None


@dataclass(frozen=True)
class Windowed:
    """A table with a window of so many seconds; `start` is the place of its name. ROWS: the last `count` rows `by` group."""

    table: str
    alias: str | None
    start: int
    length: int
    count: int | None = None
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class QueryCut:
    """`plain` is the query without comments and windows, all letters in their places; `from_at` is where FROM stands."""

    plain: str
    items: tuple[SelectItem, ...]
    from_at: int
    from_: Cut
    table: str
    alias: str | None
    pattern: tuple[tuple[str, bool], ...]
    windows: tuple[Windowed, ...]
    where: Cut | None
    group_by: tuple[Cut, ...]
    having: Cut | None
    order_by: tuple[Cut, ...]


def read(text: str) -> QueryCut:
    whole = Cut(without_comments(text), 0)
    heads = [w for at, w in enumerate(whole.words) if w.depth == 0 and w.upper in _CLAUSES and not _compares(whole, at)]
    ends = [*(w.start for w in heads[1:]), len(text)]
    clauses = {w.upper: whole.cut(w.end, end) for w, end in zip(heads, ends, strict=True)}
    windows, plain = windows_in(whole)
    from_, from_at = clauses["FROM"], next(w.start for w in heads if w.upper == "FROM")
    return QueryCut(
        plain=plain,
        items=tuple(_item(span) for span in clauses["SELECT"].items()),
        from_at=from_at,
        from_=from_,
        table=name_of(from_.words[0].text),
        alias=_alias(from_),
        pattern=_pattern(from_),
        windows=windows,
        where=clauses.get("WHERE"),
        group_by=tuple(clauses["GROUP BY"].items()) if "GROUP BY" in clauses else (),
        having=clauses.get("HAVING"),
        order_by=tuple(clauses["ORDER BY"].items()) if "ORDER BY" in clauses else (),
    )


def words(text: str, start: int = 0) -> tuple[Word, ...]:
    # A word such as `show` would be a statement if the text began with it.
    before = "SELECT "
    tokens = tokenise(before + text).tokens[1:]
    found: list[Word] = []
    depth = 0
    opened: list[str] = []
    for token in tokens:
        at, end = token.start - len(before), token.end + 1 - len(before)
        word = text[at:end]
        if found and at + start < found[-1].end:
            continue  # `10L` comes as three tokens of one place
        dotted = text[end : end + 1] == "." or (bool(found) and found[-1].text == ".")
        keyword = "" if dotted else word.upper()
        closes = word in ")]}" or (
            keyword == "END" and opened[-1:] == ["CASE"] and not (found and _wants_operand(found[-1]))
        )
        if closes and opened:
            opened.pop()
            depth -= 1
        found.append(Word(word, at + start, end + start, depth, dotted))
        if word in "([{" or keyword == "CASE":
            opened.append(word.upper())
            depth += 1
    return tuple(found)


def _wants_operand(before: Word) -> bool:
    operator = not before.name and before.text[0] not in "'\")]}" and not before.text[0].isdigit()
    return operator or before.upper in _BEFORE_OPERANDS


def without_comments(text: str) -> str:
    """The same length, without comments and a semicolon at the end."""
    kept = [letter if letter.isspace() else " " for letter in text]
    last = None
    for token in tokenise(text).tokens:
        kept[token.start : token.end + 1] = text[token.start : token.end + 1]
        last = token
    if last is not None and last.text == ";":
        kept[last.start] = " "
    return "".join(kept)


def one_line(text: str) -> str:
    """Line breaks outside strings as blanks."""
    kept = list(text)
    inside = [(t.start, t.end) for t in tokenise(text).tokens if text[t.end] in "'\"`"]
    for at, letter in enumerate(kept):
        if letter in "\r\n" and not any(a <= at <= b for a, b in inside):
            kept[at] = " "
    return "".join(kept).strip()


def name_of(written: str) -> str:
    """A name as it is compared: without quotes, in small letters."""
    return written.strip("`").replace("``", "`").lower()


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _compares(whole: Cut, at: int) -> bool:
    """`x IS [NOT] DISTINCT FROM y` begins no clause."""
    before = whole.words[at - 1].upper if at else ""
    return whole.words[at].upper == "FROM" and before == "DISTINCT"


def _item(span: Cut) -> SelectItem:
    found = span.words
    last = found[-1]
    if len(found) > 1 and last.name and last.depth == 0 and not last.dotted:
        if found[-2].upper == "AS":
            return SelectItem(span.cut(span.start, found[-2].start), last.text.strip("`"))
        operand = not _wants_operand(found[-2]) and found[-2].upper not in ("IS", "DISTINCT", "DIV", "RLIKE", "REGEXP")
        if operand and last.upper not in ("END", "NULL", "TRUE", "FALSE", "NULLS", "IGNORE NULLS", "RESPECT NULLS"):
            return SelectItem(span.cut(span.start, last.start), last.text.strip("`"))
    return SelectItem(span, None)


def _closing(found: tuple[Word, ...], opening: int) -> int:
    return next(at for at in range(opening + 1, len(found)) if found[at].depth == found[opening].depth)


def windows_in(whole: Cut) -> tuple[tuple[Windowed, ...], str]:
    """Every table with a window, wherever it stands, and the text without windows."""
    found, plain, all_words = [], whole.text, whole.words
    for at, word in enumerate(all_words[:-1]):
        if word.text != "[" or all_words[at + 1].upper not in ("WINDOW", "ROWS"):
            continue
        close = _closing(all_words, at)
        inside = whole.cut(all_words[at + 1].end, all_words[close].start)
        said = {w.upper: w for w in inside.words}
        length, count, by = inside, None, tuple[str, ...]()
        if all_words[at + 1].upper == "ROWS":
            count = int(inside.words[0].text)
            by = tuple(c.text for c in inside.cut(inside.words[1].end, said["WITHIN"].start).items())
            length = inside.cut(said["WITHIN"].end, inside.end)
        elif "SLIDE" in said:
            length = inside.cut(inside.start, said["SLIDE"].start)
        # Between the table's name and its window there is an alias at most.
        first = max(n for n in range(at) if all_words[n].upper in ("FROM", "JOIN", ",", "(")) + 1
        table = all_words[first]
        between = [w for w in all_words[first + 1 : at] if w.upper != "AS"]
        behind = [w for w in all_words[close + 1 : close + 3] if w.upper != "AS"][:1]
        named = between or [w for w in behind if w.name and w.upper not in _NO_ALIAS]
        alias = name_of(named[0].text) if named else None
        found.append(Windowed(name_of(table.text), alias, table.start, seconds(length.text), count, by))
        plain = plain[: word.start] + " " * (all_words[close].end - word.start) + plain[all_words[close].end :]
    return tuple(found), plain


_NO_ALIAS = frozenset(
    [
        "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI", "PATTERN", "USING", "ON", "WHERE",
        "GROUP BY", "HAVING", "ORDER BY", "UNION", "EXCEPT", "INTERSECT", "MINUS", "LIMIT",
    ]
)  # fmt: skip


def _alias(from_: Cut) -> str | None:
    """Of the first table: before or behind its window or pattern."""
    found = from_.words
    at = 1
    while at < len(found):
        if found[at].text == "[":
            at = _closing(found, at) + 1
        elif (found[at].upper == "PATTERN" and at + 1 < len(found) and found[at + 1].text == "[") or found[
            at
        ].upper == "AS":
            at += 1
        elif found[at].name and found[at].upper not in _NO_ALIAS:
            return name_of(found[at].text)
        else:
            break
    return None


def _pattern(from_: Cut) -> tuple[tuple[str, bool], ...]:
    """The variables, each with whether it has a plus."""
    found = from_.words
    for at, word in enumerate(found[:-1]):
        if word.upper == "PATTERN" and found[at + 1].text == "[":
            inside = from_.cut(found[at + 1].end, found[_closing(found, at + 1)].start)
            return tuple((name_of(span.words[0].text), span.words[-1].text == "+") for span in inside.items())
    return ()
