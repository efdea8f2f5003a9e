"""The checks of sources and dimensions: when a part is closed, when rows come late, when a dimension changes.

A part that is to be closed and fails stays open, with its rows. Rows for a part that exists must not be seen at all
if they make it fail: then their files are not taken in, none of their rows, and wait in the landing folder. A Delta
table of others has no files to hold back: of it the part is left as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from partwise.checks.catalog import EQUALS, MAX_REMOVED, PREVIOUS
from partwise.checks.results import Checked
from partwise.definitions import Dimension
from partwise.ledger.records import checks as ledger_checks
from partwise.ledger.records.checks import HeldFile
from partwise.ledger.write import leases
from partwise.ledger.write.commit import Content
from partwise.parts import Parts, part_text
from partwise.storage import File
from partwise.storage import schema as schemas
from partwise.tables import DIMENSION_PART
from spark_jobs.checks.around import around
from spark_jobs.checks.run import check_parts
from spark_jobs.step import read

if TYPE_CHECKING:
    from spark_jobs.ingest.job import Job


class HeldBack(Exception):
    """Parts that exist would fail their checks; nothing was committed. The message is meant for people."""

    def __init__(self, work: Job, found: Mapping[int, Checked]) -> None:
        self.found = dict(found)
        length = work.engine.definitions.graph()[work.name].length
        first = min(self.found)
        name = work.name if isinstance(work.table, Dimension) else f"{work.name}[{part_text(first, length)}]"
        more = f" (and {len(self.found) - 1} more parts)" if len(self.found) > 1 else ""
        super().__init__(f"{name}{more}: {self.found[first].message()}")


def checked_source(
    work: Job,
    adds: Sequence[File],
    removes: Sequence[File],
    late: Mapping[int, Content],
    closing: Mapping[int, Content],
    files: Mapping[int, str],
    asked: bool = False,
) -> tuple[dict[int, Checked], Parts]:
    """What the checks say of these parts as they would be after a change, and which are not to be closed.

    `asked`: somebody wants these rows out, so no brake (`max_removed`) stops it. Raises HeldBack if one that exists fails. Those that are to be closed and are known to fail as they are (the same
    content, the same checks) are not asked again.
    """
    checks = [check for check in work.table.checks if not (asked and check.name == MAX_REMOVED)]
    if not checks or not (late or closing):
        return {}, Parts()
    known = _known_to_fail(work, closing)
    contents = {p: c for p, c in {**late, **closing}.items() if p not in known}
    if not contents:
        return {}, Parts.single(*known)
    with work.engine.ledger.database.reading() as r:
        accepted = ledger_checks.decided(r, work.name, "accept")
    parts = Parts.single(*contents)
    rows = read.staged(work.engine.spark, work.handle, list(adds))
    gone = set(removes)
    kept = [file for file in work.handle.files_of(parts) if file not in gone]
    if kept:
        rows = read.files(work.engine.spark, work.handle, kept).unionByName(rows)
    rows = rows.where(read.in_parts(parts))
    beside = around(work.engine, work.name, files=files)
    found = check_parts(rows, work.handle.schema, checks, contents, beside, accepted)
    work.engine.passed("checked")
    bad = {p: item for p, item in found.items() if p in late and not item.published}
    if bad:
        raise HeldBack(work, bad)
    return found, Parts.single(*known, *(p for p, item in found.items() if not item.published))


def checked_dimension(work: Job, adds: Sequence[File], content: Content, files: Mapping[int, str]) -> dict[int, str]:
    """A dimension is checked whole; it keeps its content if the new one fails. Returns warnings, raises HeldBack."""
    if not work.table.checks:
        return {}
    with work.engine.ledger.database.reading() as r:
        accepted = ledger_checks.decided(r, work.name, "accept")
    rows = read.staged(work.engine.spark, work.handle, list(adds))
    rows = rows.withColumn(schemas.PART, F.lit(DIMENSION_PART).cast("long"))
    beside = around(work.engine, work.name, files=files)
    contents = {DIMENSION_PART: content}
    found = check_parts(rows, work.handle.schema, work.table.checks, contents, beside, accepted)
    work.engine.passed("checked")
    if not found[DIMENSION_PART].published:
        raise HeldBack(work, found)
    tell(work, found.values())
    return warnings_of(found)


def warnings_of(found: Mapping[int, Checked]) -> dict[int, str]:
    return {p: item.message() for p, item in found.items() if item.outcome == "warned"}


def _known_to_fail(work: Job, closing: Mapping[int, Content]) -> set[int]:
    found: set[int] = set()
    if any(check.name in (PREVIOUS, EQUALS) for check in work.table.checks):
        return found  # what they look at may have changed
    mark = work.engine.definitions.graph()[work.name].checks
    with work.engine.ledger.database.reading() as r:
        for p in ledger_checks.failed_parts(r, work.name) & closing.keys():
            kept = ledger_checks.kept(r, work.name, p)
            if kept is not None and (kept.digest, kept.mark) == (closing[p].digest, mark):
                found.add(p)
    return found


def tell(work: Job, found: Iterable[Checked], held: Sequence[HeldFile] = (), fine: Iterable[int] = ()) -> None:
    """Keep what the checks found; parts that failed are held back, and so are these files. `fine`: parts that hold
    what they held before, whatever was wrong meanwhile."""
    items, well = list(found), list(fine)
    if not items and not held and not well:
        return
    with work.engine.ledger.database.writing(work.engine.now()) as w:
        leases.check(w, work.held)
        ledger_checks.keep(w, work.name, work.engine.definitions.graph()[work.name].checks, items)
        ledger_checks.hold(w, work.name, [item for item in items if not item.published])
        ledger_checks.hold_files(w, work.name, held)
        ledger_checks.forget(w, work.name, well)
