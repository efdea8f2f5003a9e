"""The unit tests of the example views, one by one: what `partwise test` runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from partwise.compile.load import load
from partwise.unit import Case, cases_in
from spark_jobs.unit import run_case

pytestmark = pytest.mark.spark
HERE = Path(__file__).parent
DEFINITIONS = load(HERE.parents[1] / "view_defs")
CASES = [case for file in sorted(HERE.glob("*.yaml")) for case in cases_in(file, DEFINITIONS)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_view(spark: SparkSession, case: Case) -> None:
    outcome = run_case(spark, DEFINITIONS, case)
    lines = [f"{part}\n  " + "\n  ".join(said) for part, said in outcome.differences.items()]
    assert outcome.ok, "(- expected, + found)\n" + "\n".join(lines)


def test_every_example_has_tests() -> None:
    assert {case.view for case in CASES} == {
        name for name, table in DEFINITIONS.graph().tables.items() if table.kind == "view" and table.helper_of is None
    }
