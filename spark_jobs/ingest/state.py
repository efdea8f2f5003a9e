"""What the ledger knows of a source. Nothing of Spark is imported: looking whether there is anything to do reads it, too."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import select

from partwise.ledger.catalog import settled
from partwise.ledger.ledger import Ledger
from partwise.ledger.records import checks as ledger_checks
from partwise.ledger.records.checks import HeldFile
from partwise.ledger.records.files import Intake, TakenFile, files_of, intake_of
from partwise.ledger.runs import existing
from partwise.ledger.schema import open_part
from partwise.ledger.write.commit import Content
from partwise.ledger.write.rebuilding import lost_parts
from partwise.parts import Parts


@dataclass(frozen=True)
class SourceState:
    """What the ledger knows of a source."""

    generation: int
    floor: int | None
    existing: Parts
    opened: dict[int, Content]
    intake: Intake
    files: dict[str, TakenFile]
    held: dict[str, HeldFile]
    failing: frozenset[int]  # parts that are held back because of their checks
    lost: Parts = field(default_factory=Parts)  # parts that existed before the table began to be made again

    def is_held(self, name: str, size: int, mtime: int) -> bool:
        return ledger_checks.is_held(self.held, self.failing, name, size, mtime)


def read_state(ledger: Ledger, name: str) -> SourceState:
    with ledger.database.reading() as r:
        now = settled(r, name)
        rows = r.on.execute(
            select(open_part.c.part, open_part.c.rows, open_part.c.digest).where(open_part.c.table == name)
        )
        opened = {row.part: Content(row.rows, row.digest) for row in rows}
        return SourceState(
            now.generation,
            now.floor,
            existing(r, name),
            opened,
            intake_of(r, name),
            files_of(r, name),
            ledger_checks.held_files(r, name),
            frozenset(ledger_checks.failed_parts(r, name)),
            lost_parts(r, name),
        )
