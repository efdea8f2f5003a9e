"""Definitions: what people write as YAML, checked and frozen."""

from typing import TYPE_CHECKING, Any

from partwise.definitions.definitions import (
    Check,
    Close,
    Definition,
    Definitions,
    Dimension,
    Late,
    Source,
    Statement,
    Time,
    View,
)
from partwise.definitions.problems import CODES, Problem
from partwise.definitions.yaml.places import Place, Placed

if TYPE_CHECKING:
    from partwise.compile.load import load, load_texts

__all__ = [
    "CODES",
    "Check",
    "Close",
    "Definition",
    "Definitions",
    "Dimension",
    "Late",
    "Place",
    "Placed",
    "Problem",
    "Source",
    "Statement",
    "Time",
    "View",
    "load",
    "load_texts",
]


def __getattr__(name: str) -> Any:
    """`load` and `load_texts` give a Program and live in `partwise.compile`; they were here before."""
    if name in ("load", "load_texts"):
        from partwise.compile import load

        return getattr(load, name)
    raise AttributeError(name)
