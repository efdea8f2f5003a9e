"""How many parts go into one query, and what becomes of a query that Spark refuses. No session: Spark is played."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from partwise.parts import Parts
from spark_jobs.step.many import Many

NOT_LIFTED = "SELECT g, FIRST(x) AS x FROM m[j] GROUP BY g"
LIFTED = "SELECT g, MAX(x) AS x FROM m[j] GROUP BY g"


def many(text: str, **engine: Any) -> Many:
    table = SimpleNamespace(self_references=(), partitioned_inputs=())
    pin = SimpleNamespace(table=table, due=Parts.of((0, 99)), start=0)
    view = SimpleNamespace(name="v", update=SimpleNamespace(text=text), initialize=None, single_pass=None)
    limits = {"most_parts": 1000, "most_rows": 10**9, "step_seconds": 30.0, "stopping": lambda: False} | engine

    def refused(*_: object) -> Any:
        raise AnalysisException("[NOT_SUPPORTED] not in one query\nand a long plan")

    careful: set[str] = set()
    found: Any = SimpleNamespace(
        pin=pin,
        view=view,
        engine=SimpleNamespace(**limits),
        lifted=refused,
        careful=careful,
        give_up=lambda way, _why: careful.add(way),
    )
    return Many(found)


@pytest.mark.parametrize("text", [NOT_LIFTED, LIFTED])
def test_rows_limit_what_is_read_at_once(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of queries that are put together by UNION: twenty large parts are as large as one lifted query over them."""
    monkeypatch.setattr(Many, "_weight", lambda self, j: 10)
    lots = many(text, most_rows=50)
    walk: Any = iter(range(12))
    assert [lots.take(walk) for _ in range(3)] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]


def test_what_spark_refuses_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    lots = many(LIFTED)
    with caplog.at_level(logging.INFO, "partwise.step"):
        assert lots._lifted([1, 2]) is None
    assert lots.lifted is None
    assert lots.computing.careful == {"lifted"}
    assert caplog.messages == ["v: one query for many parts is not possible: [NOT_SUPPORTED] not in one query"]
