"""HTML pages of the latest results, made by Great Expectations: its data docs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from partwise.checks.results import CheckResult, KeptResults
from partwise.parts import part_text
from partwise.tables import Table

_SITE = "partwise"


def write(folder: Path, found: Iterable[tuple[Table, KeptResults]]) -> Path:
    """Write the site again; returns its first page."""
    from spark_jobs.checks.expectations import great_expectations

    gx, _ = great_expectations()
    _make_ours_known()
    from great_expectations.core import ExpectationSuite
    from great_expectations.core.expectation_validation_result import ExpectationSuiteValidationResult
    from great_expectations.core.run_identifier import RunIdentifier
    from great_expectations.data_context.types.resource_identifiers import (
        ExpectationSuiteIdentifier,
        ValidationResultIdentifier,
    )

    shutil.rmtree(folder, ignore_errors=True)
    context = gx.get_context(mode="ephemeral")
    backend = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder)}
    for name in list(context.get_site_names()):
        context.delete_data_docs_site(name)
    site = {
        "class_name": "SiteBuilder",
        "store_backend": backend,
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
    }
    context.add_data_docs_site(_SITE, site)
    for table, kept in found:
        if table.name not in [suite.name for suite in context.suites.all()]:
            context.suites.add(ExpectationSuite(name=table.name))
        # The name becomes that of a folder: colons are not allowed everywhere.
        part = "all" if table.kind == "dimension" else part_text(kept.part, table.length).replace(":", "-")
        run = RunIdentifier(run_name=part, run_time=datetime.fromtimestamp(kept.at, UTC))
        key = ValidationResultIdentifier(ExpectationSuiteIdentifier(table.name), run, f"{table.name}-{part}")
        results = [_result(item) for item in kept.results]
        good = sum(item.ok for item in kept.results)
        whole = ExpectationSuiteValidationResult(
            suite_name=table.name,
            success=kept.outcome in ("passed", "warned"),
            results=results,
            statistics={
                "evaluated_expectations": len(results),
                "successful_expectations": good,
                "unsuccessful_expectations": len(results) - good,
                "success_percent": 100.0 * good / len(results) if results else None,
            },
            meta={"run_id": run, "active_batch_definition": _about(table, kept, part), **_accepted(kept)},
        )
        context.validation_results_store.set(key, whole)
    context.build_data_docs(site_names=[_SITE])
    return folder / "index.html"


@cache
def _make_ours_known() -> None:
    """Great Expectations shows only what it has a class for; making one registers it by its name."""
    from great_expectations.expectations.expectation import BatchExpectation

    class _Ours(BatchExpectation):
        def _validate(self, *given: Any, **named: Any) -> Any:
            raise NotImplementedError("it is answered by Partwise")

    class RowCountRatioToPreviousPart(_Ours):
        min: float | None = None
        max: float | None = None

    class RowCountEquals(_Ours):
        table: str

    class MaxRemoved(_Ours):
        share: float


def _about(table: Table, kept: KeptResults, part: str) -> dict[str, Any]:
    return {
        "datasource_name": "partwise",
        "data_connector_name": table.kind,
        "data_asset_name": table.name,
        "batch_identifiers": {"part": part, "rows": kept.rows, "outcome": kept.outcome},
    }


def _accepted(kept: KeptResults) -> dict[str, str]:
    return {"accepted_by": kept.accepted_by} if kept.accepted_by else {}


def _result(item: CheckResult) -> Any:
    from great_expectations.core.expectation_validation_result import ExpectationValidationResult
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    found: dict[str, Any] = {"observed_value": item.message if item.observed is None else item.observed}
    if item.unexpected is not None and item.elements is not None:
        share = 100.0 * item.unexpected / item.elements if item.elements else 0.0
        some = [json.loads(row) if row.endswith("}") else row for row in item.rows]
        found = {
            "element_count": item.elements,
            "unexpected_count": item.unexpected,
            "unexpected_percent": share,
            "unexpected_percent_total": share,
            "partial_unexpected_list": [json.dumps(row, ensure_ascii=False) for row in some],
        }
    kind, arguments = item.check, dict(item.arguments)
    columns = arguments.get("column_list")
    if kind == "expect_compound_columns_to_be_unique" and isinstance(columns, list) and len(columns) == 1:
        # `key: id` asks for it, and Great Expectations shows nothing of a page with one compound column.
        kind, arguments = "expect_column_values_to_be_unique", {"column": columns[0]}
    asked = ExpectationConfiguration(type=kind, kwargs=arguments, meta={"severity": item.severity})
    return ExpectationValidationResult(
        success=item.ok, expectation_config=asked, result=found, meta={"says": item.message}
    )
