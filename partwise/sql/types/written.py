"""Types as queries write them: in CAST, behind `::`, and decimals anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from partwise.sql.parse import SqlProblem
from partwise.sql.types.declared import bad_type, type_hint
from partwise.sql.types.names import DECIMALS, MOST_DIGITS, decimal_of, exists

if TYPE_CHECKING:
    from partwise.sql.tokens import Token

#: What may stand before the name of a type; before the name of a function stands something else.
BEFORE_TYPE = frozenset(["ALIAS", "DCOLON", "LT", "COLON", "VAR"])
#: Types that no column of a table can have, but a value on the way may.
_PASSING = re.compile(
    r"interval\b.*|void|time(\s*\(\s*\d+\s*\))?( without time zone)?|timestamp without time zone"
    r"|string collate \S+|geo(metry|graphy)\s*\(.*\)"
)


def bad_types(sql: str, tokens: tuple[Token, ...]) -> Iterator[SqlProblem]:
    """`CAST(x AS text)`: other databases have types that Spark has not."""
    for start, end in _targets(tokens):
        text = " ".join(sql[start:end].lower().split())
        if not text or "'" in text or '"' in text or "--" in text or "/*" in text or " not null" in text:
            continue  # comments and more: Spark reads them, and we do not
        if _PASSING.fullmatch(text) or ("<" not in text and decimal_of(text) is not None):
            continue
        if (bad := bad_type(text)) is not None and not _PASSING.fullmatch(bad) and decimal_of(bad) is None:
            start += len(sql[start:end]) - len(sql[start:end].lstrip())
            yield SqlProblem(start, "bad-type", f"'{bad}' is not a Spark type", type_hint(bad), end=start + len(text))


def _targets(tokens: tuple[Token, ...]) -> Iterator[tuple[int, int]]:
    """Where the types of casts stand in the text."""
    for at, token in enumerate(tokens[:-2]):
        following = tokens[at + 1]
        if token.text.lower() in ("cast", "try_cast") and following.token_type.name == "L_PAREN":
            depth, behind = 0, None
            for inner in tokens[at + 1 :]:
                kind = inner.token_type.name
                depth += (kind == "L_PAREN") - (kind == "R_PAREN")
                if kind == "ALIAS" and depth == 1:
                    behind = inner.end + 1
                if not depth:
                    if behind is not None:
                        yield behind, inner.start
                    break
        elif token.token_type.name == "DCOLON":
            end = following.end + 1
            if tokens[at + 2].token_type.name == "LT":
                continue
            if tokens[at + 2].token_type.name == "L_PAREN":
                end = next((t.end + 1 for t in tokens[at + 2 :] if t.token_type.name == "R_PAREN"), end)
            yield token.end + 1, end


def bad_decimals(tokens: tuple[Token, ...]) -> Iterator[SqlProblem]:
    """`CAST(x AS decimal(39, 2))`: Spark has 38 digits, and no more of them behind the point than in all."""
    for token in tokens:
        written = re.fullmatch(r"0*(\d*)\.?(\d*)", token.text) if token.token_type.name == "NUMBER" else None
        if written is not None and len(written[1] + written[2]) > MOST_DIGITS:
            message = f"{token.text[:12]}... has more digits than a decimal can have"
            yield SqlProblem(token.start, "bad-type", message, f"at most {MOST_DIGITS}", end=token.end + 1)
    for at in range(1, len(tokens) - 3):
        name = tokens[at]
        before = tokens[at - 1].token_type.name
        if name.text.lower() not in DECIMALS or before not in BEFORE_TYPE | {"COMMA"}:
            continue
        inside: list[str] = []
        for token in tokens[at + 1 :]:
            if token.token_type.name == "R_PAREN" or len(inside) > 3:
                break
            inside.append(token.text)
        if inside[:1] != ["("] or not all(text.isdigit() for text in inside[1::2]) or len(inside) not in (2, 4):
            continue
        if before == "COMMA" and len(inside) == 2:
            continue  # `IF(a, decimal(50), b)` calls a function, `map<string, decimal(50)>` is rare
        digits = (int(inside[1]), int(inside[3]) if len(inside) == 4 else 0)
        if not exists(digits):
            message = f"there is no {name.text.lower()}({','.join(map(str, digits[: len(inside) // 2]))})"
            hint = f"a decimal has at most {MOST_DIGITS} digits, and not more of them behind the point than in all"
            yield SqlProblem(name.start, "bad-type", message, hint, end=name.end + 1)
