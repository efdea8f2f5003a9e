"""Questions that people ask cost the same with ten parts and with a million."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from sqlalchemy import insert, select, text

from partwise.ledger.ledger import Ledger
from partwise.ledger.open import in_memory
from partwise.ledger.read import history, reports
from partwise.ledger.read.snapshot import as_defined
from partwise.ledger.schema import due, have, part, revision
from partwise.ledger.write.closing import ClosingRefused, close, declare_empty
from partwise.ledger.write.commit import EMPTY
from partwise.ledger.write.leases import Busy
from partwise.parts import Parts, Range, Reference
from partwise.tables import Graph, Input, Table

SOURCE = Table("s", "source", 60, "f")
VIEW = Table("v", "view", 60, "f", (Input("s", Reference.same()),), (Input("s", Reference.same()),))
GRAPH = Graph.of((SOURCE, VIEW))
MANY = 200_000


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    made = in_memory()
    made.define(GRAPH, 0.0)
    yield made
    made.database.close()


@pytest.fixture(scope="module")
def large() -> Iterator[Ledger]:
    made = in_memory()
    made.define(GRAPH, 0.0)
    rows = [
        {"table": "s", "part": p, "revision": 1, "changed_seq": p, "as_of": p, "self_as_of": p, "fingerprint": "f",
         "rows": 1, "digest": "1:a", "version": p, "updated_at": float(p)}
        for p in range(MANY)
    ]  # fmt: skip
    history_rows = [
        {"table": "s", "part": p, "seq": p, "revision": 1, "rows": 1, "digest": "1:a", "at": float(p), "reason": "x"}
        for p in range(MANY)
    ]
    with made.database.writing(0.0) as w:
        w.on.execute(insert(part), rows)
        w.on.execute(insert(revision), history_rows)
        w.on.execute(insert(have), {"table": "s", "lo": 0, "hi": MANY - 1})
        w.on.execute(
            insert(due),
            {"table": "v", "lo": 0, "hi": MANY - 1, "seq": 1, "since": 0.0, "cause": "input", "cause_table": "s"},
        )
    yield made
    made.database.close()


@pytest.mark.parametrize(
    "statement",
    [reports._PAGE, reports._OPEN, reports._FAILED_PARTS, reports._CHANGES, history._PART, history._OPEN,
     history._FAILURE, history._REVISIONS, history._AT, history._VERSION],
)  # fmt: skip
def test_every_question_about_one_table_goes_by_an_index(ledger: Ledger, statement: object) -> None:
    values = {"t": "s", "p": 1, "a": 0, "b": 9, "n": 5, "s": 3, "since": 0.0}
    with ledger.database.reading() as r:
        sql = str(statement.compile(r.on))  # type: ignore[attr-defined]
        plan = [row[3] for row in r.on.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", _in_order(statement, r, values))]
    assert plan
    assert [step for step in plan if step.startswith("SCAN")] == []


def _in_order(statement, r, values):  # type: ignore[no-untyped-def]
    compiled = statement.compile(r.on)
    return tuple(values.get(name, 1) for name in compiled.positiontup)


def test_a_page_of_many_parts_is_quick(large: Ledger) -> None:
    with as_defined(large, GRAPH, 0.0) as snapshot:
        started = time.perf_counter()
        page = reports.parts(snapshot, "s", limit=20)
        waiting = reports.parts(snapshot, "v", limit=20)
        everything = {row.table.name: row for row in reports.tables(snapshot)}
        changed, more = reports.changes_since(snapshot, "s", 0.0, 10)
        took = time.perf_counter() - started
        started = time.perf_counter()
        snapshot.r.on.execute(select(part)).all()
        reading_all = time.perf_counter() - started
    assert [row.part for row in page.parts] == list(range(MANY - 1, MANY - 21, -1))
    assert [row.state for row in waiting.parts] == ["missing"] * 20
    assert page.more
    assert waiting.more
    assert (everything["s"].parts, everything["v"].missing) == (MANY, MANY)
    assert ([c.part for c in changed], more) == (list(range(MANY - 1, MANY - 11, -1)), True)
    assert took < reading_all / 3


def test_as_defined_writes_nothing(ledger: Ledger) -> None:
    other = Graph.of((SOURCE, VIEW, Table("w", "view", 60, "g", VIEW.inputs, VIEW.initial)))
    with ledger.database.reading() as r:
        before = r.seq
    with as_defined(ledger, other, 1.0) as snapshot:
        assert snapshot.changes.added == ("w",)
        assert [row.table.name for row in reports.tables(snapshot)] == ["s", "v", "w"]
    with ledger.database.reading() as r:
        assert r.seq == before
    assert "w" not in ledger.graph().tables


def test_parts_closed_by_hand(ledger: Ledger) -> None:
    assert declare_empty(ledger, "s", Range(3, 5), "me", 1.0).changed == Parts.of((3, 5))
    assert close(ledger, "s", 6, "me", 2.0).changed == Parts.single(6)
    with pytest.raises(ClosingRefused, match="exists already"):
        close(ledger, "s", 6, "me", 3.0)
    assert declare_empty(ledger, "s", Range(5, 8), "me", 3.0).changed == Parts.of((7, 8))  # the missing ones
    assert [step.parts for step in ledger.plan(4.0).steps] == [Range(3, 8)]
    with ledger.database.reading() as r:
        kept = r.on.execute(text("SELECT rows, digest FROM part WHERE part = 4")).one()
    assert tuple(kept) == (EMPTY.rows, EMPTY.digest)


def test_a_writer_that_was_killed_keeps_nobody_waiting(ledger: Ledger) -> None:
    """A process of this machine that is gone; while one lives its lease counts."""
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    ledger.take("s", f"{socket.gethostname()}:{int(gone.stdout)}:ab", 60, 1.0)
    assert close(ledger, "s", 6, "me", 2.0).changed == Parts.single(6)
    ledger.take("s", f"{socket.gethostname()}:{os.getpid()}:cd", 60, 3.0)
    with pytest.raises(Busy):
        declare_empty(ledger, "s", Range(7, 8), "me", 4.0)


def test_orphans_are_adopted_before_a_part_is_closed(ledger: Ledger) -> None:
    seen = []
    close(ledger, "s", 6, "me", 2.0, adopt=lambda _, held: seen.append(held.table))
    assert seen == ["s"]
