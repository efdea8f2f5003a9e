"""Queries of several views over the same rows, as one query that looks at these rows once.

Fusable     a query that can be part of one
NotFusable  why a query cannot
"""

from functools import lru_cache

from partwise.compile.many_views.model import Fusable, NotFusable
from partwise.compile.many_views.write import Fused, fused

__all__ = ["Fusable", "Fused", "NotFusable", "fusable", "fused"]


@lru_cache(maxsize=512)
def fusable(text: str, columns: tuple[tuple[str, ...], ...]) -> Fusable | None:
    """The query as part of another one, None if it cannot be. `columns` of the tables that it reads, in order of
    appearance. The SQL parser is loaded only when it is needed."""
    from partwise.compile.many_views.read import read

    try:
        return read(text, columns)
    except NotFusable:
        return None
