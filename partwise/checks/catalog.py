"""Which checks there are, with their arguments. The file is made from Great Expectations' classes; ours come on top."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("expectations.json")


@dataclass(frozen=True, slots=True)
class Argument:
    """`type`: column, columns, text, number, whole, share (0 to 1), bound (number, text or time), flag, list, map,
    table, or a tuple of possible words."""

    type: str | tuple[str, ...]
    required: bool = False


@dataclass(frozen=True, slots=True)
class Expectation:
    """One kind of check. Of `one_of` at least one argument must be given."""

    name: str
    says: str
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    one_of: tuple[str, ...] = ()


PREVIOUS = "row_count_ratio_to_previous_part"
EQUALS = "row_count_equals"
#: What `max_removed` of a source or dimension asks for; nobody writes it among the checks.
MAX_REMOVED = "max_removed"
#: Checks that look beyond the part: Great Expectations knows one batch only.
OWN = (
    Expectation(
        PREVIOUS,
        "The rows of the part, divided by those of the part before it, lie between min and max",
        {"min": Argument("number"), "max": Argument("number")},
        ("min", "max"),
    ),
    Expectation(
        EQUALS,
        "The part has as many rows as another table has for the same time",
        {"table": Argument("table", required=True)},
    ),
)


@cache
def expectations() -> Mapping[str, Expectation]:
    raw = json.loads(FILE.read_text(encoding="utf-8"))["expectations"]
    found = {name: _expectation(name, item) for name, item in raw.items()}
    return found | {item.name: item for item in OWN}


@cache
def left_out() -> Mapping[str, str]:
    """Expectations of Great Expectations that cannot be had here, and why."""
    found: dict[str, str] = json.loads(FILE.read_text(encoding="utf-8"))["left_out"]
    return found


def _expectation(name: str, raw: Mapping[str, Any]) -> Expectation:
    arguments = {
        key: Argument(
            tuple(item["type"]["one of"]) if isinstance(item["type"], dict) else item["type"],
            item.get("required", False),
        )
        for key, item in raw["arguments"].items()
    }
    return Expectation(name, raw["says"], arguments, tuple(raw.get("one_of", ())))
