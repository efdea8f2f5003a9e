"""Leases of the dead are freed and what they committed is adopted; the living keep theirs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partwise import storage
from partwise.ledger.ledger import Ledger
from partwise.ledger.open import open_ledger
from partwise.ledger.runs import existing
from partwise.ledger.write.commit import Content
from partwise.parts import Parts
from partwise.reconcile import free_dead
from partwise.storage import schema as schemas
from partwise.storage.paths import table_path
from tests.ledger.test_steps import GRAPH, T, arrive

DEAD = "here:1:x"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    found = open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}", T)
    found.define(GRAPH, T)
    arrive(found, {0: "a"})
    yield found
    found.database.close()


def holders(ledger: Ledger) -> dict[str, str]:
    from partwise.reconcile import _HELD

    with ledger.database.reading() as r:
        return {row.table: row.holder for row in r.on.execute(_HELD)}


def test_only_leases_that_nobody_lives_for_are_freed(ledger: Ledger, tmp_path: Path) -> None:
    ledger.take("s", "there:1:y", 60, T)
    ledger.take("v", DEAD, 60, T)
    ledger.take("w", "there:2:z", 10, T)
    found = free_dead(ledger, str(tmp_path), "me", T + 30, dead=lambda holder: holder == DEAD)
    assert (found.freed, found.adopted) == ({"v": DEAD, "w": "there:2:z"}, {}), "w's lease has expired"
    assert holders(ledger) == {"s": "there:1:y"}, "and nobody holds what was freed"
    assert not free_dead(ledger, str(tmp_path), "me", T + 30, dead=lambda holder: holder == DEAD)


def test_who_was_quicker_keeps_the_table(ledger: Ledger, tmp_path: Path) -> None:
    ledger.take("v", DEAD, 60, T)

    def dead(holder: str) -> bool:
        ledger.take("v", "quicker", 60, T, dead=holder)
        return True

    assert not free_dead(ledger, str(tmp_path), "me", T, dead=dead)
    assert holders(ledger) == {"v": "quicker"}


def test_what_the_dead_committed_is_adopted(ledger: Ledger, tmp_path: Path) -> None:
    handle = storage.create(table_path(str(tmp_path), "v", 0), schemas.of({"x": "int"}))
    held = ledger.take("v", DEAD, 60, T)
    ledger.adopt(held, [(0, None)], T)
    pin = ledger.pin(held, T)
    assert pin is not None
    rows = {
        "part": pa.array([0], pa.int64()),
        "part_timestamp": pa.array([0], pa.timestamp("us", "UTC")),
        "x": pa.array([7], pa.int32()),
    }
    folder = Path(storage.begin(handle, "step"))
    folder.mkdir()
    pq.write_table(pa.table(rows), folder / "part-0.parquet")
    entry = pin.entry({0: Content(1, "x")})
    storage.commit(handle, storage.staged(handle.path, "step"), (), {"kind": "step", "entry": entry.to_json()})
    # Here the writer dies: the data are visible, and the ledger does not know.
    found = free_dead(ledger, str(tmp_path), "me", T + 1, dead=lambda _: True)
    assert (found.freed, found.adopted) == ({"v": DEAD}, {"v": 1})
    with ledger.database.reading() as r:
        assert existing(r, "v") == Parts.single(0)
    assert [step.table for step in ledger.plan(T + 1).steps] == ["w"]
