"""Compaction and cleaning on real tables: same rows, fewer files, every promised read still works."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import func, select

from partwise import storage
from partwise.ledger.read.promise import oldest, promised
from partwise.ledger.schema import revision, version
from partwise.ledger.write.leases import Busy
from partwise.parts import Reference
from partwise.tables import Table
from partwise.upkeep import clean as cleaning
from partwise.upkeep.compact import compact
from partwise.upkeep.retain import clean_up, give_up
from tests.upkeep.store import Store, view


class Crash(Exception):
    pass


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(cleaning, "_YOUNG", cleaning.timedelta(0))
    found = Store(tmp_path, Table("s", "source", 60, "s-1"), view("v", ("s", Reference.same())))
    found.time = datetime.now(UTC).timestamp()  # files carry the clock of the machine
    for p in range(12):
        found.put("s", {p: [p, p + 100]})
    return found


def late(store: Store) -> None:
    store.time += 7200


def test_rows_stay_files_become_few_and_apart_and_nothing_is_due(store: Store) -> None:
    store.put("v", {p: [p] for p in range(12)})
    before, seq = store.rows("s"), store.ledger.current("s").version
    late(store)
    assert not store.ledger.plan(store.time).steps
    done = compact(store.ledger, store.warehouse, "s", store.now, target=6000)
    assert done is not None
    assert (done.before, done.after < 6) == (12, True)
    assert store.rows("s") == before
    handle = storage.open_at(store.path("s"))
    spans = sorted((f.lo or 0, f.hi or 0) for f in handle.files)
    assert all(a[1] < b[0] for a, b in pairwise(spans))
    assert handle.rows == 24
    assert store.ledger.current("s").version == handle.version == (seq or 0) + 1
    assert not store.ledger.plan(store.time).steps
    assert store.ledger.audit() == {}
    with store.ledger.database.reading() as r:
        assert r.on.execute(select(func.count()).select_from(revision).where(revision.c.table == "s")).scalar() == 12
    assert compact(store.ledger, store.warehouse, "s", store.now) is not None
    assert compact(store.ledger, store.warehouse, "s", store.now) is None  # one file cannot become fewer
    assert store.rows("s") == before


def test_a_large_table_is_committed_on_the_way(store: Store) -> None:
    """With no time at all each group is a commit of its own. What is done stays when somebody stops it."""
    before, at = store.rows("s"), store.ledger.current("s").version or 0
    late(store)
    seen: list[tuple[int, int]] = []

    def stopped(done: int, of: int) -> None:
        seen.append((done, of))
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compact(store.ledger, store.warehouse, "s", store.now, target=6000, seconds=0.0, progress=stopped)
    groups = seen[0][1]
    assert groups > 2
    assert seen == [(0, groups), (1, groups), (2, groups)]
    assert store.ledger.current("s").version == at + 2
    assert store.rows("s") == before
    more: list[int] = []
    done = compact(
        store.ledger,
        store.warehouse,
        "s",
        store.now,
        target=6000,
        seconds=0.0,
        progress=lambda *told: more.append(told[1]),
    )
    assert done is not None
    assert store.ledger.current("s").version == storage.open_at(store.path("s")).version == at + 2 + len(more)
    assert (done.after, store.rows("s")) == (len(storage.open_at(store.path("s")).files), before)
    assert store.ledger.audit() == {}


def test_a_late_row_after_compaction_rewrites_one_file(store: Store) -> None:
    late(store)
    compact(store.ledger, store.warehouse, "s", store.now, target=6000)
    files = {f.path for f in storage.open_at(store.path("s")).files}
    store.put("s", {3: [3, 103, 203]})
    assert len(files - {f.path for f in storage.open_at(store.path("s")).files}) == 1
    assert store.rows("s") == sorted([(p, x) for p in range(12) for x in (p, p + 100)] + [(3, 203)])
    late(store)
    compact(store.ledger, store.warehouse, "s", store.now, target=6000)
    assert (3, 203) in store.rows("s")


def test_young_files_and_held_tables_are_left(store: Store) -> None:
    assert compact(store.ledger, store.warehouse, "s", store.now) is None
    late(store)
    store.ledger.take("s", "somebody", 60, store.time)
    with pytest.raises(Busy):
        compact(store.ledger, store.warehouse, "s", store.now)


@pytest.mark.parametrize("point", ["leased", "staged", "committed"])
def test_a_compaction_that_dies_leaves_nothing_wrong(store: Store, point: str) -> None:
    late(store)

    def passed(here: str) -> None:
        if here == point:
            raise Crash

    before = store.rows("s")
    with pytest.raises(Crash):
        compact(store.ledger, store.warehouse, "s", store.now, passed=passed)
    store.put("s", {12: [1]})  # adopts what was committed
    assert store.rows("s") == [*before, (12, 1)]
    assert store.ledger.current("s").version == storage.open_at(store.path("s")).version
    late(store)
    compact(store.ledger, store.warehouse, "s", store.now)
    assert store.rows("s") == [*before, (12, 1)]


def test_what_is_promised_can_be_read_after_cleaning_and_the_rest_is_gone(store: Store) -> None:
    for n in range(60):  # checkpoints are made each 50 versions
        store.put("s", {0: [n]})
    store.time += 1
    moment, then = store.time, store.rows("s")
    seen = store.ledger.sequence_at(moment)
    late(store)
    compact(store.ledger, store.warehouse, "s", store.now)
    store.put("s", {1: [7]})
    given, rows = give_up(store.ledger, store.time - moment, store.time)
    assert given.seq == seen
    assert rows > 60
    done = clean_up(store.ledger, store.warehouse, "s", store.now)
    assert done.files >= 59
    assert done.logs >= 50
    at = store.ledger.versions_at(store.ledger.sequence_at(moment))["s"]
    assert store.rows("s", at.version) == then
    with store.ledger.database.reading() as r:
        assert oldest(r, "s") == at
        assert promised(r) == given
        assert r.on.execute(select(func.count()).select_from(version)).scalar() == 3
        # Those of now, what part 1 held before, and the first of part 0: it says when the part came to exist.
        assert r.on.execute(select(func.count()).select_from(revision)).scalar() == 12 + 1 + 1
    # Everything on disk is needed by some promised version, and nothing that is needed is missing.
    needed = set()
    for v in range(at.version or 0, storage.open_at(store.path("s")).version + 1):
        needed |= {f.path for f in storage.open_at(store.path("s"), v).files}
    assert store.on_disk("s") == needed
    store.put("s", {2: [8]})
    assert (2, 8) in store.rows("s")
    assert clean_up(store.ledger, store.warehouse, "s", store.now).files == 0


def test_files_of_a_step_that_is_going_on_are_not_touched(store: Store) -> None:
    handle = storage.open_at(store.path("s"))
    folder = Path(storage.begin(handle, "going-on"))
    folder.mkdir()
    (folder / "rows.parquet").write_bytes(b"half")
    late(store)
    give_up(store.ledger, 3600, store.time)
    clean_up(store.ledger, store.warehouse, "s", store.now)
    assert (folder / "rows.parquet").exists()


def test_old_generations_go(store: Store) -> None:
    from partwise.ledger.write.lease_holding import holding

    store.put("v", {p: [p] for p in range(3)})
    old = store.path("v")
    with holding(store.ledger, store.warehouse, "v", store.now) as held:
        store.ledger.rebuild(held, store.time)
    store.put("v", {p: [p] for p in range(3)})
    assert store.path("v") != old
    clean_up(store.ledger, store.warehouse, "v", store.now)
    assert Path(old).exists()
    late(store)
    give_up(store.ledger, 3600, store.time)
    assert clean_up(store.ledger, store.warehouse, "v", store.now).generations == 1
    assert not Path(old).exists()
    assert store.rows("v") == [(p, p) for p in range(3)]
