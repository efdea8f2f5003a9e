"""The catalog of expectations is current, and every one of them can be answered."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from partwise.checks.catalog import FILE, expectations, left_out

ROOT = Path(__file__).parents[2]


def test_the_catalog_is_current() -> None:
    """Made again from the installed Great Expectations it is the same."""
    from spark_jobs.checks.catalog import text

    assert FILE.read_text(encoding="utf-8") == text()


def test_every_column_argument_is_known_as_one() -> None:
    for name, expectation in expectations().items():
        for argument, about in expectation.arguments.items():
            if argument.startswith("column") and name not in (
                "expect_column_to_exist",
                "expect_table_columns_to_match_ordered_list",
                "expect_table_columns_to_match_set",
            ):
                assert about.type in ("column", "columns"), (name, argument)
    assert len(expectations()) > 50
    assert not set(left_out()) & set(expectations())


def test_commands_start_without_great_expectations() -> None:
    """Validating checks must not cost the seconds of its import."""
    code = (
        "import sys; from partwise.compile.load import load; d = load('view_defs'); assert d.ok, d.problems; "
        "assert any(t.checks for t in d.tables.values()); "
        "assert not {'great_expectations', 'pandas', 'pyspark'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_the_page_lists_all_expectations() -> None:
    from partwise.checks.page import PAGE, text

    assert PAGE.read_text(encoding="utf-8") == text()
