"""Commits: what they publish, what they refuse, and how often they can be told the same."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from partwise import storage
from partwise.parts import Parts
from partwise.storage import schema as schemas
from tests.storage.tables import ARROW, SCHEMA, rows, stage

BEFORE = [(1, "a", 1.0), (2, "a", 2.0)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A table in version 1 with two parts in two files."""
    path = str(tmp_path / "warehouse" / "measurements")
    handle = storage.create(path, SCHEMA)
    assert storage.commit(handle, stage(handle, "first", BEFORE[:1], BEFORE[1:]), (), {"step": "first"}) == 1
    return path


def log_of(path: str, version: int) -> list[dict]:
    text = (Path(path) / "_delta_log" / f"{version:020d}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_a_new_table_can_be_read_by_every_delta_reader(path: str) -> None:
    protocol = storage.open_at(path).table.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
    assert storage.open_at(path).table.metadata().partition_columns == []
    assert storage.open_at(path, 0).files == ()
    assert storage.open_at(path).columns == ("part", "part_timestamp", "src", "loss")


def test_creating_a_table_again_changes_nothing(path: str) -> None:
    again = storage.create(path, schemas.of({"other": "string"}))
    assert again.version == 1
    assert again.columns == ("part", "part_timestamp", "src", "loss")


def test_statistics_come_from_the_footers(path: str) -> None:
    handle = storage.open_at(path)
    assert sorted((f.rows, f.lo, f.hi) for f in handle.files) == [(1, 1, 1), (1, 2, 2)]
    statistics = [json.loads(a["add"]["stats"]) for a in log_of(path, 1) if "add" in a]
    assert statistics[0] == {
        "numRecords": 1,
        "minValues": {"part": 1, "part_timestamp": "1970-01-01T00:01:00.000Z"},
        "maxValues": {"part": 1, "part_timestamp": "1970-01-01T00:01:00.000Z"},
        "nullCount": {"part": 0, "part_timestamp": 0},
    }


def test_a_part_is_replaced_in_one_commit_with_its_entry(path: str) -> None:
    handle = storage.open_at(path)
    change = storage.rewrite(handle, Parts.single(2))
    assert change.mixed == ()
    entry = {"step": "second", "parts": {"2": "1:ab"}}
    assert storage.commit(handle, stage(handle, "second", [(2, "b", 9.0)]), change.removed, entry) == 2
    assert rows(path) == [(1, "a", 1.0), (2, "b", 9.0)]
    assert rows(path, 1) == BEFORE
    assert storage.entries(path, 1) == [(2, entry, True)]


def test_an_empty_result_removes_the_part_and_adds_nothing(path: str) -> None:
    handle = storage.open_at(path)
    staged = stage(handle, "second", [])  # Spark writes one file without rows
    assert len(staged) == 1
    storage.commit(handle, staged, handle.files_of(Parts.single(2)), {})
    assert rows(path) == BEFORE[:1]
    assert len(storage.open_at(path).files) == 1


def test_a_file_that_holds_other_parts_names_what_must_survive(path: str) -> None:
    handle = storage.open_at(path)
    compacted = stage(handle, "compact", [*BEFORE, (5, "a", 5.0)])
    storage.commit(handle, compacted, handle.files, {})
    handle = storage.open_at(path)
    change = storage.rewrite(handle, Parts.single(2))
    assert change.removed == change.mixed == handle.files
    assert change.surviving == Parts.of((1, 1), (3, 5))
    whole = storage.rewrite(handle, Parts.of((0, 7)))
    assert (whole.removed, whole.mixed, whole.surviving) == (handle.files, (), Parts())
    assert storage.rewrite(handle, Parts.single(6)).removed == ()


def test_a_stale_handle_is_refused(path: str) -> None:
    stale = storage.open_at(path)
    storage.barrier(storage.open_at(path), {"kind": "barrier"})
    with pytest.raises(storage.Conflict):
        storage.commit(stale, stage(stale, "late", [(3, "c", 3.0)]), (), {})
    assert rows(path) == BEFORE


def test_a_stale_handle_is_refused_behind_a_cleaned_log(path: str) -> None:
    stale = storage.open_at(path)
    for _ in range(3):
        storage.barrier(storage.open_at(path), {})
    storage.checkpoint(path)
    for version in range(4):
        (Path(path) / "_delta_log" / f"{version:020d}.json").unlink()
    with pytest.raises(storage.Conflict):
        storage.commit(stale, stage(stale, "late", [(3, "c", 3.0)]), (), {})
    assert rows(path) == BEFORE


def test_only_the_log_decides_a_race_that_the_check_did_not_see(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check before a commit is a courtesy; the version's file is what counts."""
    slow = storage.open_at(path)
    staged = stage(slow, "slow", [(3, "c", 3.0)])
    monkeypatch.setattr("partwise.storage.log.exists_after", lambda *_: False)
    storage.barrier(storage.open_at(path), {"kind": "quick"})
    with pytest.raises(storage.Conflict, match="by another process"):
        storage.commit(slow, staged, (), {})
    assert [logged.entry for logged in storage.entries(path, 1)] == [{"kind": "quick"}]


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda file: file.unlink(), "is missing"),
        (lambda file: file.write_bytes(file.read_bytes()[:-20]), "bytes, expected"),
        (lambda file: file.write_bytes(b"x" * file.stat().st_size), "not a readable Parquet file"),
        (lambda file: file.write_bytes(file.read_bytes()[:-8] + b"\0" * 8), "not a readable Parquet file"),
    ],
)
def test_a_damaged_staged_file_is_refused_before_the_commit(path: str, damage, message: str) -> None:
    handle = storage.open_at(path)
    staged = stage(handle, "hurt", [(3, "c", 3.0)], [(4, "c", 4.0)])
    damage(Path(path) / staged[1].path)
    with pytest.raises(storage.CommitRefused, match=message):
        storage.commit(handle, staged, (), {})
    assert storage.entries(path, 1) == []
    assert rows(path) == BEFORE


def test_rows_without_a_part_are_refused(path: str) -> None:
    handle = storage.open_at(path)
    folder = Path(storage.begin(handle, "null"))
    folder.mkdir()
    table = pa.table([[1, None], [0, 0], ["a", "b"], [1.0, 2.0]], schema=ARROW)
    pa.parquet.write_table(table, folder / "x.parquet")
    with pytest.raises(storage.CommitRefused, match="rows without 'part'"):
        storage.commit(handle, storage.staged(path, "null"), (), {})


def test_other_columns_are_refused(path: str) -> None:
    handle = storage.open_at(path)
    renamed = ARROW.set(3, ARROW.field(3).with_name("lost"))
    with pytest.raises(storage.CommitRefused, match="loss, lost"):
        storage.commit(handle, stage(handle, "other", [(3, "c", 3.0)], arrow=renamed), (), {})


def test_only_live_files_can_be_removed_and_none_added_twice(path: str) -> None:
    handle = storage.open_at(path)
    with pytest.raises(storage.CommitRefused, match="no file of version 1"):
        storage.commit(handle, (), (storage.File("s-first/none.parquet", 10),), {})
    with pytest.raises(storage.CommitRefused, match="already"):
        storage.commit(handle, handle.files, (), {})


def test_another_schema_arrives_together_with_its_content(path: str) -> None:
    handle = storage.open_at(path)
    renamed = ARROW.set(3, ARROW.field(3).with_name("lost"))
    staged = stage(handle, "rebuild", [(2, "n", 7.0)], arrow=renamed)
    wanted = schemas.of({"src": "string", "lost": "double"})
    assert storage.replace(handle, wanted, staged, {"step": "rebuild"}) == 2
    new, old = storage.open_at(path), storage.open_at(path, 1)
    assert new.table.to_pyarrow_table().column("lost").to_pylist() == [7.0]
    assert new.schema == wanted
    assert (rows(path, 1), old.schema) == (BEFORE, SCHEMA)
    assert [kind for action in log_of(path, 2) for kind in action].count("metaData") == 1
    assert storage.entries(path, 1) == [(2, {"step": "rebuild"}, True)]
    with pytest.raises(storage.Conflict):
        storage.replace(handle, wanted, staged, {})


def test_compaction_is_no_change_of_data(path: str) -> None:
    handle = storage.open_at(path)
    storage.commit(handle, stage(handle, "compact", BEFORE), handle.files, {"kind": "compact"}, data_change=False)
    assert storage.entries(path, 1) == [(2, {"kind": "compact"}, False)]
    assert rows(path) == BEFORE


def test_a_lost_answer_is_not_a_lost_race(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object store may time out although the commit went through."""
    handle = storage.open_at(path)
    staged = stage(handle, "slow", [(3, "c", 3.0)])
    real = handle.table.create_write_transaction

    def answer_lost(*args: object, **options: object) -> None:
        real(*args, **options)
        raise OSError("timeout")

    monkeypatch.setattr(handle.table, "create_write_transaction", answer_lost)
    assert storage.commit(handle, staged, (), {}) == 2
    assert rows(path) == [*BEFORE, (3, "c", 3.0)]


def test_no_table_no_version(path: str, tmp_path: Path) -> None:
    with pytest.raises(storage.NoTable, match="no Delta table"):
        storage.open_at(str(tmp_path / "nothing"))
    with pytest.raises(storage.NoTable, match="in version 9"):
        storage.open_at(path, 9)
    assert not storage.exists(str(tmp_path / "nothing"))
    assert storage.exists(path)


def test_entries_never_skip_a_version(path: str) -> None:
    for number in range(2, 6):
        storage.barrier(storage.open_at(path), {"n": number})
    storage.checkpoint(path)
    storage.barrier(storage.open_at(path), {"n": 6})
    for version in range(4):
        (Path(path) / "_delta_log" / f"{version:020d}.json").unlink()
    assert storage.entries(path, 6) == []
    assert storage.entries(path, 4) == [(5, {"n": 5}, False), (6, {"n": 6}, False)]
    # Cleaned away: nothing is known of these, so they count as changes.
    assert storage.entries(path, 1)[:2] == [(2, None, True), (3, None, True)]
    assert [logged.version for logged in storage.entries(path, -1)] == list(range(7))


def test_commits_of_others_have_no_entry(path: str) -> None:
    storage.open_at(path).table.delete("part = 1")
    storage.open_at(path).table.optimize.compact()
    found = storage.entries(path, 1)
    assert found[0] == (2, None, True)
    assert all(not logged.data_change for logged in found[1:])


def test_checkpoints_are_made_now_and_then(path: str) -> None:
    for _ in range(storage.open_at(path).version, 51):
        storage.barrier(storage.open_at(path), {})
    assert [f.name for f in (Path(path) / "_delta_log").glob("*.checkpoint.parquet")] == [
        f"{50:020d}.checkpoint.parquet"
    ]
    assert rows(path) == BEFORE
    assert rows(path, 1) == BEFORE
