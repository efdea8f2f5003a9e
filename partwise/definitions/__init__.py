"""Definitions: what people write as YAML, checked and frozen."""

from partwise.definitions.compile import to_table
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
from partwise.definitions.fingerprint import fingerprint
from partwise.definitions.load import load, load_texts
from partwise.definitions.places import Place, Placed
from partwise.definitions.problems import CODES, Problem

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
    "fingerprint",
    "load",
    "load_texts",
    "to_table",
]
