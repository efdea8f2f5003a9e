"""Names of tables that a text reads, found from its tokens alone.

For texts that are not ordinary SQL: queries with `PATTERN [a, b+]` or `[WINDOW 5 minutes]`. Statements with
references are read by `references`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from partwise.sql.parse import tokenise

if TYPE_CHECKING:
    from partwise.sql.tokens import Token

_OPEN, _CLOSE = frozenset(["L_PAREN", "L_BRACKET", "L_BRACE"]), frozenset(["R_PAREN", "R_BRACKET", "R_BRACE"])
#: What ends FROM: a comma behind it no longer separates tables.
_END = frozenset(
    ["WHERE", "GROUP_BY", "HAVING", "ORDER_BY", "LIMIT", "QUALIFY", "WINDOW", "UNION", "EXCEPT", "INTERSECT", "VIEW"]
)


@dataclass
class _Level:
    """What is known inside one pair of brackets. `selects`: SELECT was seen, but not its FROM."""

    selects: bool = False
    from_: bool = False


def tables_read(text: str) -> dict[str, int]:
    """Names in lower case, in order of appearance, with where each stands first. None of a text that has no tokens."""
    tokens = tokenise(text).tokens
    named = {_name(tokens, at) for at in range(len(tokens)) if _starts_with_query(tokens, at)}
    found: dict[str, int] = {}

    def read(at: int) -> None:
        if (name := _name(tokens, at)) and name not in named:
            found.setdefault(name, tokens[at].start)

    levels = [_Level()]
    for at, token in enumerate(tokens):
        kind, level = token.token_type.name, levels[-1]
        before = tokens[at - 1].token_type.name if at else ""
        if kind in _OPEN:
            levels.append(_Level())
        elif kind in _CLOSE:
            levels = levels[:-1] or [_Level()]
        elif before == "DOT":
            continue  # a column may be called `from`
        elif kind == "SELECT":
            level.selects, level.from_ = True, False
        elif kind == "FROM" and level.selects and before != "DISTINCT":  # x IS DISTINCT FROM y is a comparison
            level.selects, level.from_ = False, True
            read(at + 1)
        elif kind in ("JOIN", "COMMA") and level.from_:
            read(at + 1)
        elif kind in _END and not (kind == "WINDOW" and before == "L_BRACKET"):
            level.from_ = False
    return found


def _name(tokens: tuple[Token, ...], at: int) -> str:
    """The name that stands here, with its dots; empty where a subquery or a function does."""
    words: list[str] = []
    while at < len(tokens) and _is_word(tokens[at]):
        words.append(tokens[at].text)
        at += 1
        if at == len(tokens) or tokens[at].token_type.name != "DOT":
            break
        at += 1
    called = at < len(tokens) and tokens[at].token_type.name == "L_PAREN"
    return "" if called else ".".join(words).lower()


def _is_word(token: Token) -> bool:
    quoted = token.token_type.name == "IDENTIFIER"
    return quoted or (token.token_type.name not in ("STRING", "LATERAL") and token.text.isidentifier())


def _starts_with_query(tokens: tuple[Token, ...], at: int) -> bool:
    """`name AS (SELECT ...`: a query of WITH."""
    kinds = [token.token_type.name for token in tokens[at + 1 : at + 4]]
    return kinds == ["ALIAS", "L_PAREN", "SELECT"]
