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


NESTED = {
    "n": "bigint",
    "x": "double",
    "s": "string",
    "p": "decimal(4,2)",
    "at": "timestamp",
    "ok": "boolean",
    "info": "struct<unit: string, place: struct<lat: double>>",
    "list": "array<int>",
    "map": "map<string, int>",
}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"n": 1, "x": 1, "s": 5, "p": "1.5", "at": "2026-10-03T10:00:00", "ok": true}', None),
        (
            '{"x": "NaN", "at": 1791001500, "info": {"unit": 5, "place": {"lat": 1}}, "list": [1, null], "map": {"a": 1}}',
            None,
        ),
        ('{"n": "1"}', "n is '1', which is not a valid bigint: numbers have no quotes in JSON"),
        ('{"n": 1.5}', "n is 1.5, which is not a valid bigint"),
        ('{"n": true}', "n is true, which is not a valid bigint"),
        ('{"N": [1]}', "n is '[1]', which is not a valid bigint"),
        ('{"n": 99999999999999999999}', "n is 99999999999999999999, which is not a valid bigint"),
        ('{"x": "12.5"}', "x is '12.5', which is not a valid double: numbers have no quotes in JSON"),
        ('{"x": "hot"}', "x is 'hot', which is not a valid double"),
        ('{"p": 100}', "p is 100, which is not a valid decimal(4,2)"),
        ('{"ok": "true"}', "ok is 'true', which is not a valid boolean"),
        ('{"at": "yesterday"}', "at is 'yesterday', which is not a valid timestamp"),
        ('{"info": "text"}', "info is 'text', which is not a valid struct<unit: string, place: struct<lat: double>>"),
        ('{"info": {"place": {"lat": "x"}}}', "info.place.lat is 'x', which is not a valid double"),
        ('{"list": [1, "2"]}', "list[1] is '2', which is not a valid int: numbers have no quotes in JSON"),
        ('{"map": {"a": 1.5}}', "map.a is 1.5, which is not a valid int"),
        ("[1]", "it is not a JSON object"),
        ("{", "it is not a JSON object"),
    ],
)
def test_objects_of_json(line: str, said: str | None) -> None:
    assert misfit(line, None, NESTED) == said


def test_long_values_are_cut() -> None:
    found = misfit(f'{{"n": "{"z" * 90}"}}', None, COLUMNS)
    assert found is not None
    assert len(found) < 80
    assert fits("anything", "variant")


def test_the_ledger_counts_them_together() -> None:
    assert files._UNFIT == UNFIT
