"""Text that means nothing, put between the words of a query: comments, white space, conditions that always hold."""

from __future__ import annotations

import random

from partwise.sql.parse import tokenise

#: Each would be read as something if it were not read as a comment or a string.
TRAPS = [
    "this part", "part_timestamp", "FROM v", "JOIN v ON", "m[j-1]", "__in1", "__js", "WHERE x > 1", "GROUP BY part",
    "old.x", "it\\'s", "[WINDOW 9 minutes]", "PATTERN [q]", "UNION SELECT", "CASE WHEN", "`", "(", ")", "HAVING",
]  # fmt: skip


def with_comments(text: str, rng: random.Random) -> str:
    """The same query. The first word stays first, so that the text can stand in YAML as it is."""
    tokens = tokenise(text).tokens
    out, at = text[: tokens[0].end + 1], tokens[0].end + 1
    for token in tokens[1:]:
        if token.start < at:
            continue  # `10L` comes as three tokens of one place
        gap = text[at : token.start]
        apart = gap or token.text in "([,)]+" or text[at - 1] in "([,)]+"
        out += (gap + _noise(rng) if apart and rng.random() < 0.4 else gap) + text[token.start : token.end + 1]
        at = token.end + 1
    return out + text[at:]


def _noise(rng: random.Random) -> str:
    trap = rng.choice(TRAPS)
    return rng.choice([" ", "\n", "  \n   ", f" -- {trap}\n", f" /* {trap} */ ", f"\n/*\n {trap}\n*/\n"])


def with_strings(text: str, rng: random.Random) -> str:
    """With a condition that always holds behind every WHERE and ON: `(true AND a) OR b` is `a OR b`."""
    out, at = "", 0
    for token in tokenise(text).tokens:
        if token.token_type.name in ("WHERE", "ON"):
            out += text[at : token.end + 1] + f" '{rng.choice(TRAPS)} -- {rng.choice(TRAPS)}' <> '' AND"
            at = token.end + 1
    return out + text[at:]
