"""Schemas: what can be stored, and messages that say what to do instead."""

from __future__ import annotations

import json

import pytest

from partwise.storage import schema as schemas
from partwise.storage.schema import BadSchema


def of(*fields: tuple[str, object], nullable: bool = True) -> str:
    found = [{"name": n, "type": t, "nullable": nullable, "metadata": {"comment": "x"}} for n, t in fields]
    return json.dumps({"type": "struct", "fields": found})


def test_nullability_and_comments_are_no_part_of_a_schema() -> None:
    nested = {"type": "array", "elementType": "long", "containsNull": False}
    other = {"type": "array", "elementType": "long", "containsNull": True}
    assert schemas.normal(of(("a", "long"), ("b", nested), nullable=False)) == schemas.normal(
        of(("a", "long"), ("b", other))
    )
    assert '"x"' not in schemas.normal(of(("a", "long")))


def test_part_columns_come_first() -> None:
    assert schemas.fields(schemas.of({"n": "bigint", "d": "decimal(10,2)"})) == (
        ("part", "long"),
        ("part_timestamp", "timestamp"),
        ("n", "long"),
        ("d", "decimal(10,2)"),
    )


def test_all_problems_at_once_with_a_way_out() -> None:
    struct = {"type": "struct", "fields": [{"name": "v", "type": "variant", "nullable": True, "metadata": {}}]}
    with pytest.raises(BadSchema) as caught:
        schemas.normal(
            of(("a", "void"), ("t", "timestamp_ntz"), ("count(1)", "long"), ("x", "long"), ("X", "long"), ("s", struct))
        )
    assert caught.value.problems == (
        "column 'a' has the type void, which not every Delta reader knows: CAST it to a type, for example CAST(NULL AS STRING)",
        "column 't' has the type timestamp_ntz, which not every Delta reader knows: CAST it to TIMESTAMP (UTC)",
        "column 's.v' has the type variant, which not every Delta reader knows: take fields out of it, or store it as text with to_json",
        "column 'count(1)' has a name that Delta refuses: give it another with AS, for example AS n",
        "column 'X' is there twice: give one of them another name with AS",
    )
