"""Staged files of crashed steps go; files that a version names stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from partwise import storage
from partwise.parts import Parts
from tests.storage.tables import SCHEMA, rows, stage

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return storage.create(str(tmp_path / "t"), SCHEMA).path


def sweep(path: str, *keep: str, older_than: timedelta = timedelta(0)) -> storage.Swept:
    return storage.sweep(path, set(keep), older_than=older_than, now=datetime.now(UTC) + timedelta(seconds=1))


def test_a_sweep_without_leftovers_commits_nothing(path: str) -> None:
    handle = storage.open_at(path)
    storage.commit(handle, stage(handle, "a", [(1, "a", 1.0)]), (), {})
    storage.finish(path, "a")
    assert sweep(path) == storage.Swept((), None)
    assert storage.open_at(path).version == 1


def test_leftovers_go_and_everything_that_a_version_names_stays(path: str) -> None:
    for step, value in (("old", 1.0), ("new", 2.0)):  # committed, but the process died before `finish`
        handle = storage.open_at(path)
        storage.commit(handle, stage(handle, step, [(1, "a", value)]), handle.files_of(Parts.single(1)), {})
    for step in ("crashed", "running"):
        stage(storage.open_at(path), step, [(3, "x", 0.0)])
    assert sweep(path, "running") == storage.Swept(("crashed",), 3)
    assert rows(path) == [(1, "a", 2.0)]
    assert rows(path, 1) == [(1, "a", 1.0)]  # no longer live, but older versions can still be read
    assert sorted(p.name for p in Path(path).glob("s-*")) == ["s-new", "s-old", "s-running"]
    assert os.listdir(Path(path) / "_staged") == ["running"]
    [logged] = storage.entries(path, 2)
    assert (logged.version, logged.data_change) == (3, False)
    assert logged.entry is not None
    assert sorted(logged.entry["steps"]) == ["crashed", "new", "old"]


def test_a_folder_of_empty_files_does_not_stay_behind(path: str) -> None:
    handle = storage.open_at(path)
    full, empty = stage(handle, "full", [(1, "a", 1.0)]), stage(handle, "empty", [])
    storage.commit(handle, [*full, *empty], (), {})
    for step in ("full", "empty"):
        storage.finish(path, step)
    assert [p.name for p in Path(path).glob("s-*")] == ["s-full"]
    handle = storage.open_at(path)
    storage.commit(handle, stage(handle, "more", [(2, "a", 1.0)]), (), {})
    note = Path(path) / "_staged" / "more"
    note.write_text("unreadable")
    storage.finish(path, "more")  # in doubt files stay
    assert len(rows(path)) == 2


def test_young_leftovers_stay(path: str) -> None:
    stage(storage.open_at(path), "young", [(1, "a", 1.0)])
    assert sweep(path, older_than=timedelta(hours=1)) == storage.Swept((), None)
    assert sweep(path).steps == ("young",)


def test_a_zombie_cannot_commit_files_that_were_swept(path: str) -> None:
    zombie = storage.open_at(path)
    staged = stage(zombie, "zombie", [(1, "a", 1.0)])
    assert sweep(path).steps == ("zombie",)
    with pytest.raises(storage.Conflict):
        storage.commit(zombie, staged, (), {})
    assert rows(path) == []


def test_a_name_is_used_once(path: str) -> None:
    handle = storage.open_at(path)
    stage(handle, "a", [(1, "a", 1.0)])
    with pytest.raises(storage.CommitRefused, match="a name of its own"):
        storage.begin(handle, "a")
    storage.discard(path, "a")
    assert not (Path(path) / "s-a").exists()
    storage.begin(handle, "a")
    for bad in ("", "_a", "a/b", "a=1", ".."):
        with pytest.raises(ValueError, match="cannot name"):
            storage.begin(handle, bad)


def test_killed_between_staging_and_commit_the_table_is_unchanged(path: str) -> None:
    handle = storage.open_at(path)
    storage.commit(handle, stage(handle, "before", [(1, "a", 1.0)]), (), {})
    storage.finish(path, "before")
    script = f"""
        import sys, time
        from partwise import storage
        from tests.storage.tables import stage
        handle = storage.open_at({path!r})
        stage(handle, "killed", [(1, "b", 2.0)])
        print("staged", flush=True)
        time.sleep(60)
        storage.commit(handle, storage.staged({path!r}, "killed"), handle.files, {{}})
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "staged\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert (Path(path) / "s-killed").exists()
    assert rows(path) == [(1, "a", 1.0)]
    assert sweep(path).steps == ("killed",)
    assert not (Path(path) / "s-killed").exists()
    assert rows(path) == [(1, "a", 1.0)]
