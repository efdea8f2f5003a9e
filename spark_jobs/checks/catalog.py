"""The catalog of expectations, made from Great Expectations' own classes.

`python -m spark_jobs.checks.catalog --write` writes it. Definitions are validated against the file, because importing
Great Expectations takes seconds.
"""

from __future__ import annotations

import json
import sys
import typing
from typing import Any

from partwise.checks.catalog import FILE

_COMMAND = "python -m spark_jobs.checks.catalog --write"
#: Expectations that cannot be had here, and what to do instead.
LEFT_OUT = {
    "expect_column_values_to_be_increasing": "rows of a part have no order",
    "expect_column_values_to_be_decreasing": "rows of a part have no order",
    "expect_table_row_count_to_equal_other_table": "use row_count_equals: {table: NAME}",
    "expect_query_results_to_match_comparison": "compare in a view of its own, and check that one",
    "expect_multicolumn_values_to_be_unique": "use expect_compound_columns_to_be_unique",
}
#: Arguments of every expectation that are about Great Expectations itself.
_OWN = {
    *("id", "meta", "notes", "result_format", "description", "catch_exceptions", "rendered_content", "windows"),
    *("severity", "batch_id", "condition_parser", "library_metadata", "column_index"),
}
_COLUMNS = {"column", "column_A", "column_B"}
#: Where the annotation says less than the documentation.
_KNOWN: dict[str, Any] = {
    "mostly": "share",
    "min_value": "bound",
    "max_value": "bound",
    "row_condition": "text",
    "value_set": "list",
    "value_pairs_set": "list",
    "quantile_ranges": "map",
    "column_set": "list",
    "internal_weight_holdout": "share",
    "tail_weight_holdout": "share",
    "multiplier": "number",
    "escape": "text",
    "allow_relative_error": "number",
}
_WORDS = {bool: "flag", int: "whole", float: "number", str: "text", dict: "map", list: "list", tuple: "list"}
_WHOLE = ("row_count", "value_lengths", "unique_value_count", "column_count")
_IGNORE = ["both_values_are_missing", "either_value_is_missing", "neither"]
_IGNORE_MANY = ["all_values_are_missing", "any_value_is_missing", "never"]
#: The class does not say that these must be given, but without them nothing is checked.
_NEEDED = {"value", "value_set", "type_list", "regex", "column_list", "column_set", "partition_object", "threshold"}
_ONE_OF = ["min_value", "max_value"]


def catalog() -> dict[str, Any]:
    import great_expectations.expectations as gxe

    found = {}
    for name in dir(gxe):
        kind = getattr(gxe, name)
        title = getattr(kind, "expectation_type", "")
        if name.startswith("Expect") and title.startswith("expect_") and title not in LEFT_OUT:
            found[title] = _expectation(title, kind)
    return {
        "made_by": _COMMAND,
        "expectations": dict(sorted(found.items())),
        "left_out": dict(sorted(LEFT_OUT.items())),
    }


def _expectation(title: str, kind: Any) -> dict[str, Any]:
    arguments = {
        name: _argument(title, name, field) for name, field in sorted(kind.__fields__.items()) if name not in _OWN
    }
    lead = next((line.strip() for line in (kind.__doc__ or "").splitlines() if line.strip()), "")
    found: dict[str, Any] = {"says": lead.rstrip("."), "arguments": arguments}
    if {*_ONE_OF} <= {*arguments} and "threshold" not in arguments:
        found["one_of"] = _ONE_OF
    return found


def _argument(title: str, name: str, field: Any) -> dict[str, Any]:
    needed = bool(field.required) or name in _NEEDED
    return {"type": _type(title, name, field), **({"required": True} if needed else {})}


def _type(title: str, name: str, field: Any) -> Any:
    if title == "expect_column_to_exist" or (name == "column_list" and "_table_" in title):
        return "text" if name == "column" else "list"  # naming a column that is not there is what it is for
    if name in _COLUMNS:
        return "column"
    if name == "column_list":
        return "columns"
    if name == "ignore_row_if":
        return {"one of": _IGNORE if "pair" in title else _IGNORE_MANY}
    if name in ("min_value", "max_value") and any(word in title for word in _WHOLE):
        return "whole"
    if name in ("min_value", "max_value") and "proportion" in title:
        return "share"
    if name in _KNOWN:
        return _KNOWN[name]
    for choice in _flat(field.outer_type_):
        if typing.get_origin(choice) is typing.Literal:
            return {"one of": list(typing.get_args(choice))}
        word = _WORDS.get(typing.get_origin(choice) or choice)
        if word and not (word == "map" and choice is dict and len(_flat(field.outer_type_)) > 1):
            return word
    raise ValueError(f"{title}: what is {name}: {field.outer_type_}?")


def _flat(kind: Any) -> list[Any]:
    """The alternatives of a type; dict beside others stands for run-time parameters, which there are none of here."""
    if typing.get_origin(kind) is typing.Annotated:
        return _flat(typing.get_args(kind)[0])
    if typing.get_origin(kind) is typing.Union:
        return [piece for item in typing.get_args(kind) for piece in _flat(item)]
    return [kind]


def text() -> str:
    return json.dumps(catalog(), indent=1, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    made = text()
    if arguments == ["--write"]:
        FILE.write_text(made, encoding="utf-8")
        return 0
    if FILE.read_text(encoding="utf-8") != made:
        print(f"{FILE} is not current; run {_COMMAND}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
