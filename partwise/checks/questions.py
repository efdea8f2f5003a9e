"""A check as SQL: aggregates over the rows of a part, and what their values mean.

All aggregates of all checks of a table go into one query, grouped by part, over the staged files. Great Expectations
would ask Spark at least once per part and expectation. The verdicts are those of Great Expectations' Spark engine,
NULLs, `mostly` and empty parts included: a test compares the two on random data.

What has no translation here returns None from `question` and is answered by Great Expectations itself.
"""

from __future__ import annotations

from partwise.checks import columns as of_columns
from partwise.checks import each_row, occurrences, whole_part
from partwise.checks.question import Arguments, Columns, Given, Makers, Question

_MAKERS: Makers = {**each_row.MAKERS, **occurrences.MAKERS, **whole_part.MAKERS, **of_columns.MAKERS}
#: Names of expectations that need no Great Expectations to be answered.
TRANSLATED = frozenset(_MAKERS)


def question(name: str, arguments: Arguments, columns: Columns) -> Question | None:
    """None: Great Expectations has to answer. Raises Mismatch."""
    maker = _MAKERS.get(name)
    return None if maker is None else maker(name, Given(arguments, columns))
