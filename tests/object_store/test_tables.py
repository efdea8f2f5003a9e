"""Tables in an object store behave as those in a folder do."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from partwise import storage
from partwise.parts import Parts
from partwise.storage import table
from partwise.storage.damage import damage
from partwise.storage.query import BadQuery, PinnedTable, query
from partwise.storage.unique import unique
from tests.object_store.store import Lake
from tests.object_store.tables import SCHEMA, rows, stage, write


@pytest.fixture
def path(lake: Lake) -> str:
    return storage.create(f"{lake.url}/warehouse/t", SCHEMA).path


def test_a_table_is_made_once_and_read_back(lake: Lake, path: str) -> None:
    assert storage.exists(path)
    assert not storage.exists(f"{lake.url}/warehouse/other")
    assert storage.create(path, SCHEMA).version == 0
    assert write(path, "a", (1, "a", 1.0), (2, "b", 2.0)) == 1
    assert rows(path) == [(1, "a", 1.0), (2, "b", 2.0)]
    assert rows(path, 0) == []
    with pytest.raises(storage.NoTable, match="there is no Delta table"):
        storage.open_at(f"{lake.url}/warehouse/other")


@pytest.mark.parametrize("name", ["my tables", "ü+&x", "a=1"])
def test_folders_may_have_any_name(lake: Lake, name: str) -> None:
    path = storage.create(f"{lake.url}/{name}/t", SCHEMA).path
    write(path, "a", (1, "a", 1.0))
    write(path, "b", (2, "b", 1.0))
    storage.checkpoint(path)
    assert rows(path) == [(1, "a", 1.0), (2, "b", 1.0)]
    assert lake.names() == lake.names(name)


def test_the_second_of_two_writers_is_told(path: str) -> None:
    first, second = storage.open_at(path), storage.open_at(path)
    storage.commit(first, stage(first, "a", [(1, "a", 1.0)]), (), {})
    late = stage(second, "b", [(1, "b", 2.0)])
    with pytest.raises(storage.Conflict):
        storage.commit(second, late, (), {})
    assert rows(path) == [(1, "a", 1.0)]


def test_a_step_whose_next_log_file_is_cleaned_away_cannot_commit(lake: Lake, path: str) -> None:
    zombie = storage.open_at(path)
    staged = stage(zombie, "z", [(1, "z", 0.0)])
    write(path, "a", (1, "a", 1.0))
    storage.checkpoint(path)
    lake.bucket("warehouse/t").remove(f"_delta_log/{1:020d}.json")
    with pytest.raises(storage.Conflict):
        storage.commit(zombie, staged, (), {})


def test_what_is_not_whole_is_refused(lake: Lake, path: str) -> None:
    handle = storage.open_at(path)
    [file] = stage(handle, "a", [(1, "a", 1.0)])
    table = lake.bucket("warehouse/t")
    whole = table.get(file.path)
    assert whole is not None
    table.put(file.path, whole[:-20])
    with pytest.raises(storage.CommitRefused, match=f"has {len(whole) - 20} bytes, expected {len(whole)}"):
        storage.commit(handle, [file], (), {})
    table.put(file.path, b"x" * len(whole))
    with pytest.raises(storage.CommitRefused, match="not a readable Parquet file"):
        storage.commit(handle, [file], (), {})
    table.remove(file.path)
    with pytest.raises(storage.CommitRefused, match="is missing"):
        storage.commit(handle, [file], (), {})


def test_a_footer_longer_than_what_is_read_first_is_read_whole(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from partwise.storage import remote

    handle = storage.open_at(path)
    files = stage(handle, "a", [(1, "a", 1.0)])
    monkeypatch.setattr(remote.Bucket.tail, "__defaults__", (64,))
    assert storage.commit(handle, files, (), {}) == 1


def test_each_try_needs_a_name_of_its_own(path: str) -> None:
    handle = storage.open_at(path)
    stage(handle, "a", [(1, "a", 1.0)])
    with pytest.raises(storage.CommitRefused, match="needs a name of its own"):
        storage.begin(handle, "a")


def test_leftovers_go_and_what_a_version_names_stays(lake: Lake, path: str) -> None:
    handle = storage.open_at(path)
    storage.commit(handle, stage(handle, "done", [(1, "a", 1.0)]), (), {})  # the process died before `finish`
    stage(storage.open_at(path), "crashed", [(3, "x", 0.0)])
    stage(storage.open_at(path), "running", [(4, "y", 0.0)])
    now = datetime.now(UTC) + timedelta(seconds=2)
    found = storage.sweep(path, {"running"}, older_than=timedelta(0), now=now)
    assert found == storage.Swept(("crashed",), 2)
    assert rows(path) == [(1, "a", 1.0)]
    folders = {name.split("/")[2] for name in lake.names("warehouse/t") if "/s-" in name}
    assert folders == {"s-done", "s-running"}
    assert [name for name in lake.names("warehouse/t") if "_staged" in name] == ["warehouse/t/_staged/running"]
    with pytest.raises(storage.Conflict):  # the barrier: nobody with an older handle commits any more
        storage.commit(handle, stage(handle, "late", [(1, "a", 2.0)]), (), {})


def test_staged_files_are_thrown_away_without_a_trace(lake: Lake, path: str) -> None:
    before = lake.names()
    stage(storage.open_at(path), "a", [(1, "a", 1.0)], [(2, "b", 1.0)])
    storage.discard(path, "a")
    assert lake.names() == before


def test_queries_see_pinned_versions_and_only_parts_that_exist(path: str) -> None:
    write(path, "a", (1, "a", 1.0), (2, "b", 2.0))
    write(path, "b", (3, "c", 3.0))
    pins = {
        "t": PinnedTable(path, 2, parts=Parts.of((2, 3))),
        "before": PinnedTable(path, 1),
        "none": PinnedTable(path, None, SCHEMA),
    }
    text = "SELECT (SELECT sum(loss) FROM t), (SELECT count(*) FROM before), (SELECT count(*) FROM none)"
    assert query(text, pins).rows == [(5.0, 2, 0)]
    found = query("SELECT part_timestamp FROM t WHERE part = 2", pins)
    assert found.rows == [(datetime(1970, 1, 1, 0, 2, tzinfo=UTC),)]
    assert found.types == ("TIMESTAMP WITH TIME ZONE",)
    with pytest.raises(BadQuery, match="Tables of this workspace: before, none, t"):
        query("SELECT * FROM t, nothing", pins)


def test_keys_are_looked_up_in_the_store(path: str) -> None:
    write(path, "a", (1, "a", 1.0), (1, "b", 1.0), (2, "b", 1.0))
    handle = storage.open_at(path)
    assert unique(handle, Parts.of((1, 2)), ["part", "src"]) is True
    assert unique(handle, Parts.of((1, 2)), ["src"]) is False


def test_the_log_is_read_without_gaps(path: str) -> None:
    write(path, "a", (1, "a", 1.0))
    write(path, "b", (2, "a", 1.0))
    assert [(found.version, (found.entry or {}).get("step")) for found in storage.entries(path, -1)] == [
        (0, None),
        (1, "a"),
        (2, "b"),
    ]


def test_what_follows_from_a_commit_is_what_the_log_says(lake: Lake, path: str) -> None:
    """Without a request; another process opens the table and finds the same."""
    write(path, "a", (1, "a", 1.0), (2, "b", 2.0))
    handle = storage.open_at(path, 1)
    new = stage(handle, "b", [(2, "b", 3.0)], [], [(3, "c", 3.0)])
    assert storage.commit(handle, new, storage.rewrite(handle, Parts.single(1, 2)).removed, {}) == 2
    lake.server.forget()
    known = storage.open_at(path, 2)
    assert (known.version, len(known.files), known.columns) == (2, 2, handle.columns)
    assert lake.server.requests() == []
    opened = storage.open_at(path)
    assert set(known.files) == set(opened.files)
    assert json.loads(known.schema) == json.loads(opened.schema)
    assert known.table.version() == 2  # delta-rs is asked when somebody needs it
    assert storage.commit(known, (), known.files, {}) == 3
    assert rows(path) == []


def test_after_a_commit_of_ours_one_look_tells_what_others_committed(lake: Lake, path: str) -> None:
    """And a log that went on without the ledger, which was put back to an older copy, is found out by the next commit."""
    write(path, "a", (1, "a", 1.0))
    lake.server.forget()
    assert storage.unknown(path, 1) == []
    assert len(lake.server.requests()) == 1
    ours = storage.open_at(path, 1)
    theirs = storage.Handle(path, 1)
    storage.commit(theirs, stage(theirs, "b", [(2, "b", 1.0)]), (), {"step": "b"})
    table._latest[path] = ours  # they are another process
    assert [(found.version, found.entry) for found in storage.unknown(path, 1)] == [(2, {"step": "b"})]
    storage.checkpoint(path)
    lake.bucket("warehouse/t").remove(f"_delta_log/{2:020d}.json")
    assert storage.unknown(path, 1) == []
    with pytest.raises(storage.Conflict):
        storage.commit(ours, stage(ours, "c", [(3, "c", 1.0)]), (), {})
    assert [(found.version, found.entry) for found in storage.unknown(path, 1)] == [(2, None)]


def test_a_log_that_went_missing_is_noticed_by_who_remembers_the_table(lake: Lake, path: str) -> None:
    write(path, "a", (1, "a", 1.0))
    assert damage(path, 1) is None
    lake.bucket("warehouse/t").remove_folder("_delta_log")
    found = damage(path, 1)
    assert found is not None
    assert found.text() == "its Delta log is missing or damaged"


def test_a_commit_is_written_as_delta_rs_writes_it(lake: Lake, path: str, tmp_path: Path) -> None:
    """The same commit to a folder, by delta-rs, has the same actions."""
    from partwise.storage.files import folder
    from partwise.storage.log import actions_of
    from tests.storage import tables as local

    def made(handle: storage.Handle, stage: Callable[..., tuple[storage.File, ...]]) -> list[dict[str, Any]]:
        storage.commit(handle, stage(handle, "a", [(1, "a", 1.0)]), (), {"x": 1})
        after = storage.open_at(handle.path)
        storage.commit(after, stage(after, "b", [(1, "b", 2.0)]), after.files, {"x": 2})
        found = actions_of(folder(handle.path), 2)
        assert found is not None
        return found

    theirs = made(storage.create(str(tmp_path / "t"), SCHEMA), local.stage)
    ours = made(storage.open_at(path), stage)

    def shape(actions: list[dict[str, Any]], kind: str) -> dict[str, Any]:
        [found] = [action[kind] for action in actions if kind in action]
        changing = ("modificationTime", "deletionTimestamp")
        return {name: value for name, value in found.items() if name not in changing and value is not None}

    for kind in ("add", "remove"):
        assert shape(ours, kind) == shape(theirs, kind)
    info = shape(ours, "commitInfo")
    assert info["partwise"] == '{"x":2}'
    assert info["operation"] == shape(theirs, "commitInfo")["operation"]
