"""Query text with windows -> the plain query around them, and its streams with their places.

`measurements [WINDOW 10 minutes] a JOIN alarms [WINDOW 5 minutes] b ON ...`: the windows are blanked, so that the rest
is ordinary SQL which the one reader of SQL understands; all places stay as they are.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from partwise.compile.model import InputTable
from partwise.compile.parse import WindowClause, read_window, seconds_of
from partwise.compile.several.rows import LastRows, read_rows
from partwise.parts import Bound, Reference
from partwise.spelling import named
from partwise.sql.parse import SqlProblem, TranslationError
from partwise.sql.references import FoundReference, analyse
from partwise.sql.text import Piece, Token, cut_at_quotes, plain

if TYPE_CHECKING:
    from sqlglot import exp

_SETS = ("UNION", "EXCEPT", "INTERSECT", "MINUS")


@dataclass(frozen=True, slots=True)
class Stream:
    """A table with a window. `start`..`end` is its name, `bracket` the window behind it."""

    table: InputTable
    alias: str | None
    start: int
    end: int
    bracket: tuple[int, int]
    window: WindowClause
    rows: LastRows | None = None

    @property
    def name(self) -> str:
        """What its columns are qualified with."""
        return self.alias or self.table.name

    def ratio(self, part: int) -> int:
        """Parts of the stream in a part of the view."""
        return part // (self.table.part or part)

    def parts(self) -> int:
        """Parts of the stream in a window."""
        return self.window.length // (self.table.part or self.window.length)

    def panes(self, part: int) -> int:
        """Parts of the view in a window."""
        return self.window.length // part

    def reference(self, part: int, parts: int | None = None) -> Reference:
        """The window of part j, or the newest `parts` of it."""
        ratio, count = self.ratio(part), self.parts() if parts is None else parts
        return Reference(Bound(ratio, ratio - count), Bound(ratio, ratio - 1))


@dataclass(frozen=True)
class Several:
    """`text` is the query without comments, `plain` the same without windows; `tree` is sqlglot's of the latter."""

    text: str
    plain: str
    tree: exp.Expr
    streams: tuple[Stream, ...]
    dimensions: tuple[tuple[str, InputTable], ...]

    def write(self, names: Sequence[str], end: int | None = None) -> str:
        """The query with these texts instead of its streams, up to `end`."""
        out, at = [], 0
        for stream, name in zip(self.streams, names, strict=True):
            alias = f" {stream.table.name}" if stream.alias is None and name.startswith("(") else ""
            out += [self.plain[at : stream.start], name, alias]
            at = stream.end
        return tidy("".join([*out, self.plain[at:end]]))


def tidy(text: str) -> str:
    """Without the blanks that comments and windows leave behind; strings and quoted names stay as they are."""
    pieces = cut_at_quotes(text)
    for at in range(0, len(pieces), 2):
        lined = re.sub(r"[ \t]+(?=\n)", "", pieces[at])
        lined = re.sub(r"(?<=\S)[ \t]+(?=\))", "", re.sub(r"(?<=[^\s])[ \t]{2,}(?=\S)", " ", lined))
        pieces[at] = re.sub(r"\n(?:[ \t]*\n)+", "\n", lined)
    return "".join(pieces).strip()


@dataclass(frozen=True, slots=True)
class _Bracket:
    start: int
    end: int
    kind: str
    inside: Piece


def brackets(query: Piece) -> list[_Bracket]:
    """`[WINDOW ...]` and `[ROWS ...]`."""
    found, tokens = [], query.tokens
    for at, token in enumerate(tokens[:-1]):
        kind = tokens[at + 1].upper
        if token.text == "[" and kind in ("WINDOW", "ROWS"):
            close = next(t for t in tokens[at + 1 :] if t.text == "]" and t.depth == token.depth)
            found.append(_Bracket(token.start, close.end, kind, query.cut(tokens[at + 1].end, close.start)))
    return found


def is_several(text: str, inputs: Mapping[str, InputTable]) -> bool:
    """Whether a query is more than one window with GROUP BY, which has a translation of its own."""
    query = Piece.of_query(text)
    found, words = brackets(query), query.tokens
    if not found or pattern_in(text) is not None:
        return False
    if len(found) > 1 or found[0].kind == "ROWS" or any(t.keyword in _SETS for t in words):
        return True
    if any((a.keyword, b.keyword) == ("SELECT", "DISTINCT") or a.keyword == "FREQUENT" for a, b in _pairs(words)):
        return True
    if {"ORDER BY", "LIMIT"} <= {t.keyword for t in words if t.depth == 0}:
        return True
    if any(a.keyword == "FROM" and a.depth == 0 and b.text == "(" for a, b in _pairs(words)):
        return True
    tables = analyse(_without(query.text, found)).found.tables
    kinds = [t.kind for f in tables if (t := named(inputs, f.table)) is not None]
    return sum(kind != "dimension" for kind in kinds) > 1


def is_plain(text: str) -> bool:
    """Whether a query shows rows as they are: neither groups nor aggregates."""
    from sqlglot import exp

    tree = analyse(without_windows(text)).tree
    groups = isinstance(tree, exp.Select) and (tree.args.get("group") or tree.args.get("having"))
    return isinstance(tree, exp.Select) and not groups and tree.find(exp.AggFunc) is None


def pattern_in(text: str) -> int | None:
    """Where PATTERN stands."""
    pairs = _pairs(Piece.of_query(text).tokens)
    return next((a.start for a, b in pairs if a.upper == "PATTERN" and b.text == "["), None)


def read(text: str, inputs: Mapping[str, InputTable]) -> Several:
    """Raises TranslationError with every problem of FROM."""
    query = Piece.of_query(text)
    found = brackets(query)
    clean = _without(query.text, found)
    analysis = analyse(clean)
    unread = [SqlProblem(p.start, "bad-query", p.message, p.hint) for p in analysis.found.problems]
    if analysis.tree is None or unread:
        raise TranslationError(*unread or [SqlProblem(0, "bad-query", "the query cannot be read")])
    problems: list[SqlProblem] = []
    streams: list[Stream] = []
    dimensions: list[tuple[str, InputTable]] = []
    tables = analysis.found.tables
    for at, table in enumerate(tables):
        until = tables[at + 1].start if at + 1 < len(tables) else len(clean)
        mine = [b for b in found if table.end <= b.start < until and _belongs(query, table, b)]
        known = named(inputs, table.table)
        try:
            if known is None:
                problems.append(no_table(table.table, table.start, inputs))
            elif known.kind == "dimension":
                problems += [_no_parts(b.start, known) for b in mine]
                dimensions.append((plain(table.alias or table.table), known))
            elif not mine:
                problems.append(_no_window(table, known, streams))
            else:
                streams.append(_stream(known, table, mine[0]))
        except TranslationError as error:
            problems += error.problems
    owned = {s.bracket[0] for s in streams}
    loose = [b for b in found if b.start not in owned and not problems]
    problems += [
        SqlProblem(b.start, "bad-from", f"{b.kind} follows no table", "write it behind a table") for b in loose
    ]
    if not streams and not problems:
        problems.append(
            SqlProblem(0, "bad-from", "no stream with a window is read", "write FROM s [WINDOW 10 minutes]")
        )
    if problems:
        raise TranslationError(*problems)
    return Several(query.text, clean, analysis.tree, tuple(streams), tuple(dimensions))


def _stream(table: InputTable, found: FoundReference, bracket: _Bracket) -> Stream:
    span = (bracket.start, bracket.end)
    if bracket.kind == "ROWS":
        rows = read_rows(bracket.inside, bracket.start, table)
        return Stream(table, found.alias, found.start, found.end, span, rows.window, rows)
    window = read_window(bracket.inside, bracket.start)
    return Stream(table, found.alias, found.start, found.end, span, window)


def _belongs(query: Piece, table: FoundReference, bracket: _Bracket) -> bool:
    """Between a table and its window there is an alias at most."""
    between = [t for t in query.tokens if table.end <= t.start < bracket.start]
    return all(t.word for t in between) and len(between) <= 2


def windows_in(text: str) -> tuple[str, dict[int, tuple[str, int]]]:
    """The query without its windows; by the place of a table's name its kind, WINDOW or ROWS, and seconds."""
    query = Piece.of_query(text)
    found = brackets(query)
    clean, windows = _without(query.text, found), {}
    for table in analyse(clean).found.tables:
        for bracket in found:
            if table.end <= bracket.start and _belongs(query, table, bracket):
                inside = bracket.inside
                if bracket.kind == "ROWS":
                    within = next(t for t in inside.tokens if t.upper == "WITHIN")
                    seconds = seconds_of(inside.cut(within.end, inside.offset + len(inside.text)))
                else:
                    seconds = read_window(inside, bracket.start).length
                windows[table.start] = (bracket.kind, seconds)
    return clean, windows


def without_windows(text: str) -> str:
    query = Piece.of_query(text)
    return _without(query.text, brackets(query))


def _without(text: str, found: list[_Bracket]) -> str:
    for bracket in found:
        blank = " " * (bracket.end - bracket.start)
        text = text[: bracket.start] + blank + text[bracket.end :]
    return text


def _pairs(tokens: tuple[Token, ...]) -> list[tuple[Token, Token]]:
    return list(pairwise(tokens))


def no_table(name: str, offset: int, inputs: Mapping[str, InputTable]) -> SqlProblem:
    near = difflib.get_close_matches(name, list(inputs), 1)
    hint = f"did you mean {near[0]}?" if near else f"tables: {', '.join(sorted(inputs)) or 'none'}"
    return SqlProblem(offset, "unknown-table", f"there is no table {name}", hint)


def _no_parts(offset: int, table: InputTable) -> SqlProblem:
    return SqlProblem(offset, "bad-from", f"{table.name} is a dimension: it has no parts", "remove the window")


def _no_window(found: FoundReference, table: InputTable, streams: list[Stream]) -> SqlProblem:
    from partwise.parts import duration_text

    length = duration_text(streams[0].window.length) if streams else "5 minutes"
    what = f"{table.name} is a stream without a window"
    return SqlProblem(found.start, "bad-from", what, f"write {found.table} [WINDOW {length}]")
