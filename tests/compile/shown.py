"""A query over a handful of rows, run on DuckDB: what the view shows in each part."""

from __future__ import annotations

from typing import Any

from partwise.compile import InputTable, QueryView, Translation, translate
from tests.compile.duck import Duck, catch_up

COLUMNS = {"g": "string", "ts": "bigint", "x": "int", "y": "int"}
TABLE = InputTable("s", "source", 60, COLUMNS, "ts")


def translated(query: str, **settings: Any) -> Translation:
    return translate(QueryView("v", query, 60, **settings), {"s": TABLE})


def shown(query: str, values: list[Any], **settings: Any) -> list[Any]:
    """One row of group 'a' per part, x being the value (or a pair x, y; None for a part without a row).

    The result: for each part the values of the view's columns, None where nothing is shown.
    """
    duck = Duck(translated(query, **settings), [TABLE])
    rows = []
    for part, value in enumerate(values):
        x, y = value if isinstance(value, tuple) else (value, None)
        if value is not None:
            rows.append({"part": part, "g": "a", "ts": part * 60, "x": x, "y": y})
    duck.insert("s", rows)
    catch_up(duck, {"s": set(range(len(values)))})
    found: list[Any] = []
    for part in range(len(values)):
        at_part = [tuple(v for k, v in row.items() if k != "g") for row in duck.rows("v", part)]
        found.append(at_part[0] if at_part else None)
    duck.close()
    return [one[0] if one is not None and len(one) == 1 else one for one in found]
