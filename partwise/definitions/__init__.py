"""Definitions: what people write as YAML, checked and frozen."""

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
]
