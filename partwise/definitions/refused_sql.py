"""SQL that reads well and that Spark refuses, or fills in by rules of its own: told before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from partwise.sql.parse import SqlProblem, tokenise

if TYPE_CHECKING:
    from partwise.sql.tokens import Token

_FILE = Path(__file__).with_name("spark_functions.txt")
_SUBSTITUTED = re.compile(r"\$\{[^}\n]*\}|\{\{[^}\n]*\}\}|\{%[^}\n]*%\}")
#: A name with brackets behind one of these is no call: `WITH t (a)`, `FROM x AS t (a)`, `(SELECT ...) t (a)`.
_NO_CALL = frozenset(["DOT", "ALIAS", "WITH", "VAR", "R_PAREN", "R_BRACKET", "IDENTIFIER", "RECURSIVE"])
#: Written like functions, but part of the language.
_SYNTAX = frozenset(["cast", "try_cast", "extract", "position", "substring", "trim", "overlay", "timestampadd",
                     "timestampdiff", "dateadd", "datediff", "date_diff", "date_add", "within", "over", "filter",
                     "table", "values", "named_struct"])  # fmt: skip
#: Words that the parser knows for something else, and that people from elsewhere call.
_KEYWORDS = frozenset(
    ["list", "unnest", "datetime", "truncate", "json", "text", "number", "varchar", "integer", "object", "variant", "glob",
     "insert", "format", "numeric", "real", "bool", "byte", "blob", "bytea", "clob", "row", "int64", "int8", "int4", "jsonb",
     "timestamptz", "uint", "nvarchar", "next", "inet", "vector", "geometry", "geography"]
)  # fmt: skip
#: Partwise's own, which the translator reads.
_OURS = frozenset(["frequent", "prev"])


@cache
def spark_functions() -> frozenset[str]:
    """What Spark has by itself. `tools/spark_functions.py` writes the list."""
    try:
        return frozenset(_FILE.read_text(encoding="utf-8").split())
    except FileNotFoundError:
        return frozenset()


def refused(sql: str, tokens: tuple[Token, ...], more: frozenset[str] = frozenset()) -> Iterator[SqlProblem]:
    """`more`: functions that Spark never sees, because what is translated calls them otherwise."""
    yield from _variables(sql, tokens)
    yield from _parameters(tokens)
    yield from _unknown_functions(tokens, more)


def without_pattern(text: str) -> str:
    """The text with `PATTERN [...]` blanked out: the rest is a query that a parser of SQL can read."""
    tokens = tokenise(text).tokens
    for at, (word, opening) in enumerate(pairwise(tokens)):
        if word.text.upper() == "PATTERN" and opening.token_type.name == "L_BRACKET":
            end = next((t.end for t in tokens[at:] if t.token_type.name == "R_BRACKET"), opening.end)
            return text[: word.start] + " " * (end + 1 - word.start) + text[end + 1 :]
    return text


def _variables(sql: str, tokens: tuple[Token, ...]) -> Iterator[SqlProblem]:
    """Spark fills in `${x}` even inside strings; templates of other tools stay as they are."""
    for match in _SUBSTITUTED.finditer(sql):
        word = match[0]
        if word.startswith("${"):
            hint = "write the value itself; environment variables belong in partwise.yaml"
            message = f"{word} would be filled in by Spark's settings, which are not part of the definition"
        elif any(t.token_type.name == "STRING" and t.start <= match.start() <= t.end for t in tokens):
            continue
        else:
            hint = "there is no Jinja here: one YAML document a table, parts as references such as m[j]"
            message = f"{word} is a template, and Partwise has none"
        yield SqlProblem(match.start(), "sql-syntax", message, hint, end=match.end())


def _parameters(tokens: tuple[Token, ...]) -> Iterator[SqlProblem]:
    """`:x` is a parameter that nothing gives a value."""
    for at in range(len(tokens) - 1):
        mark, name = tokens[at], tokens[at + 1]
        before = tokens[at - 1].token_type.name if at else ""
        glued = mark.end + 1 == name.start and re.fullmatch(r"[A-Za-z_]\w*", name.text) is not None
        if mark.token_type.name == "COLON" and glued and before not in ("VAR", "IDENTIFIER", "R_BRACKET", "R_PAREN"):
            message = f":{name.text} is a parameter, and nothing gives it a value"
            yield SqlProblem(mark.start, "sql-syntax", message, "write the value itself", end=name.end + 1)
    for token in tokens:
        if token.token_type.name == "PLACEHOLDER":
            message = "? is a parameter, and nothing gives it a value"
            yield SqlProblem(token.start, "sql-syntax", message, "write the value itself", end=token.end + 1)


def _unknown_functions(tokens: tuple[Token, ...], more: frozenset[str]) -> Iterator[SqlProblem]:
    known = spark_functions()
    if not known:
        return
    known |= more
    for at in range(len(tokens) - 1):
        token, name = tokens[at], tokens[at].text.lower()
        if tokens[at + 1].token_type.name != "L_PAREN":
            continue
        if token.token_type.name not in ("VAR", "IDENTIFIER") and not (name in _KEYWORDS and _may_call(tokens, at)):
            continue
        before = tokens[at - 1].token_type.name if at else ""
        if before == "DOT" and at > 1:
            yield from _qualified(tokens, at)
            continue
        if before in _NO_CALL or name in known | _SYNTAX | _OURS or _names_columns(tokens, at + 1):
            continue
        yield SqlProblem(
            token.start,
            "unknown-function",
            f"Spark has no function {token.text}",
            _like(name, known),
            end=token.end + 1,
        )


def _may_call(tokens: tuple[Token, ...], at: int) -> bool:
    """Behind these stands the name of a type, and `INSERT INTO` is refused elsewhere."""
    return bool(at) and tokens[at - 1].token_type.name not in ("DCOLON", "LT", "COLON", "VAR", "ALIAS")


def _qualified(tokens: tuple[Token, ...], at: int) -> Iterator[SqlProblem]:
    """`db.f(x)`: a function that somebody created in a catalog, which a definition does not bring along."""
    first, name = tokens[at - 2], tokens[at]
    if first.text.lower() != "builtin":
        message = f"{first.text}.{name.text} is a function of a catalog, and there is none here"
        yield SqlProblem(first.start, "unknown-function", message, "use Spark's built-in functions", end=name.end + 1)


def _names_columns(tokens: tuple[Token, ...], opening: int) -> bool:
    """`, t (a, b) AS (SELECT ...)`: the second query of a WITH."""
    depth = 0
    for at in range(opening, len(tokens)):
        kind = tokens[at].token_type.name
        depth += (kind == "L_PAREN") - (kind == "R_PAREN")
        if not depth:
            return [t.token_type.name for t in tokens[at + 1 : at + 3]] == ["ALIAS", "L_PAREN"]
    return False


def _like(name: str, known: frozenset[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1, cutoff=0.75)
    return f"did you mean {close[0]}?" if close else "Spark's documentation lists its built-in functions"
