"""Retention: what `keep` and accepted lateness ask for, and what becomes of parts that go."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import insert, select

from partwise import storage
from partwise.compile.load import load
from partwise.ledger.catalog import settled
from partwise.ledger.read.history import history
from partwise.ledger.read.reports import tables
from partwise.ledger.read.snapshot import as_defined
from partwise.ledger.records.files import Delivery, TakenFile, files_of, take_in
from partwise.ledger.schema import checked, decision, failure, open_part
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Parts, Reference
from partwise.storage.paths import versions_path
from partwise.tables import Graph, Input, Table
from partwise.upkeep.retain import forget_files, retain
from partwise.upkeep.retention import RetentionFacts, Wanted, wanted_floors
from partwise.upkeep.versions import forget_versions
from tests.upkeep.store import SCHEMA, Store, view

SOURCE = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, g: string, x: double}
files: landing/*.csv
"""
WINDOW = """
view: worst
share: false
part: 1 minute
strategy: merge
query: SELECT g, MAX(x) AS x FROM m [WINDOW 10 minutes] GROUP BY g
"""
PATTERN = """
view: runs
share: false
part: 1 minute
query: |
  SELECT g, COUNT(*) AS n FROM m PATTERN [a, b+] WHERE a.x > 1 AND b.x > 1 GROUP BY g
"""
DAY = 1440


def wanted(
    at: Path, text: str, newest: int = 10_000, start: int = 0, floors: Mapping[str, int] | None = None
) -> dict[str, int]:
    at.mkdir(exist_ok=True)
    (at / "all.yaml").write_text(text)
    found = load(str(at))
    assert found.ok, found.problems
    graph = found.graph()
    floor = (floors or {}).get
    known = RetentionFacts(lambda _: newest, lambda _: start, floor, lambda _: (newest + 1) * 60_000_000)
    return {name: want.floor for name, want in wanted_floors(graph, found.usable, known).items()}


class TestHowLong:
    def test_keep_counts_from_the_end_of_the_newest_part(self, tmp_path: Path) -> None:
        text = SOURCE + "---\nview: v\npart: 1 minute\nkeep: {}\nupdate: SELECT g FROM m[j]\n"
        assert wanted(tmp_path, text.replace("{}", "1 hour")) == {"v": 10_001 - 60}
        assert wanted(tmp_path, text.replace("{}", "90 seconds")) == {"v": 10_000}  # part 9,999 is older by half
        assert wanted(tmp_path, text.replace("{}", "1 second")) == {"v": 10_000}  # never the newest itself

    def test_sources_keep_everything_unless_they_say_otherwise(self, tmp_path: Path) -> None:
        assert wanted(tmp_path, SOURCE) == {}
        assert wanted(tmp_path, SOURCE + "keep: 1 day\n") == {"m": 10_001 - DAY}

    def test_any_lateness_keeps_helpers_for_ever(self, tmp_path: Path) -> None:
        assert wanted(tmp_path, SOURCE + "---" + WINDOW) == {}

    def test_accepted_lateness_and_the_window_keep_helpers_and_no_longer(self, tmp_path: Path) -> None:
        late = SOURCE + "late: {accept: 1 day}\n"
        # The oldest row that is still accepted is of 10,001 - 1,440; the window before it has nine parts more.
        assert wanted(tmp_path, late + "---" + WINDOW) == {"worst__panes": 10_001 - DAY - 9}
        # A pattern's helper reads its own previous part.
        assert wanted(tmp_path, late + "---" + PATTERN) == {"runs__helper": 10_001 - DAY - 1}
        # A view that keeps less needs less.
        short = WINDOW + "keep: 1 hour\n"
        assert wanted(tmp_path, late + "---" + short) == {"worst": 10_001 - 60, "worst__panes": 10_001 - 60 - 9}
        assert wanted(tmp_path, late + "---" + WINDOW, start=9_000) == {}  # late rows still reach its first part

    def test_below_the_floor_of_a_source_nothing_changes(self, tmp_path: Path) -> None:
        """Rows for expired parts of a source are quarantined, however late it accepts them."""
        kept, floors = SOURCE + "keep: 1 day\n", {"m": 8_000}
        expected = {"m": 10_001 - DAY, "worst__panes": 8_000 - 9}
        assert wanted(tmp_path, kept + "---" + WINDOW, floors=floors) == expected
        assert wanted(tmp_path, kept + "---" + PATTERN, floors=floors)["runs__helper"] == 8_000 - 1
        # What is nearer counts: lateness or the floor.
        late = kept + "late: {accept: 2 days}\n---" + WINDOW
        assert wanted(tmp_path, late, floors=floors)["worst__panes"] == 8_000 - 9
        assert wanted(tmp_path, late, floors={"m": 1_000})["worst__panes"] == 10_001 - 2 * DAY - 9

    def test_a_dimension_may_change_at_any_time(self, tmp_path: Path) -> None:
        (tmp_path / "m.yaml").write_text(SOURCE + "late: {accept: 1 day}\n")
        source, helper = Table("m", "source", 60, "m"), view("h", ("m", Reference.same()), helper_of="v")
        known = RetentionFacts(lambda _: 10_000, lambda _: 0, lambda _: None, lambda _: 10_001 * 60_000_000)
        read = Input("h", Reference.same())
        for inputs, expected in [((read,), {"h"}), ((read, Input("d", None)), set())]:
            final = replace(view("v"), inputs=inputs, initial=inputs)
            graph = Graph.of([source, Table("d", "dimension", 1, "d"), helper, final])
            assert wanted_floors(graph, load(str(tmp_path)).usable, known).keys() == expected


SAME = Reference.same()


def test_nothing_of_expired_parts_stays_in_the_ledger(store: Store) -> None:
    common = {"table": "v", "at": 0.0}
    result = {"seq": 1, "outcome": "warned", "rows": 1, "digest": "x", "mark": "", "results": "[]"}
    problem = {"kind": "query", "pin": 1, "attempts": 1, "retry_at": None, "message": ""}
    with store.ledger.database.writing(store.time) as w:
        for p in (2, 8):
            w.on.execute(insert(checked), common | result | {"part": p})
            w.on.execute(insert(decision), common | {"part": p, "kind": "accept", "digest": "x", "who": "me"})
            w.on.execute(insert(failure), common | problem | {"part": p})
            w.on.execute(insert(failure), common | problem | {"part": p, "table": "w"})
    assert retain(store.ledger, store.warehouse, "v", Wanted(6, "keep"), store.now) is not None
    with store.ledger.database.reading() as r:
        for rows in (checked, decision, failure):
            assert set(r.on.execute(select(rows.c.part)).scalars()) == {8}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Source, a view, a reader of the view; parts 0 to 9."""
    source = Table("s", "source", 60, "s-1")
    found = Store(tmp_path, source, view("v", ("s", SAME)), view("w", ("v", Reference.window(-1, 0))))
    for p in range(10):
        found.put("s", {p: [p]})
    found.put("v", {p: [p, p] for p in range(10)})
    found.put("w", {p: [p] for p in range(1, 10)})
    assert not found.ledger.plan(found.time).steps
    return found


def state(store: Store, name: str, p: int) -> str:
    with as_defined(store.ledger, store.ledger.graph(), store.time) as snapshot:
        return history(snapshot, name, p).state


class TestWhatGoes:
    def test_a_source_keeps_what_is_still_needed_and_what_is_not_closed(self, store: Store) -> None:
        def kept(floor: int) -> int | None:
            done = retain(store.ledger, store.warehouse, "s", Wanted(floor, "keep"), store.now)
            return None if done is None else done.floor

        with store.ledger.database.writing(store.time) as w:
            w.on.execute(open_part.insert(), {"table": "s", "part": 3, "rows": 1, "digest": "1:1"})
        assert kept(5) == 3
        with store.ledger.database.writing(store.time) as w:
            w.on.execute(open_part.delete())
        store.put("s", {7: [70]})  # late: v[7] is due, and needs its input
        assert kept(9) == 7
        assert [state(store, "s", p) for p in (6, 7)] == ["expired", "fresh"]
        assert [state(store, "v", p) for p in (6, 7)] == ["fresh", "stale"]  # what was computed from them stays
        assert store.ledger.audit() == {}

    def test_files_are_forgotten_when_they_are_gone_and_so_are_their_rows(self, store: Store) -> None:
        files = [("old", 1, 2), ("old but there", 1, 2), ("of both", 2, 6), ("retracted", None, None)]
        taken = tuple(TakenFile(n, name, 1, 1, "", "loaded", lo, hi) for n, (name, lo, hi) in enumerate(files))
        with store.ledger.database.writing(store.time) as w:
            take_in(w, "s", Delivery(files=taken), swept=False)

        def forgotten() -> int:
            return forget_files(store.ledger, store.warehouse, "s", lambda name: "there" not in name, store.now)

        assert forgotten() == 0
        retain(store.ledger, store.warehouse, "s", Wanted(5, "keep"), store.now)
        assert (forgotten(), forgotten()) == (1, 0)
        with store.ledger.database.reading() as r:
            assert set(files_of(r, "s")) == {"old but there", "of both", "retracted"}

    def test_parts_are_expired_not_missing_and_no_one_sees_their_rows(self, store: Store) -> None:
        done = retain(store.ledger, store.warehouse, "v", Wanted(6, "keep"), store.now)
        assert done is not None
        assert (done.first, done.floor) == (0, 6)
        assert store.rows("v") == sorted((p, p) for p in range(6, 10) for _ in range(2))  # one file held them all
        assert [state(store, "v", p) for p in (0, 5, 6)] == ["expired", "expired", "fresh"]
        with as_defined(store.ledger, store.ledger.graph(), store.time) as snapshot:
            status = next(row for row in tables(snapshot) if row.table.name == "v")
        assert (status.parts, status.first, status.missing, status.expired) == (4, 6, 0, 6)
        assert not store.ledger.plan(store.time).steps
        assert store.ledger.audit() == {}
        assert store.rows("w") == [(p, p) for p in range(1, 10)]  # what was computed from them stays
        assert retain(store.ledger, store.warehouse, "v", Wanted(6, "keep"), store.now) is None

    def test_what_something_pending_needs_stays(self, store: Store) -> None:
        store.put("s", {4: [44]})
        store.put("v", {4: [44]})  # w[4] and w[5] are due now, and read v[3]
        done = retain(store.ledger, store.warehouse, "v", Wanted(8, "keep"), store.now)
        assert done is not None
        assert done.floor == 3

    def test_late_rows_for_expired_parts_are_counted_and_stored(self, store: Store) -> None:
        retain(store.ledger, store.warehouse, "v", Wanted(6, "keep"), store.now)
        store.put("s", {2: [2, 22]})
        assert (2, 22) in store.rows("s")
        assert not store.ledger.plan(store.time).steps
        with as_defined(store.ledger, store.ledger.graph(), store.time) as snapshot:
            hits = {row.table.name: row.frozen_hits for row in tables(snapshot)}
        assert hits == {"s": 0, "v": 1, "w": 0}
        store.put("s", {7: [7, 77]})  # a part that is kept goes its way
        assert [(s.table, s.parts) for s in store.ledger.plan(store.time).steps] == [("v", (7, 7))]

    @pytest.mark.parametrize("point", ["staged", "committed"])
    def test_a_retention_that_dies_is_completed_or_never_was(self, store: Store, point: str) -> None:
        class Crash(Exception):
            pass

        def passed(here: str) -> None:
            if here == point:
                raise Crash

        with pytest.raises(Crash):
            retain(store.ledger, store.warehouse, "v", Wanted(6, "keep"), store.now, passed)
        store.put("v", {10: [1]}) if point == "committed" else None
        again = retain(store.ledger, store.warehouse, "v", Wanted(6, "keep"), store.now)
        assert (again is None) == (point == "committed")
        with store.ledger.database.reading() as r:
            assert settled(r, "v").floor == 6
        assert {p for p, _ in store.rows("v")} >= {6, 7, 8, 9}
        assert min(p for p, _ in store.rows("v")) == 6
        assert store.ledger.current("v").version == storage.open_at(store.path("v")).version

    def test_empty_parts_expire_without_a_commit(self, tmp_path: Path) -> None:
        found = Store(tmp_path, Table("s", "source", 60, "s-1"), view("v", ("s", SAME)))
        for p in range(4):
            found.put("s", {p: [p]})
        found.put("v", {0: [], 1: [], 2: [2], 3: [3]})
        before = found.ledger.current("v").version
        assert retain(found.ledger, found.warehouse, "v", Wanted(2, "keep"), found.now) is not None
        assert found.ledger.current("v").version == before
        assert state(found, "v", 1) == "expired"


def test_a_helper_that_is_computed_in_another_way_comes_back_whole(tmp_path: Path) -> None:
    """Else the old parts of its view would keep the content of the old definition."""
    source, helper = Table("s", "source", 60, "s-1"), view("h", ("s", SAME), helper_of="v")
    final = view("v", ("h", Reference.window(-1, 0)))
    store = Store(tmp_path, source, helper, final)
    for p in range(6):
        store.put("s", {p: [p]})
    store.put("h", {p: [p] for p in range(6)})
    store.put("v", {p: [p] for p in range(1, 6)})
    retain(store.ledger, store.warehouse, "h", Wanted(4, "not read"), store.now)
    store.put("s", {0: [9]})
    assert not store.ledger.plan(store.time).steps
    changed = Graph.of([source, replace(helper, fingerprint="h-2"), replace(final, fingerprint="v-2")])
    store.ledger.define(changed, store.time)
    assert _all(store, "h") == Parts.of((0, 5))
    assert _all(store, "v") == Parts.of((1, 5))


def _all(store: Store, name: str) -> Parts:
    from partwise.ledger.records.backfills import due_parts

    with store.ledger.database.reading() as r:
        return due_parts(r, name)


def test_versions_of_a_forward_dimension_go_when_no_part_reads_them(tmp_path: Path) -> None:
    """First from the ledger; their files at the next time, since somebody may be reading them."""
    rates = Table("rates", "dimension", 1, "r1", forward=True)
    both = (Input("s", Reference.same()), Input("rates", None))
    store = Store(tmp_path, Table("s", "source", 60, "s-1"), rates, Table("priced", "view", 60, "p1", both, both))

    def recorded(name: str, entry: Entry) -> None:
        store.ledger.commit(store.ledger.take(name, "test", 60, store.time), entry, None, store.time)

    seqs = []
    for n in range(3):
        recorded("rates", Entry("rates", 0, "r1", None, parts={0: Content(1, f"{n}")}))
        with store.ledger.database.reading() as r:
            seqs.append(r.seq)
        recorded("s", Entry("s", 0, "s-1", None, parts={n: Content(1, "x")}))
    path = versions_path(store.warehouse, "rates")
    storage.create(path, SCHEMA)
    for seq in seqs[:2]:
        handle = storage.open_at(path)
        step = f"{seq:012d}"
        folder = Path(storage.begin(handle, step))
        folder.mkdir()
        row = {"part": [seq], "part_timestamp": pa.array([0], pa.timestamp("us", "UTC")), "x": [1], "s": ["row 1"]}
        pq.write_table(pa.table(row), folder / "rows.parquet")
        storage.commit(handle, storage.staged(path, step), (), {"kind": "version"})
        storage.finish(path, step)

    def kept() -> list[int]:
        return storage.open_at(path).table.to_pyarrow_table(columns=["part"])["part"].to_pylist()

    def files() -> int:
        return len(list(Path(path).glob("s-*/*.parquet")))

    later = lambda: time.time() + 3600  # noqa: E731
    assert forget_versions(store.ledger, store.warehouse, "rates", later) == 0
    assert (sorted(kept()), files()) == (seqs[:2], 2)
    recorded("s", Entry("s", 0, "", None, floor=1))
    assert forget_versions(store.ledger, store.warehouse, "rates", later) == 1
    assert (kept(), files()) == (seqs[1:2], 2)
    assert forget_versions(store.ledger, store.warehouse, "rates", later) == 0
    assert (kept(), files()) == (seqs[1:2], 1)
