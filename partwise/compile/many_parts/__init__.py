"""Lifting: the UPDATE query of one part, rewritten to compute many parts at once.

Lifted      the query for all parts, with an index column behind its own columns
NotLiftable why a query cannot be rewritten; it then runs once per part
"""

from functools import lru_cache

from partwise.compile.many_parts.model import INDEX, PARTS, Lifted, LiftedInput, NotLiftable
from partwise.compile.many_parts.spread import Spread, spread

__all__ = ["INDEX", "PARTS", "Lifted", "LiftedInput", "NotLiftable", "Spread", "lift", "spread", "why_not"]


@lru_cache(maxsize=256)
def lift(text: str, index: str = "j") -> Lifted:
    """The query for many parts. Raises NotLiftable. The SQL parser is loaded only when it is needed."""
    from partwise.compile.many_parts.text import lift as run

    return run(text, index)


def why_not(text: str, index: str = "j") -> str | None:
    """Why a query runs part by part; None if it can be lifted."""
    try:
        lift(text, index)
    except NotLiftable as why:
        return str(why)
    return None
