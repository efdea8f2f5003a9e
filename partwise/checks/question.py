"""What a check asks of the rows of a part, and what comes back: shared by all kinds of checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from partwise.checks import phrases
from partwise.checks.sql_text import all_of, quoted
from partwise.checks.types import is_number, is_text, shown_type
from partwise.storage.schema import PART, PART_TIMESTAMP

Arguments = Mapping[str, Any]
#: Columns of a table with their types, as `partwise.storage.schema.fields` gives them.
Columns = Mapping[str, Any]


class Mismatch(Exception):
    """The check cannot be run on this column; the message is meant for people."""


@dataclass(frozen=True, slots=True)
class Answer:
    ok: bool
    message: str
    observed: Any = None
    elements: int | None = None
    unexpected: int | None = None
    rows: tuple[str, ...] = ()  # a sample, where it is known at once


@dataclass(frozen=True)
class Question:
    """`aggregates` are computed for each part; a part without rows gives 0 for counts and None for the rest (`empty`).

    With `key` they are asked over `(part, key, n)`, n being how often the key occurs among rows that meet `where`:
    that costs a shuffle, so it is a query of its own. `failing` is true for rows to look at; with `key` rows
    whose key occurs more than once.
    """

    aggregates: tuple[str, ...]
    empty: tuple[Any, ...]
    judge: Callable[[Sequence[Any]], Answer]
    failing: str | None = None
    key: tuple[str, ...] | None = None
    where: str = "true"


class Given:
    """Arguments and columns of one check."""

    def __init__(self, arguments: Arguments, columns: Columns) -> None:
        self.arguments, self.columns = arguments, columns
        #: What people defined; the columns of every table are there to be compared with.
        self.own = [name for name in columns if name not in (PART, PART_TIMESTAMP)]
        self._names = {name.lower(): name for name in columns}

    def __getitem__(self, key: str) -> Any:
        return self.arguments[key]

    def get(self, key: str, default: Any = None) -> Any:
        found = self.arguments.get(key)
        return default if found is None else found

    @property
    def only(self) -> str:
        """The rows that are looked at."""
        return f"({self.arguments['row_condition']})" if self.arguments.get("row_condition") else "true"

    def name(self, given: str) -> str:
        found = self._names.get(given.lower())
        if found is None:
            raise Mismatch(f"there is no column {given}; the columns are {', '.join(self.own)}")
        return found

    def kind(self, given: str) -> Any:
        return self.columns[self.name(given)]

    def column(self, key: str = "column") -> str:
        return quoted(self.name(self.arguments[key]))

    def text_column(self, what: str) -> str:
        if not is_text(self.kind(self["column"])):
            raise Mismatch(f"{what} needs text, but {self['column']} is {shown_type(self.kind(self['column']))}")
        return self.column()

    def comparable(self, *bounds: Any) -> None:
        kind = self.kind(self["column"])
        for bound in bounds:
            number = isinstance(bound, int | float) and not isinstance(bound, bool)
            if bound is not None and number != is_number(kind):
                raise Mismatch(f"{self['column']} is {shown_type(kind)}, which cannot be compared with {bound!r}")


#: Makes the question of a check, by the name of its expectation.
Makers = Mapping[str, Callable[[str, Given], Question]]


def present(columns: Sequence[str], ignore: str) -> str:
    """Rows that count, by what `ignore_row_if` says of NULLs in several columns."""
    if ignore == "all_values_are_missing":
        return f"NOT ({all_of(f'{c} IS NULL' for c in columns)})"
    return all_of(f"{c} IS NOT NULL" for c in columns) if ignore == "any_value_is_missing" else "true"


def judged(bounds: Arguments, what: str, found: float) -> Answer:
    """A number that was found, against the bounds of the check."""
    low, high = bounds.get("min_value"), bounds.get("max_value")
    ok = (low is None or (found > low if bounds.get("strict_min") else found >= low)) and (
        high is None or (found < high if bounds.get("strict_max") else found <= high)
    )
    return Answer(ok, phrases.value(what, found, phrases.bounds(bounds)), found)
