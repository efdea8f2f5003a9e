"""The pages of Great Expectations show every check, those of `key` and `max_removed` as well."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from partwise.checks.results import CheckResult, KeptResults
from partwise.tables import Table
from spark_jobs.checks import pages


def test_checks_that_keys_of_a_source_imply_are_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    key = {"column_list": ["id"], "ignore_row_if": "never"}
    results = (
        CheckResult(
            "expect_compound_columns_to_be_unique", key, "error", False, "2 of 20", 18, 20, 2, rows=('{"id": 7}',)
        ),
        CheckResult("max_removed", {"share": 0.1}, "error", False, "18 of 20 rows would be taken out"),
    )
    kept = KeptResults(29_849_760, 1_791_000_000.0, "failed", 20, "d", "m", results)
    with caplog.at_level(logging.INFO):
        pages.write(tmp_path / "site", [(Table("orders", "source", 60, ""), kept)])
    assert "xception" not in caplog.text
    (page,) = [path.read_text() for path in (tmp_path / "site" / "validations").rglob("*.html")]
    assert "unique" in page
    assert "18 of 20 rows would be taken out" in page
