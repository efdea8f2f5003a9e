"""What steps need to know of the strategy `grid`: they import no parser of SQL for it."""

from __future__ import annotations

from partwise.sql.references import find

#: How the helper of a view is called behind its name, and the column that says until when a row is shown.
HELPER, LAST_PART = "__grid", "last_part"


def shown_for(update: str) -> int:
    """In how many parts a row can be shown at most: so far back does the view's statement read its grid."""
    return max(
        f.reference.hi.plus - f.reference.lo.plus + 1 for f in find(update, "j").tables if f.reference is not None
    )
