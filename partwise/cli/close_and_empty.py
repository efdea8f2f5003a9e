"""What `close` and `empty` share."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from partwise.cli.open_workspace import definitions_of, ledger_of, table_of, workspace_of
from partwise.cli.views.show import as_json, plural, say
from partwise.parts import Parts, Range, part_text, range_text

if TYPE_CHECKING:
    from partwise.ledger.ledger import Ledger
    from partwise.ledger.write.closing import Adopt
    from partwise.ledger.write.commit import Recorded
    from partwise.ledger.write.leases import Lease
    from partwise.tables import Table
    from partwise.workspace import Workspace


@contextmanager
def source_in(workspace: str | None, name: str) -> Iterator[tuple[Ledger, Table, Adopt]]:
    """The ledger with today's definitions, the source that is meant, and how to adopt what it does not know."""
    where, now = workspace_of(workspace), time.time()
    definitions = definitions_of(where)
    found = table_of(definitions.graph(), definitions, name, "source")
    with ledger_of(where, now) as ledger:
        where.take_over(ledger, definitions, now)
        yield ledger, found, _adopting(where)


def _adopting(where: Workspace) -> Adopt:
    def adopt(ledger: Ledger, held: Lease) -> None:
        if "://" in where.warehouse or Path(where.warehouse).is_dir():
            adopt_orphans(ledger, held, where.warehouse, time.time())

    from partwise.ledger.write.orphans import adopt_orphans

    return adopt


def report(ledger: Ledger, table: Table, parts: Range, done: Recorded, what: str, json: bool) -> None:
    """What was done, and what became ready by it."""
    plan = ledger.plan(time.time())
    ready: dict[str, Parts] = {}
    for step in plan.steps:
        ready[step.table] = ready.get(step.table, Parts()) | Parts.of(step.parts)
    if json:
        texts = [part_text(p, table.length) for p in done.changed]
        as_json({"source": table.name, "closed": texts, "sequence": done.seq, "ready": sorted(ready)})
        return
    created = done.changed | done.unchanged
    before = parts.size - created.count
    there = f" ({plural(before, 'part')} existed already)" if before else ""
    say(f"{table.name}[{range_text(parts, table.length)}] {what}: {plural(created.count, 'part')}{there}.")
    if ready:
        say(
            f"{plural(sum(p.count for p in ready.values()), 'part')} of {', '.join(sorted(ready))} can be computed; see `partwise plan`."
        )
