"""What lifting gives back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from partwise.parts import Reference
from partwise.sql.parse import tokenise

#: The column of the lifted result that says which part a row belongs to; the last one.
INDEX = "__j"
#: Stands for the relation with one column `j`: the parts that are computed.
PARTS = "__js"
#: How the tables of a query are called in its lifted text.
_INPUT = re.compile(r"__(?:in\d+|js)")


class NotLiftable(Exception):
    """The query cannot be rewritten for many parts; the message says why, for people."""


@dataclass(frozen=True, slots=True)
class LiftedInput:
    """A table in the lifted text, under the name `name`.

    With a `reference` its rows have one more column, `column`, behind all others: the part that they go to
    (several rows, if they go to several parts, see `spread`). Without, it is a dimension, read as it is.
    """

    name: str
    table: str
    reference: Reference | None
    column: str | None


@dataclass(frozen=True, slots=True)
class Lifted:
    """`text` gives the rows of all parts in `__js(j)`, with the part as last column `__j`."""

    text: str
    inputs: tuple[LiftedInput, ...]

    def named(self, names: Mapping[str, str] | Callable[[str], str]) -> str:
        """The text with the tables' real names."""
        rename = names if callable(names) else names.__getitem__
        out, at = "", 0
        for token in tokenise(self.text).tokens:
            if token.token_type.name != "STRING" and _INPUT.fullmatch(token.text):
                out += self.text[at : token.start] + rename(token.text)
                at = token.end + 1
        return out + self.text[at:]
