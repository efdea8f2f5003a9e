"""How long does `partwise audit` take? A source and two views of a million parts each, one of them a window of a day.

Seconds of one core: what else the machine does makes no difference.

python benchmarks/bench_audit.py [PARTS]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from sqlalchemy import Table as Rows
from sqlalchemy import insert

from partwise.ledger.ledger import Ledger
from partwise.ledger.open import open_ledger
from partwise.ledger.read.audit_report import audit_report
from partwise.ledger.schema import catalog, due, have, part, revision, version
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Reference
from partwise.tables import Graph, Input, Table

NOW, PARTS, LATE = 1_000.0, 1_000_000, 100


def view(name: str, reference: Reference) -> Table:
    inputs = (Input("s", reference),)
    return Table(name, "view", 60, name, inputs, inputs)


GRAPH = Graph.of(
    [Table("s", "source", 60, "s"), view("same", Reference.same()), view("day", Reference.window(-1439, 0))]
)


def fill(ledger: Ledger, parts: int) -> None:
    """As if every part had been computed in a step of its own, as soon as its part of the source was there."""
    ledger.define(GRAPH, NOW)
    with ledger.database.writing(NOW) as w:
        w.on.execute(due.delete())
        for n, name in enumerate(GRAPH.order):
            first = 1439 if name == "day" else 0
            w.on.execute(insert(have), {"table": name, "lo": first, "hi": parts - 1})
            w.on.execute(catalog.update().where(catalog.c.table == name).values(start=first))
            seqs = range(10 + n, 10 + n + 3 * parts, 3)
            _put(w.on, part, (_part(name, p, seqs[p]) for p in range(first, parts)))
            _put(w.on, revision, (_revision(name, p, seqs[p]) for p in range(first, parts)))
            _put(w.on, version, (_version(name, p, seqs[p]) for p in range(first, parts)))
        w.on.exec_driver_sql(f"UPDATE clock SET seq = {20 + 3 * parts}, at = {NOW + 20 + 3 * parts}")


def _part(name: str, p: int, seq: int) -> dict[str, object]:
    row = {"table": name, "part": p, "revision": 1, "changed_seq": seq, "as_of": seq - 1, "self_as_of": seq}
    return row | {"fingerprint": name, "rows": 1, "digest": "1:0", "version": p, "updated_at": NOW + seq}


def _revision(name: str, p: int, seq: int) -> dict[str, object]:
    row = {"table": name, "part": p, "seq": seq, "revision": 1, "rows": 1, "digest": "1:0", "at": NOW + seq}
    return row | {"reason": "", "as_of": seq, "mixed": None, "superseded": p % 100 == 0}


def _version(name: str, p: int, seq: int) -> dict[str, object]:
    return {"table": name, "seq": seq, "generation": 0, "version": p, "at": NOW + seq}


def _put(on: object, table: Rows, rows: Iterator[dict[str, object]]) -> None:
    while lot := list(islice(rows, 50_000)):
        on.execute(insert(table), lot)  # type: ignore[attr-defined]


def late_rows(ledger: Ledger, parts: int) -> float:
    """Some parts of the source change; returns since when."""
    with ledger.database.reading() as r:
        since = r.at
    held = ledger.take("s", "bench", 60, NOW)
    changed = {p: Content(2, "2:1") for p in range(parts // 2, parts // 2 + LATE)}
    ledger.commit(held, Entry("s", 0, "s", None, parts=changed), parts, NOW)
    return since


def timed(ledger: Ledger, since: float | None = None) -> tuple[float, int]:
    began = time.process_time()
    with ledger.database.reading() as r:
        found = audit_report(r, ledger.graph_at(r), since=since)
    assert not found.problems, found.problems[:3]
    return time.process_time() - began, sum(item.parts for item in found.views)


def main(parts: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = open_ledger(f"sqlite:///{Path(folder) / 'ledger.db'}", NOW)
        fill(ledger, parts)
        whole, count = timed(ledger)
        print(f"the whole ledger, {count:,} parts of two views over {parts:,} of a source: {whole:.2f} s")
        since = late_rows(ledger, parts)
        after, _ = timed(ledger)
        print(f"the same after {LATE} late parts ({LATE + 1439:,} parts of the window are due): {after:.2f} s")
        some, _ = timed(ledger, since)
        print(f"only what happened since then: {some:.2f} s")
        ledger.database.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else PARTS)
