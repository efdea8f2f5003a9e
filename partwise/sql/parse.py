"""Spark SQL to tokens and a tree, by sqlglot, which is imported with the first statement and not before.

Nothing here raises for any text: what cannot be understood comes back as a `SqlProblem` with its
place in the text.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlglot import exp

    from partwise.sql.tokens import Token

#: Deeper nesting than this is never written by a person, and would exhaust the parser.
_DEEPEST = 60
_LONGEST = 200_000


@dataclass(frozen=True, slots=True)
class SqlProblem:
    """Something wrong at a place in a text: `start` and `end` are offsets, `end` excluded and None where only the start
    is known. Only `error` keeps the text from being used."""

    start: int
    code: str
    message: str
    hint: str = ""
    end: int | None = None
    severity: str = "error"


class TranslationError(Exception):
    """Everything that is wrong with one query, in order of position."""

    def __init__(self, *problems: SqlProblem) -> None:
        self.problems = tuple(sorted(dict.fromkeys(problems), key=lambda problem: problem.start))
        super().__init__("; ".join(f"{problem.code}: {problem.message}" for problem in self.problems))


@dataclass(frozen=True)
class Tokens:
    """The tokens of a text, or why there are none."""

    tokens: tuple[Token, ...] = ()
    problem: SqlProblem | None = None


@dataclass(frozen=True)
class SqlTree:
    """The tree of a text, or why there is none."""

    root: exp.Expr | None = None
    problems: tuple[SqlProblem, ...] = field(default=())


@cache
def dialect() -> Any:
    """sqlglot's Spark dialect. A fifth of a second, once per process, and only if SQL is read."""
    from sqlglot.dialects.spark import Spark

    # sqlglot warns on stderr about statements it only half understands; we report them ourselves.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    return Spark()


def tokenise(sql: str) -> Tokens:
    if len(sql) > _LONGEST:
        message = f"the statement has {len(sql):,} characters; at most {_LONGEST:,} are read"
        return Tokens(problem=SqlProblem(0, "sql-syntax", message, end=1))
    try:
        return Tokens(_window_as_name(dialect().tokenize(sql)))
    except Exception as why:  # the tokenizer has one error for everything
        start, what = _unclosed(sql)
        if what:
            message = f"{what} that starts here is never closed"
        else:
            message = f"this cannot be read as SQL ({type(why).__name__})"
        return Tokens(problem=SqlProblem(start, "sql-syntax", message, end=start + 1))


def _window_as_name(tokens: list[Token]) -> tuple[Token, ...]:
    """`window(time, '5 minutes')` and `window.start` are a function and a column, which sqlglot takes for a clause."""
    from partwise.sql.tokens import TokenType

    out = list(tokens)
    for at, (token, following) in enumerate(pairwise(tokens)):
        if token.token_type == TokenType.WINDOW and following.token_type in (TokenType.L_PAREN, TokenType.DOT):
            place = {"line": token.line, "col": token.col, "start": token.start, "end": token.end}
            out[at] = type(token)(TokenType.VAR, token.text, **place, comments=token.comments)
    return tuple(out)


def parse(sql: str, tokens: tuple[Token, ...]) -> SqlTree:
    """The tree of exactly one query."""
    if not tokens:
        return _failed("sql-syntax", "there is no SQL here", 0, 0, "write a SELECT")
    if (deep := _too_deep(tokens)) is not None:
        return _failed("sql-syntax", f"nested more than {_DEEPEST} levels deep", deep.start, deep.end)
    try:
        statements = [s for s in dialect().parser().parse(list(tokens), sql) if s is not None]
    except Exception as why:
        return _failed(*_reason(why, tokens))
    return _one_query(statements, tokens)


def _one_query(statements: list[exp.Expr], tokens: tuple[Token, ...]) -> SqlTree:
    from sqlglot import exp

    first = tokens[0]
    if not statements:
        return _failed("sql-syntax", "there is no SQL here", first.start, first.end, "write a SELECT")
    if len(statements) > 1:
        at = next((t for t in tokens if t.token_type.name == "SEMICOLON"), first)
        message = f"{len(statements)} statements were found; a definition has exactly one query"
        return _failed("not-a-query", message, at.start, at.end, "keep one SELECT, without semicolons inside")
    if (semicolon := next((t for t in tokens if t.token_type.name == "SEMICOLON"), None)) is not None:
        return _failed("not-a-query", "a semicolon inside the query", semicolon.start, semicolon.end, "remove it")
    root: exp.Expr = statements[0]
    while isinstance(root, exp.Subquery) and isinstance(root.this, exp.Query) and not root.alias:
        root = root.this
    if not isinstance(root, exp.Select | exp.SetOperation | exp.Values):
        message = f"{first.text.upper()} is not a query"
        hint = "write a SELECT (or WITH ... SELECT): Partwise itself creates and fills the table"
        return _failed("not-a-query", message, first.start, first.end, hint)
    return SqlTree(statements[0])


def _failed(code: str, message: str, start: int, last: int, hint: str = "") -> SqlTree:
    return SqlTree(problems=(SqlProblem(start, code, message, hint, end=last + 1),))


def _too_deep(tokens: tuple[Token, ...]) -> Token | None:
    depth = 0
    for token in tokens:
        name = token.token_type.name
        if name in ("L_PAREN", "L_BRACKET", "L_BRACE", "CASE"):
            depth += 1
            if depth > _DEEPEST:
                return token
        elif name in ("R_PAREN", "R_BRACKET", "R_BRACE", "END"):
            depth -= 1
    return None


def _reason(why: Exception, tokens: tuple[Token, ...]) -> tuple[str, str, int, int, str]:
    """Code, message, first and last offset, hint, from what sqlglot says."""
    last = tokens[-1]
    found = getattr(why, "errors", None)
    if not found:
        return "sql-syntax", f"this cannot be read as SQL ({type(why).__name__})", tokens[0].start, last.end, ""
    at = next((t for t in tokens if (t.line, t.col) == (found[0].get("line"), found[0].get("col"))), last)
    said = str(found[0].get("description") or "")
    if said.startswith("Expected table name"):
        what = "a table name is missing"
    elif said.startswith("Expecting "):
        what = f"expected '{said.removeprefix('Expecting ')}'"
    elif said.startswith("Required keyword"):
        what = "something is missing"
    else:
        what = "the SQL cannot be understood"
    first = tokens[0]
    hint = ""
    if first.token_type.name in ("VAR", "IDENTIFIER") and first.text.upper() not in ("FROM", "SELECT", "WITH"):
        hint = f"a query starts with SELECT or WITH, not with '{first.text}'"
    if at.text == "[" and any(a.text.upper() == "PATTERN" and b is at for a, b in pairwise(tokens)):
        hint = "a PATTERN goes under query:, plain SQL under update:"
    return "sql-syntax", f"{what} near '{at.text}'", at.start, at.end, hint


def _unclosed(sql: str) -> tuple[int, str]:
    """Where a string, quoted name or comment starts that has no end."""
    at, names = 0, {"'": "a string", '"': "a string", "`": "a quoted name"}
    while at < len(sql):
        char = sql[at]
        if sql.startswith("--", at):
            end = sql.find("\n", at)
            at = len(sql) if end < 0 else end
        elif sql.startswith("/*", at):
            end = sql.find("*/", at + 2)
            if end < 0:
                return at, "a comment"
            at = end + 1
        elif char in names:
            end = at + 1
            while end < len(sql) and sql[end] != char:
                end += 2 if sql[end] == "\\" and char != "`" else 1
            if end >= len(sql):
                return at, names[char]
            at = end
        at += 1
    return 0, ""
