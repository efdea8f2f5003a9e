"""Queries with PATTERN or WINDOW, translated into views with INITIALIZE and UPDATE."""

from collections.abc import Mapping

from partwise.compile.model import (
    MANY_ROWS,
    Choice,
    GeneratedView,
    InputTable,
    QueryView,
    Translation,
    Variant,
    WindowShape,
)
from partwise.sql.parse import SqlProblem, TranslationError

__all__ = [
    "MANY_ROWS",
    "Choice",
    "GeneratedView",
    "InputTable",
    "QueryView",
    "SqlProblem",
    "Translation",
    "TranslationError",
    "Variant",
    "WindowShape",
    "translate",
]


def translate(view: QueryView, inputs: Mapping[str, InputTable]) -> Translation:
    """Helper views and the view itself. Raises TranslationError with every problem.

    `inputs` are the tables that the query may read, by name. The SQL parser is loaded only when it is needed.
    """
    from partwise.compile.translate import translate as run

    return run(view, inputs)
