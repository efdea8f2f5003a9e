"""What does not fit is named with its column and type."""

from __future__ import annotations

import pytest

from partwise.ledger.records import files
from partwise.sources.bounds import UNFIT
from partwise.sources.misfit import fits, misfit

COLUMNS = {"src": "string", "loss": "double", "n": "int", "price": "decimal(4,2)", "ok": "boolean", "day": "date"}
HEADER = ["src", "loss", "n", "price", "ok", "day"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("x,1.5,1,1.00,true,2026-10-03", None),
        ("x,,,,,", None),
        ("x,1x,1,1.00,true,2026-10-03", "loss is '1x', which is not a valid double"),
        ("x,1,3000000000,1.00,true,2026-10-03", "n is '3000000000', which is not a valid int"),
        ("x,1,1,100.00,true,2026-10-03", "price is '100.00', which is not a valid decimal(4,2)"),
        ("x,1,1,1.00,maybe,2026-10-03", "ok is 'maybe', which is not a valid boolean"),
        ("x,1,1,1.00,true,2026-13-03", "day is '2026-13-03', which is not a valid date"),
        ('"a,b",1,1', "it has 3 values, the header has 6"),
    ],
)
def test_lines_of_csv(line: str, said: str | None) -> None:
    assert misfit(line, HEADER, COLUMNS) == said


def test_json_and_long_values() -> None:
    assert misfit('{"n": "1"}', None, COLUMNS) is None
    assert misfit('{"N": [1]}', None, COLUMNS) == "n is '[1]', which is not a valid int"
    assert misfit("[1]", None, COLUMNS) == misfit("{", None, COLUMNS) == "it is not a JSON object"
    found = misfit(f'{{"n": "{"z" * 90}"}}', None, COLUMNS)
    assert found is not None
    assert len(found) < 80
    assert fits("anything", "variant")


def test_the_ledger_counts_them_together() -> None:
    assert files._UNFIT == UNFIT
