"""Pieces of query text that know where they stand.

The text that people wrote is cut and spliced, never generated again from a tree: a generator renames
functions and drops what it does not know. Trees serve to understand a piece, the text to write it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.errors import ParseError, TokenError

from partwise.sql import tokens as sqlglot_tokens
from partwise.sql.parse import SqlProblem, TranslationError, tokenise

_OPEN, _CLOSE = {"(", "[", "{"}, {")", "]", "}"}


@dataclass(frozen=True, slots=True)
class Token:
    """`upper` is how words are compared; quoted names and strings keep their quotes in it. `dotted`: beside a dot."""

    text: str
    start: int
    end: int
    depth: int
    dotted: bool = False

    @property
    def upper(self) -> str:
        return " ".join(self.text.upper().split())

    @property
    def keyword(self) -> str:
        """Empty where the word can only be a name: `a.end`, `case.x`."""
        return "" if self.dotted else self.upper

    @property
    def word(self) -> bool:
        return self.text[0].isalpha() or self.text[0] in "_`"


@dataclass(frozen=True, eq=False)
class Piece:
    """Part of a query; `offset` is its place in the whole text."""

    text: str
    offset: int = 0

    @classmethod
    def of_query(cls, text: str) -> Piece:
        """The whole query, comments and a final semicolon replaced by blanks so that offsets stay."""
        tokens = list(_tokens(text))
        _refuse_unclosed(tokens)
        clean = "".join(c if c.isspace() else " " for c in text)
        for token in tokens:
            clean = clean[: token.start] + text[token.start : token.end] + clean[token.end :]
        if tokens and tokens[-1].text == ";":
            clean = clean[: tokens[-1].start].ljust(len(text))
        return cls(clean)

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return tuple(_tokens(self.text, self.offset))

    @cached_property
    def tree(self) -> exp.Expression:
        """The expression, for looking at. Raises TranslationError where it cannot be read."""
        hint = "write an expression of Spark SQL, with backticks around names that are words of SQL"
        if not self.text:
            raise TranslationError(SqlProblem(self.offset, "bad-expression", "an expression is missing here", hint))
        try:
            # As an expression: a column `set` or `comment` alone would be taken for a statement.
            (found,) = Spark().parser().parse_into(exp.Expr, _tokenised(self.text), _BEFORE + self.text)
        except ParseError as error:
            where = error.errors[0] if error.errors else {}
            line = where.get("line", 1)
            column = where.get("col", 1) - len(where.get("highlight") or "") - (len(_BEFORE) if line == 1 else 0)
            offset = self._at(line, column)
            message = f"{complaint(error)} in '{self.text}'"
            raise TranslationError(SqlProblem(offset, "bad-expression", message, hint)) from None
        if not isinstance(found, exp.Expression):
            raise TranslationError(SqlProblem(self.offset, "bad-expression", f"'{self.text}' is no expression", hint))
        for name in found.find_all(exp.Identifier):
            name.meta.update({key: name.meta[key] - len(_BEFORE) for key in ("start", "end") if key in name.meta})
        return found

    def _at(self, line: int, column: int) -> int:
        before = self.text.split("\n")[: line - 1]
        at = sum(len(row) + 1 for row in before) + max(0, column)
        return self.offset + min(at, max(0, len(self.text) - 1))

    def cut(self, start: int, end: int) -> Piece:
        """From `start` to `end` (places in the whole query), without blanks around."""
        text = self.text[start - self.offset : end - self.offset]
        lead = len(text) - len(text.lstrip()) if text.strip() else 0
        return Piece(text.strip(), start + lead)

    def splice(self, changes: Iterable[tuple[int, int, str]]) -> str:
        """The text with some spans (places in the whole query) written differently."""
        text = self.text
        for start, end, new in sorted(changes, reverse=True):
            text = text[: start - self.offset] + new + text[end - self.offset :]
        return text

    def split(self, separator: str = ",") -> list[Piece]:
        """At every separator that stands outside parentheses."""
        if not self.tokens:
            return []
        cuts = [t for t in self.tokens if t.upper == separator and t.depth == 0]
        starts = [self.offset, *(t.end for t in cuts)]
        ends = [*(t.start for t in cuts), self.offset + len(self.text)]
        return [self.cut(a, b) for a, b in zip(starts, ends, strict=True)]

    def conjuncts(self) -> list[Piece]:
        """At every AND outside parentheses, CASE ... END and BETWEEN ... AND; whole if there is an OR."""
        cuts: list[Token] = []
        cases = betweens = 0
        for before, token in zip((None, *self.tokens), self.tokens, strict=False):
            if token.depth:
                continue
            if token.keyword == "CASE":
                cases += 1
            elif token.keyword == "END":
                # A column may be called so: the END of a CASE follows an operand, a column does not.
                cases -= cases > 0 and not wants_operand(before)
            elif cases == 0 and token.keyword == "BETWEEN":
                betweens += 1
            elif cases == 0 and token.keyword == "OR":
                return [self]
            elif cases == 0 and token.keyword == "AND":
                if betweens:
                    betweens -= 1
                else:
                    cuts.append(token)
        starts = [self.offset, *(t.end for t in cuts)]
        ends = [*(t.start for t in cuts), self.offset + len(self.text)]
        found = [self.cut(a, b) for a, b in zip(starts, ends, strict=True)]
        if len(found) == 1:
            inner = self.unwrapped()
            return [self] if inner is self else inner.conjuncts()
        return [piece for part in found for piece in part.conjuncts()]

    def unwrapped(self) -> Piece:
        """Without parentheses around the whole."""
        tokens = self.tokens
        around = len(tokens) > 2 and tokens[0].text == "(" and tokens[-1].text == ")"
        if around and all(t.depth > 0 for t in tokens[1:-1]):
            return self.cut(tokens[0].end, tokens[-1].start).unwrapped()
        return self


def complaint(error: ParseError) -> str:
    """What the parser says, without words from inside it."""
    what = str(error.errors[0].get("description") or "") if error.errors else ""
    return "something is missing" if not what or "<class" in what or "<Token" in what else what.rstrip(".")


#: A text that begins with `show` or `explain` would be one token, a command: so it begins with something else.
_BEFORE = "SELECT "


def _tokenised(text: str) -> list[sqlglot_tokens.Token]:
    return [_as_name(token) for token in list(Spark().tokenize(_BEFORE + text))[1:]]


def _as_name(token: sqlglot_tokens.Token) -> sqlglot_tokens.Token:
    """Words that only begin statements are names in a query: `(describe > 1)`."""
    if token.token_type.name not in _STATEMENTS:
        return token
    place = {"line": token.line, "col": token.col, "start": token.start, "end": token.end}
    return sqlglot_tokens.Token(sqlglot_tokens.TokenType.VAR, token.text, comments=token.comments, **place)


_STATEMENTS = frozenset(["ALTER", "CREATE", "DESCRIBE", "DROP", "GRANT", "INSERT", "REVOKE", "ROLLBACK", "UNCACHE"])


def _tokens(text: str, offset: int = 0) -> Iterator[Token]:
    try:
        found = _tokenised(text)
    except TokenError:
        problem = tokenise(text).problem
        where, what = (problem.start, problem.message) if problem is not None else (0, "the query cannot be read")
        raise TranslationError(SqlProblem(offset + where, "bad-query", what)) from None
    spans = [(token.start - len(_BEFORE), token.end + 1 - len(_BEFORE)) for token in found]
    # `10L` comes as three tokens of one place
    spans = [span for before, span in zip([(-1, 0), *spans], spans, strict=False) if span[0] >= before[1]]
    words = [text[start:end] for start, end in spans]
    depth = 0
    for at, ((start, end), word) in enumerate(zip(spans, words, strict=True)):
        if word in _CLOSE:
            depth -= 1
        dotted = "." in words[max(0, at - 1) : at + 2 : 2] if at else words[1:2] == ["."]
        yield Token(word, start + offset, end + offset, max(depth, 0), dotted)
        if word in _OPEN:
            depth += 1


def _refuse_unclosed(tokens: list[Token]) -> None:
    """Every bracket that has no partner, at its own place: all that follows would be read wrongly."""
    partner = {")": "(", "]": "[", "}": "{"}
    waiting: list[Token] = []
    for token in tokens:
        if token.text in _OPEN:
            waiting.append(token)
        elif token.text in _CLOSE and waiting and waiting[-1].text == partner[token.text]:
            waiting.pop()
        elif token.text in _CLOSE and not waiting:
            raise TranslationError(SqlProblem(token.start, "bad-query", f"'{token.text}' closes nothing"))
        elif token.text in _CLOSE:
            break
    if waiting:
        raise TranslationError(SqlProblem(waiting[-1].start, "bad-query", f"'{waiting[-1].text}' is never closed"))


def wants_operand(before: Token | None) -> bool:
    """Whether what follows this token must be an operand: behind an operator, a comma, at the beginning."""
    if before is None:
        return True
    symbol = not before.word and before.text[0] not in "'\")]}" and not before.text[0].isdigit()
    return symbol or before.keyword in _BEFORE_OPERANDS or before.keyword.endswith(" BY")


_BEFORE_OPERANDS = frozenset(
    [
        "AND", "AS", "BETWEEN", "BY", "CASE", "DISTINCT", "DIV", "ELSE", "FROM", "HAVING", "ILIKE", "IN", "LIKE", "NOT", "ON",
        "OR", "REGEXP", "RLIKE", "SELECT", "THEN", "WHEN", "WHERE",
    ]
)  # fmt: skip


def cut_at_quotes(text: str) -> list[str]:
    """Text outside quotes and quoted text in turn, beginning outside: strings and quoted names as they are written."""
    pieces, at = [], 0
    for token in tokenise(text).tokens:
        if text[token.end] in "'\"`":
            pieces += [text[at : token.start], text[token.start : token.end + 1]]
            at = token.end + 1
    return [*pieces, text[at:]]


def one_line(text: str) -> str:
    """White space made single, except inside strings and quoted names."""
    parts = cut_at_quotes(text)
    for at, part in enumerate(parts):
        parts[at] = part.replace("\n", "\\n") if at % 2 else re.sub(r"\s+", " ", part)
    return "".join(parts).strip()


def unwrapped(text: str) -> str:
    """Without parentheses around the whole."""
    return Piece(text).unwrapped().text


def without_strings(text: str) -> str:
    """Of the same length, for looking at signs that may stand in strings, too."""
    return "".join("x" * len(part) if at % 2 else part for at, part in enumerate(cut_at_quotes(text)))


def conjunct(text: str) -> str:
    """A condition as it stands between ANDs: in parentheses where it has an OR outside of all others."""
    return f"({text})" if any(t.depth == 0 and t.keyword == "OR" for t in _tokens(text)) else text


def operand(text: str) -> str:
    """An expression as it stands beside an operator: in parentheses unless it is a name, a literal or one call."""
    found = list(_tokens(text))
    simple = all(t.word or t.text == "." for t in found) and not any(t.keyword in _OPERATORS for t in found)
    call = found[-1].text == ")" and found[0].word and all(t.depth > 0 for t in found[2:-1]) and found[1].text == "("
    return text if simple or len(found) == 1 or (call and found[0].upper not in _OPERATORS) else f"({text})"


_OPERATORS = frozenset(["AND", "BETWEEN", "CASE", "DISTINCT", "EXISTS", "IN", "IS", "LIKE", "NOT", "OR", "RLIKE"])


def plain(name: str) -> str:
    """A name as it is compared: Spark ignores case, quoted or not."""
    return name.strip("`").replace("``", "`").lower()


def quoted(name: str) -> str:
    """A name as it is written: with quotes where it needs them."""
    simple = name.replace("_", "a").isalnum() and not name[0].isdigit() and name.isascii()
    return name if simple and name.upper() not in _RESERVED | _STATEMENTS else "`" + name.replace("`", "``") + "`"


# Words that would end or change a clause if a column of that name stood there without quotes.
_RESERVED = frozenset(
    [
        "ALL",
        "AND",
        "ANTI",
        "ANY",
        "AS",
        "BETWEEN",
        "BY",
        "CASE",
        "CROSS",
        "DISTINCT",
        "ELSE",
        "END",
        "EXCEPT",
        "FALSE",
        "FILTER",
        "FOR",
        "FROM",
        "FULL",
        "GROUP",
        "HAVING",
        "IN",
        "INNER",
        "INTERSECT",
        "INTO",
        "IS",
        "JOIN",
        "LATERAL",
        "LEFT",
        "LIKE",
        "LIMIT",
        "MINUS",
        "NATURAL",
        "NOT",
        "NULL",
        "OFFSET",
        "ON",
        "OR",
        "ORDER",
        "OUTER",
        "OVER",
        "RIGHT",
        "SELECT",
        "SEMI",
        "SET",
        "SOME",
        "TABLE",
        "THEN",
        "TO",
        "TRUE",
        "UNION",
        "UNIQUE",
        "UNKNOWN",
        "USING",
        "VALUES",
        "WHEN",
        "WHERE",
        "WINDOW",
        "WITH",
    ]
)
