"""Tables whose rows are sorted by keys: what the log says of them, and that compaction keeps them cut."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partwise import storage
from partwise.storage import schema as schemas
from partwise.storage.handle import is_cut
from partwise.upkeep import rewriting
from partwise.upkeep.groups import groups
from partwise.upkeep.rewriting import rewrite_rows

SCHEMA = schemas.of({"k": "string", "g": "int", "day": "date", "x": "double"})
DAY = date(2020, 1, 2)


def publish(
    path: str, step: str, *files: list[tuple[int, Any, Any]], keys: tuple[str, ...] = ("k", "g", "day")
) -> None:
    handle = storage.create(path, SCHEMA, keys=keys)
    handle = storage.open_at(path)
    arrow = handle.table.to_pyarrow_table().schema
    folder = Path(storage.begin(handle, step))
    folder.mkdir()
    for number, rows in enumerate(files):
        found = [
            {"part": p, "part_timestamp": datetime.fromtimestamp(60 * p, UTC), "k": k, "g": g, "day": DAY, "x": 1.0}
            for p, k, g in rows
        ]
        pq.write_table(pa.Table.from_pylist(found, schema=arrow), folder / f"{number}.parquet")
    storage.commit(handle, storage.staged(path, step), (), {"step": step})


def test_the_log_says_which_keys_are_in_which_file(tmp_path: Path) -> None:
    path, long = str(tmp_path / "t"), "x" * 40
    publish(path, "one", [(1, "a", 1), (1, "b", None)], [(1, None, 5), (1, None, 7)], [(1, long, 3)])
    storage.checkpoint(path)
    first, second, third = sorted(storage.open_at(path).files, key=lambda file: file.path)
    assert storage.open_at(path).keys == ("k", "g", "day")
    assert first.keys == (("k", "a", "b", 0), ("g", 1, 1, 1), ("day", DAY, DAY, 0))
    assert [first.may_have("k", {value}) for value in ("a", "aa", "c", None)] == [True, True, False, False]
    assert [first.may_have("g", {value}) for value in (1, 2, None)] == [True, False, True]
    assert [second.may_have("k", {value}) for value in ("a", None)] == [False, True]
    assert first.may_have("k", {"c", "a"})
    assert not first.may_have("day", {date(2021, 1, 1)})
    assert first.may_have("x", {2.0}), "nothing is known of other columns"
    assert third.may_have("k", {"a"}), "long texts are not kept in the log"


def test_tables_without_keys_are_as_before(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    publish(path, "one", [(1, "a", 1)], keys=())
    (file,) = storage.open_at(path).files
    assert (storage.open_at(path).keys, file.keys) == ((), ())
    assert not is_cut([file, file])


def test_compaction_sorts_and_cuts_by_keys_and_leaves_what_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    for module in (rewriting, storage.handle):
        monkeypatch.setattr(module, "ROWS_PER_CUT", 10)
    publish(path, "one", *([(1, f"{n * 7 % 40:02d}", n) for n in range(start, start + 4)] for start in range(0, 40, 4)))
    handle = storage.open_at(path)
    (group,) = groups(handle.files, lambda file: True)
    assert rewrite_rows(handle, group, "two", 1 << 20, None) == 40
    storage.commit(handle, storage.staged(path, "two"), group, {"step": "two"}, data_change=False)
    handle = storage.open_at(path)
    spans = sorted({name: (low, high) for name, low, high, _ in file.keys}["k"] for file in handle.files)
    assert spans == [("00", "09"), ("10", "19"), ("20", "29"), ("30", "39")]
    assert groups(handle.files, lambda file: True) == []
    assert sum(file.may_have("k", {"17"}) for file in handle.files) == 1


def test_old_parts_are_clustered_by_key_across_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is in every part is in one file afterwards, by the log."""
    for module in (rewriting, storage.handle):
        monkeypatch.setattr(module, "ROWS_PER_CUT", 50)
    path = str(tmp_path / "t")
    publish(path, "one", *([(part, f"{n:02d}", n) for n in range(10)] for part in range(20)), keys=("k",))
    handle = storage.open_at(path)
    before = handle.table.to_pyarrow_table().sort_by([("part", "ascending"), ("k", "ascending")])
    assert sum(file.may_have("k", {"06"}) for file in handle.files) == 20
    (group,) = groups(handle.files, lambda file: True)
    assert rewrite_rows(handle, group, "two", 1 << 20, None, ("k",)) == 200
    storage.commit(handle, storage.staged(path, "two"), group, {"step": "two"}, data_change=False)
    handle = storage.open_at(path)
    assert [file.rows for file in handle.files] == [50, 50, 50, 50]
    assert sum(file.may_have("k", {"06"}) for file in handle.files) == 1
    assert handle.table.to_pyarrow_table().sort_by([("part", "ascending"), ("k", "ascending")]).equals(before)
    assert groups(handle.files, lambda file: True) == [], "what is clustered stays as it is"
