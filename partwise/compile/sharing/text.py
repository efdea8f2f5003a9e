"""The text of a generated query with helpers under other names, and what it says whatever its author called the table.

Nothing is parsed again: tokens, and the references that were found when the query was read, are enough.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from partwise.definitions.definitions import Statement
from partwise.definitions.yaml.places import Placed
from partwise.sql.canonical import canonical_of
from partwise.sql.parse import tokenise
from partwise.sql.references import Analysis, FoundReference

if TYPE_CHECKING:
    from partwise.sql.tokens import Token

Names = Mapping[str, str]


@lru_cache(maxsize=64)
def _tokens(text: str) -> tuple[Token, ...]:
    return tokenise(text).tokens


def renamed(text: str, names: Names) -> str:
    """`names` by lower-case name. A column may be called like a helper: only what has brackets or columns changes."""
    return _spliced(text, _places(text, names))


def with_names(statement: Statement, names: Names) -> Statement:
    tables = statement.found.tables
    if not any(found.table.lower() in names for found in tables):
        return statement
    places = _places(statement.text, names)
    text = _spliced(statement.text, places)
    found = replace(statement.found, tables=tuple(_moved(table, places, names, text) for table in tables))
    placed = Placed(text, statement.placed.file, statement.placed.runs, generated=True)
    return Statement(text, statement.index, found, placed, canonical_of(text, Analysis(found, _tokens(text))))


def _places(text: str, names: Names) -> list[tuple[int, int, str]]:
    tokens = _tokens(text)
    found = []
    for token, after in pairwise(tokens):
        new = names.get(token.text.lower())
        if new is not None and after.token_type.name in ("L_BRACKET", "DOT"):
            found.append((token.start, token.end + 1, new))
    return found


def _spliced(text: str, places: Iterable[tuple[int, int, str]]) -> str:
    out, at = [], 0
    for start, end, new in places:
        out += [text[at:start], new]
        at = end
    return "".join([*out, text[at:]])


def _moved(found: FoundReference, places: list[tuple[int, int, str]], names: Names, text: str) -> FoundReference:
    start, end = found.start, found.end
    for at, until, new in places:
        longer = len(new) - (until - at)
        start += longer if at < found.start else 0
        end += longer if at < found.end else 0
    return replace(
        found, table=names.get(found.table.lower(), found.table), start=start, end=end, written=text[start:end]
    )


def without_alias(statement: Statement) -> str:
    """In canonical form, with what the author calls the only table left out: `m.loss` from `measurements[j] m` is `loss`.

    Where several tables are read, or names may mean something else inside (subqueries, lambdas), all stays.
    """
    tokens = _tokens(statement.text)
    kinds = [token.token_type.name for token in tokens]
    tables = statement.found.tables
    if len(tables) != 1 or kinds.count("SELECT") != 1 or not {"ARROW", "JOIN"}.isdisjoint(kinds):
        return statement.canonical
    called = _called(tokens, tables[0])
    if called is None:
        return statement.canonical
    rest = tuple(token for token in tokens if token.start not in called)
    own = _own_names(rest)
    return canonical_of(
        statement.text, Analysis(statement.found, tuple(token for token in rest if token.start not in own))
    )


def _called(tokens: tuple[Token, ...], table: FoundReference) -> Collection[int] | None:
    """Where tokens stand that only say what the table is called. None where all of its columns are named at once:
    COUNT(m.*) is not COUNT(*)."""
    name, found = (table.alias or table.table).lower(), set[int]()
    kinds = ["", *(token.token_type.name for token in tokens), "", ""]
    for at, token in enumerate(tokens):
        before, kind, after, then = kinds[at : at + 4]
        if token.text.lower() != name or kind not in ("VAR", "IDENTIFIER"):
            continue
        if after == "DOT" and then == "STAR":
            return None
        if after == "DOT" and before != "DOT":
            found |= {token.start, tokens[at + 1].start}
        elif table.alias and token.start >= table.end and (before == "ALIAS" or tokens[at - 1].end < table.end):
            found |= {token.start, *([tokens[at - 1].start] if before == "ALIAS" else [])}
            if before == "ALIAS" and tokens[at - 2].end >= table.end:
                return None  # what follows the table is something else
    return found


def _own_names(tokens: tuple[Token, ...]) -> Collection[int]:
    """`g AS g` among what is selected is `g`."""
    found = set[int]()
    for before, one, word, other in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False):
        kinds = [each.token_type.name for each in (before, one, word, other)]
        if kinds[0] in ("SELECT", "COMMA") and kinds[1:] == ["VAR", "ALIAS", "VAR"] and one.text == other.text:
            found |= {word.start, other.start}
    return found
