"""What one pass of SQL cannot answer, by Great Expectations itself: its pandas engine on the columns that it needs.

Its Spark engine works over Spark Connect only as far as it uses no Python functions, which most of these do.
"""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from partwise.checks.catalog import expectations
from partwise.checks.phrases import plain
from partwise.checks.question import Answer
from partwise.checks.results import MOST_ROWS
from partwise.definitions.definitions import Check
from partwise.parts import Parts
from spark_jobs.retry import is_infrastructure
from spark_jobs.step import read

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

#: Rows of a part that are brought to this process at most.
MOST = 5_000_000


class TooMany(Exception):
    """A part is too large for a check that needs its rows in this process."""


def answer(rows: DataFrame, check: Check, part: int) -> Answer | Exception:
    try:
        return _answer(check, _frame(rows, check, part))
    except Exception as why:  # whatever it is, the check could not be run
        if is_infrastructure(why):
            raise
        return why


def _frame(rows: DataFrame, check: Check, part: int) -> pd.DataFrame:
    wanted = rows.where(read.in_parts(Parts.single(part)))
    if check.arguments.get("row_condition"):
        wanted = wanted.where(check.arguments["row_condition"])
    names = _columns(check.name, check.arguments)
    wanted = wanted.select(*names) if names else wanted
    frame = wanted.limit(MOST + 1).toPandas()
    if len(frame) > MOST:
        raise TooMany(f"the part has more than {MOST:,} rows, which is the most for {check.name}")
    return frame


def _columns(name: str, arguments: Mapping[str, Any]) -> list[str]:
    known = expectations()[name].arguments
    one = [arguments[key] for key, a in known.items() if a.type == "column" and key in arguments]
    many = [c for key, a in known.items() if a.type == "columns" for c in arguments.get(key, ())]
    return list(dict.fromkeys([*one, *many]))


def _answer(check: Check, frame: pd.DataFrame) -> Answer:
    found = validate(check.name, check.arguments, frame)
    info = found.exception_info or {}
    raised = [info] if "raised_exception" in info else list(info.values())
    for item in raised:
        if item.get("raised_exception"):
            raise RuntimeError(str(item.get("exception_message")).strip().splitlines()[0])
    result = found.result
    elements, unexpected = result.get("element_count"), result.get("unexpected_count")
    if unexpected is not None:
        counted = elements - (result.get("missing_count") or 0)
        column = check.arguments.get("column", "value")
        said = f"{unexpected:,} of {counted:,} values of {column} fail the check"
        some = list(result.get("partial_unexpected_list") or [])[:MOST_ROWS]
        texts = tuple(json.dumps({column: _simple(value)}, ensure_ascii=False, default=str) for value in some)
        return Answer(bool(found.success), said, None, counted, unexpected, texts)
    observed = _simple(result.get("observed_value"))
    return Answer(bool(found.success), f"found {observed}", observed)


def validate(name: str, arguments: Mapping[str, Any], frame: pd.DataFrame) -> Any:
    """Great Expectations' own result for a frame."""
    _, kinds = great_expectations()
    context = _context()
    given = {key: value for key, value in arguments.items() if key != "row_condition"}
    batch = context.data_sources.pandas_default.read_dataframe(frame)
    return batch.validate(kinds[name](**given))


@cache
def great_expectations() -> tuple[Any, dict[str, Any]]:
    """The package, and its expectations by name. Nothing is sent anywhere, nothing but the verdict is shown."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    import great_expectations as gx
    import great_expectations.expectations as gxe

    classes = (getattr(gxe, name) for name in dir(gxe) if name.startswith("Expect") and name != "Expectation")
    return gx, {kind.expectation_type: kind for kind in classes if hasattr(kind, "expectation_type")}


@cache
def _context() -> Any:
    gx, _ = great_expectations()
    found = gx.get_context(mode="ephemeral")
    found.variables.progress_bars = {"globally": False, "metric_calculations": False}
    return found


def _simple(value: Any) -> Any:
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such numbers
    if isinstance(value, dict):
        return {str(key): _simple(item) for key, item in value.items()}
    return [_simple(item) for item in value] if isinstance(value, list | tuple | set) else plain(value)
