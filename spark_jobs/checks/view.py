"""The checks of a view, between staging and commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame

from partwise.checks.results import Checked
from partwise.ledger.records import checks as ledger_checks
from partwise.ledger.write import leases
from partwise.ledger.write.commit import Content
from partwise.ledger.write.leases import Lease
from spark_jobs.checks.around import around
from spark_jobs.checks.run import check_parts
from spark_jobs.step.compute import Computing


def checked_view(
    computing: Computing, rows: DataFrame, contents: Mapping[int, Content], before: Mapping[int, Content]
) -> dict[int, Checked]:
    """Check staged parts. `before` are good parts of the same step; people may have accepted what fails."""
    engine, view = computing.engine, computing.view
    if not view.checks:
        return {}
    assert computing.own is not None
    with engine.ledger.database.reading() as r:
        accepted = ledger_checks.decided(r, view.name, "accept")
    return check_parts(rows, computing.own.schema, view.checks, contents, around(engine, view.name, before), accepted)


def tell(computing: Computing, held: Lease, found: Iterable[Checked]) -> None:
    """Keep what the checks found in the ledger."""
    items = list(found)
    if items:
        with computing.engine.ledger.database.writing(computing.engine.now()) as w:
            leases.check(w, held)
            ledger_checks.keep(w, held.table, computing.pin.table.checks, items)
