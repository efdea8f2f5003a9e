"""The text of a single pass over many parts, as the engine splices it."""

from __future__ import annotations

from partwise.compile import GeneratedView
from partwise.compile.many_parts import spread
from partwise.compile.single_pass import FIRST, LAST
from partwise.sql.references import find


def single_pass_text(view: GeneratedView, first: int, last: int) -> str:
    """Over tables with a column `part`: rows with the part they go to, and of the view itself only the part before."""
    assert view.single_pass is not None
    text = view.single_pass
    for table in reversed(find(text).tables):
        assert table.reference is not None
        if table.table == view.name:
            rows = f"SELECT * EXCEPT (part) FROM {table.table} WHERE part = {first - 1}"
        else:
            column = spread(table.reference).column("__j")
            rows = f"SELECT * FROM (SELECT *, {column} FROM {table.table}) WHERE __j BETWEEN {first} AND {last}"
        alias = "" if table.alias else f" AS {table.table}"
        text = f"{text[: table.start]}({rows}){alias}{text[table.end :]}"
    return text.replace(FIRST, f"{first}L").replace(LAST, f"{last}L")
