"""One text for all the ways to write the same query: what fingerprints are made of.

Made from tokens, not by a generator: nothing is dropped by mistake, and a new release of sqlglot
does not make every view look changed. Comments, hints, white space and the case of key words and
functions do not count; the case of names does, because it is seen in the columns of the result.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from partwise.sql.references import Analysis, analyse

if TYPE_CHECKING:
    from partwise.sql.tokens import Token

_QUOTED = {"STRING": "'", "IDENTIFIER": "`", "RAW_STRING": "r'", "HEX_STRING": "x'", "BYTE_STRING": "b'"}


def canonical(sql: str, index: str = "j") -> str:
    """References in normal form, one space between tokens. Text that is no SQL stays as it is."""
    return canonical_of(sql, analyse(sql, index))


def canonical_of(sql: str, analysis: Analysis) -> str:
    """The same for a text that was analysed already."""
    if analysis.found.problems:
        return sql
    words: list[str] = []
    references = {table.start: table for table in analysis.found.parts}
    skip_to = 0
    tokens = [t for t in analysis.tokens if t.token_type.name not in ("HINT", "SEMICOLON")]
    for token, following in zip_longest(tokens, tokens[1:]):
        if token.start < skip_to:
            continue
        if (table := references.get(token.start)) is not None and table.reference is not None:
            words.append(table.table.lower() + table.reference.text(analysis.found.index))
            skip_to = table.end
        else:
            words.append(_word(token, following))
    return " ".join(words)


def _word(token: Token, following: Token | None) -> str:
    kind = token.token_type.name
    if kind in _QUOTED:
        quote = _QUOTED[kind]
        if kind == "IDENTIFIER" and token.text.isascii() and token.text.isidentifier():
            return token.text
        return quote + token.text.replace(quote[-1], quote[-1] * 2) + quote[-1]
    if kind == "VAR":
        called = following is not None and following.token_type.name == "L_PAREN"
        return token.text.upper() if called else token.text
    return token.text.upper()
