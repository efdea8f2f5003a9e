"""Query text -> clauses: what is selected, from what, which pattern or window, and under which conditions.

SELECT ... FROM s PATTERN [a, b+, c] [WHERE ...] [GROUP BY ...] [HAVING ...] [ORDER BY ...]
SELECT ... FROM s [WINDOW 1 day SLIDE 1 hour] [JOIN d ON ...] [WHERE ...] [GROUP BY ...] [HAVING ...]
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from partwise.parts import BadTime, seconds
from partwise.sql.parse import SqlProblem, TranslationError
from partwise.sql.text import Piece, Token, plain, wants_operand

SUPPORTED = "SELECT ... FROM one table with PATTERN [...] or [WINDOW ...], WHERE, GROUP BY, HAVING, ORDER BY (patterns)"
_CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY")
_REFUSED = (
    "WITH", "UNION", "INTERSECT", "EXCEPT", "MINUS", "LIMIT", "OFFSET", "QUALIFY", "WINDOW", "LATERAL", "SORT BY",
    "CLUSTER BY", "DISTRIBUTE BY", "PIVOT", "UNPIVOT", "TABLESAMPLE", "MATCH_RECOGNIZE",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Item:
    """One expression of the SELECT list. `alias` is None where the query gives no name."""

    body: Piece
    alias: str | None


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    plus: bool
    offset: int


@dataclass(frozen=True, slots=True)
class WindowClause:
    """Lengths in seconds; `slide` is None where the query does not say it."""

    length: int
    slide: int | None
    offset: int


@dataclass(frozen=True, slots=True)
class Query:
    items: tuple[Item, ...]
    table: str
    table_offset: int
    alias: str | None
    joins: Piece | None
    pattern: tuple[Variable, ...] | None
    window: WindowClause | None
    where: Piece | None
    group_by: tuple[Piece, ...]
    having: Piece | None
    order_by: tuple[Piece, ...]


def parse(text: str) -> Query:
    query = Piece.of_query(text)
    clauses = _clauses(query)
    table, table_offset, alias, joins, pattern, window = _from(clauses["FROM"])
    return Query(
        items=_items(clauses["SELECT"]),
        table=table,
        table_offset=table_offset,
        alias=alias,
        joins=joins,
        pattern=pattern,
        window=window,
        where=clauses.get("WHERE"),
        group_by=tuple(_group_by(clauses.get("GROUP BY"))),
        having=clauses.get("HAVING"),
        order_by=tuple(clauses["ORDER BY"].split()) if "ORDER BY" in clauses else (),
    )


def _clauses(query: Piece) -> dict[str, Piece]:
    if not query.tokens or query.tokens[0].upper != "SELECT":
        raise TranslationError(
            SqlProblem(0, "bad-query", "the query must begin with SELECT", f"supported: {SUPPORTED}")
        )
    heads: list[Token] = []
    problems: list[SqlProblem] = []
    for at, token in enumerate(query.tokens):
        if token.depth == 0 and token.keyword in _CLAUSES and not _is_distinct_from(query.tokens, at):
            if any(t.upper == token.upper for t in heads):
                problems.append(
                    SqlProblem(token.start, "bad-query", f"a second {token.upper}", f"supported: {SUPPORTED}")
                )
            heads.append(token)
        elif token.depth == 0 and token.keyword in _REFUSED and not wants_operand(query.tokens[at - 1]):
            problems.append(
                SqlProblem(
                    token.start, "unsupported-clause", f"{token.upper} is not supported here", f"supported: {SUPPORTED}"
                )
            )
    if not any(t.upper == "FROM" for t in heads):
        problems.append(SqlProblem(0, "bad-query", "FROM is missing", f"supported: {SUPPORTED}"))
    if problems:
        raise TranslationError(*problems)
    ends = [*(t.start for t in heads[1:]), len(query.text)]
    found = {t.upper: query.cut(t.end, end) for t, end in zip(heads, ends, strict=True)}
    empty = [t for t in heads if not found[t.upper].text]
    if empty:
        raise TranslationError(*(SqlProblem(t.start, "bad-query", f"nothing follows {t.upper}") for t in empty))
    return found


def _is_distinct_from(tokens: tuple[Token, ...], at: int) -> bool:
    """`x IS [NOT] DISTINCT FROM y` is a comparison."""
    before = [t.upper for t in tokens[max(0, at - 2) : at]]
    return tokens[at].upper == "FROM" and before[-1:] == ["DISTINCT"] and before[0] in ("IS", "NOT", "IS NOT")


def _items(clause: Piece) -> tuple[Item, ...]:
    if clause.tokens[0].upper == "DISTINCT":
        raise TranslationError(
            SqlProblem(
                clause.offset, "unsupported-clause", "SELECT DISTINCT is not supported", "GROUP BY makes rows unique"
            )
        )
    return tuple(_item(piece) for piece in clause.split())


def _item(piece: Piece) -> Item:
    if not piece.text:
        raise TranslationError(SqlProblem(piece.offset, "bad-query", "an expression is missing between commas"))
    tokens = piece.tokens
    last = tokens[-1]
    if len(tokens) > 1 and last.word and last.depth == 0:
        if tokens[-2].upper == "AS":
            return Item(piece.cut(piece.offset, tokens[-2].start), last.text.strip("`"))
        # `SUM(x) total`: a name straight after an operand, not after an operator or a dot
        if last.upper not in ("END", "NULL", "TRUE", "FALSE") and isinstance(piece.tree, exp.Alias):
            return Item(piece.cut(piece.offset, last.start), last.text.strip("`"))
    if tokens[0].text == "*" or (last.text == "*" and len(tokens) == 3):
        raise TranslationError(
            SqlProblem(
                piece.offset, "select-star", "SELECT * is not supported", "name the group columns and aggregates"
            )
        )
    return Item(piece, None)


def _group_by(clause: Piece | None) -> list[Piece]:
    if clause is None:
        return []
    for token in clause.tokens:
        if token.depth == 0 and token.keyword in ("ROLLUP", "CUBE", "GROUPING", "ALL", "WITH", "GROUPING SETS"):
            raise TranslationError(
                SqlProblem(
                    token.start, "unsupported-clause", f"GROUP BY {token.upper} is not supported", "name the columns"
                )
            )
    return clause.split()


_From = tuple[str, int, str | None, Piece | None, tuple[Variable, ...] | None, WindowClause | None]


def _from(clause: Piece) -> _From:
    tokens = clause.tokens
    first = tokens[0]
    if not first.word:
        raise TranslationError(
            SqlProblem(
                first.start,
                "bad-from",
                f"a table name must follow FROM, found '{first.text}'",
                f"supported: {SUPPORTED}",
            )
        )
    alias: str | None = None
    pattern: tuple[Variable, ...] | None = None
    window: WindowClause | None = None
    at = 1
    while at < len(tokens):
        token = tokens[at]
        begins_pattern = token.upper == "PATTERN" and at + 1 < len(tokens) and tokens[at + 1].text == "["
        begins_window = token.text == "[" and at + 1 < len(tokens) and tokens[at + 1].upper == "WINDOW"
        if (begins_pattern and pattern is not None) or (begins_window and window is not None):
            what = "PATTERN" if begins_pattern else "WINDOW"
            raise TranslationError(SqlProblem(token.start, "bad-from", f"a second {what}", "a query has one of them"))
        if begins_pattern:
            end = _closing(tokens, at + 1)
            pattern = _pattern(clause.cut(tokens[at + 1].end, tokens[end].start))
            at = end + 1
        elif begins_window:
            end = _closing(tokens, at)
            window = read_window(clause.cut(tokens[at + 1].end, tokens[end].start), token.start)
            at = end + 1
        elif token.upper == "AS" and at + 1 < len(tokens) and tokens[at + 1].word:
            alias, at = tokens[at + 1].text, at + 2
        elif alias is None and token.word and token.upper not in _JOIN_WORDS:
            alias, at = token.text, at + 1
        else:
            break
    if pattern is None and window is None:
        raise TranslationError(
            SqlProblem(first.start, "no-pattern", f"neither PATTERN nor WINDOW follows {first.text}",
                    "write FROM s PATTERN [a, b+] or FROM s [WINDOW 10 minutes]; a plain query goes under update:")
        )  # fmt: skip
    if pattern is not None and window is not None:
        raise TranslationError(SqlProblem(first.start, "bad-from", "PATTERN and WINDOW are not allowed in one query"))
    joins = clause.cut(tokens[at].start, clause.offset + len(clause.text)) if at < len(tokens) else None
    return first.text.strip("`"), first.start, alias, joins, pattern, window


_JOIN_WORDS = ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI", "PATTERN", "USING", "ON")


def _closing(tokens: tuple[Token, ...], opening: int) -> int:
    for at in range(opening + 1, len(tokens)):
        if tokens[at].text == "]" and tokens[at].depth == tokens[opening].depth:
            return at
    raise TranslationError(SqlProblem(tokens[opening].start, "bad-from", "'[' is not closed by ']'"))


def _pattern(inside: Piece) -> tuple[Variable, ...]:
    found: list[Variable] = []
    problems: list[SqlProblem] = []
    hint = "write variables with commas between them, + for one or more rows: PATTERN [a, b+, c]"
    for piece in inside.split() or [inside]:
        words = piece.tokens
        good = (len(words) == 1 or (len(words) == 2 and words[1].text == "+")) and words[0].word
        if not good:
            what = f"'{piece.text}' is not a pattern variable" if piece.text else "a pattern variable is missing"
            problems.append(SqlProblem(piece.offset, "bad-pattern", what, hint))
        elif any(v.name == plain(words[0].text) for v in found):
            problems.append(
                SqlProblem(piece.offset, "bad-pattern", f"variable {words[0].text} appears twice in the pattern", hint)
            )
        else:
            found.append(Variable(plain(words[0].text), len(words) == 2, piece.offset))
    if problems:
        raise TranslationError(*problems)
    return tuple(found)


def read_window(inside: Piece, offset: int) -> WindowClause:
    slides = [t for t in inside.tokens if t.upper == "SLIDE"]
    end = inside.offset + len(inside.text)
    length = inside.cut(inside.offset, slides[0].start if slides else end)
    slide = inside.cut(slides[0].end, end) if slides else None
    return WindowClause(seconds_of(length), seconds_of(slide) if slide else None, offset)


def seconds_of(piece: Piece) -> int:
    try:
        return seconds(piece.text)
    except BadTime as why:
        raise TranslationError(
            SqlProblem(piece.offset, "bad-window", str(why), "write [WINDOW 10 minutes] or [WINDOW 1 day SLIDE 1 hour]")
        ) from None
