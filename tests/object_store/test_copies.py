"""Local copies are made only for a Spark that sees this disk, and only of what fits."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from partwise import storage
from spark_jobs.step import copies
from spark_jobs.step.copies import Copies, copies_for, runs_here
from tests.object_store.store import Lake
from tests.object_store.tables import SCHEMA, stage


class Session:
    """What is asked of a session."""

    def __init__(self, master: str) -> None:
        self.conf = SimpleNamespace(get=lambda name, default: master)


class Connected(Session):
    __module__ = "pyspark.sql.connect.session"

    def __init__(self, master: str, host: str, sees: bool) -> None:
        super().__init__(master)
        self.client = SimpleNamespace(host=host)
        self.read = SimpleNamespace(text=lambda path: SimpleNamespace(collect=lambda: self._rows(path, sees)))

    @staticmethod
    def _rows(path: str, sees: bool) -> list[Any]:
        return [(Path(path).read_text(),)] if sees else []


@pytest.mark.parametrize(
    "spark, here",
    [
        (Session("local[2]"), True),
        (Session("spark://master:7077"), False),
        (Connected("local[2]", "127.0.0.1", True), True),
        (Connected("local[2]", "127.0.0.1", False), False),  # a tunnel, a container, another user
        (Connected("local[2]", "spark.example.org", True), False),
        (Connected("spark://master:7077", "localhost", True), False),
    ],
)
def test_who_sees_this_disk(spark: Any, here: bool) -> None:
    assert runs_here(spark) is here


def test_tables_in_a_folder_have_no_copies(tmp_path: Path) -> None:
    handle = storage.create(str(tmp_path / "t"), SCHEMA)
    assert copies_for(Session("local[2]"), handle) is None  # type: ignore[arg-type]


def test_small_files_are_fetched_once_and_large_ones_never(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = storage.create(f"{lake.url}/t", SCHEMA)
    one, two = stage(handle, "a", [(1, "a", 1.0)], [(2, "b", 2.0)])
    found = Copies(budget=one.size)
    lake.server.forget()
    place = found.uri(handle, one)
    assert Path(place).read_bytes() == lake.bucket("t").get(one.path)
    assert place.endswith("/" + one.path)
    lake.server.forget()
    assert found.uri(handle, one) == place
    assert found.uri(handle, two) == f"{handle.path}/{two.path}"  # the budget is spent
    assert lake.server.requests() == []
    monkeypatch.setattr(copies, "SMALL", 10)
    assert Copies().uri(handle, two) == f"{handle.path}/{two.path}"


def test_what_a_step_wrote_without_spark_is_not_fetched(lake: Lake) -> None:
    handle = storage.create(f"{lake.url}/t", SCHEMA)
    [file] = stage(handle, "a", [(1, "a", 1.0)])
    content = lake.bucket("t").get(file.path)
    assert content is not None
    found = Copies()
    found.keep(handle, file, content)
    lake.server.forget()
    assert Path(found.uri(handle, file)).read_bytes() == content
    assert lake.server.requests() == []
    full = Copies(budget=0)
    full.keep(handle, file, content)
    assert full.uri(handle, file) == f"{handle.path}/{file.path}"


def test_a_file_that_is_not_what_the_log_says_is_not_read(lake: Lake) -> None:
    handle = storage.create(f"{lake.url}/t", SCHEMA)
    [file] = stage(handle, "a", [(1, "a", 1.0)])
    lake.bucket("t").put(file.path, b"other")
    with pytest.raises(FileNotFoundError, match="has another size than the log says"):
        Copies().uri(handle, file)


def test_empty_files_are_not_uploaded_and_none_is_overwritten(lake: Lake, tmp_path: Path) -> None:
    from tests.storage import tables as local

    handle = storage.create(f"{lake.url}/t", SCHEMA)
    scratch = storage.create(str(tmp_path / "t"), SCHEMA)
    local.stage(scratch, "x", [(1, "a", 1.0)], [])
    here = tmp_path / "t" / "s-x"
    storage.begin(handle, "x")
    assert [file.path for file in storage.upload(handle, "x", here)] == ["s-x/part-00000.parquet"]
    assert storage.upload(handle, "x", here)  # the same content: the answer to the first try was lost
    lake.bucket("t").put("s-x/part-00000.parquet", b"of somebody else")
    with pytest.raises(storage.CommitRefused, match="is there already"):
        storage.upload(handle, "x", here)


def test_a_file_that_was_written_whole_needs_no_look_back(lake: Lake, tmp_path: Path) -> None:
    from partwise.storage.staging import write
    from tests.storage import tables as local

    scratch = storage.create(str(tmp_path / "t"), SCHEMA)
    [made] = local.stage(scratch, "x", [(1, "a", 1.0)])
    content = (tmp_path / "t" / made.path).read_bytes()
    handle = storage.create(f"{lake.url}/t", SCHEMA)
    lake.server.forget()
    storage.begin(handle, "x")
    file = write(handle, "x", "part-0.parquet", content)
    assert (file,) == storage.staged(handle.path, "x")
    storage.commit(handle, [file], (), {})
    storage.finish(handle.path, "x")
    asked = [line.split(" ")[0] for line in lake.server.requests()]
    # begin, the file, the look of this test, commit (checkpoint, log file), the note goes
    assert asked == ["PUT", "PUT", "GET", "GET", "PUT", "POST"]
    # Thrown away, it goes in one request: nobody needs to look which files there are.
    lake.server.forget()
    after = storage.open_at(handle.path, 1)
    storage.begin(after, "y")
    write(after, "y", "part-0.parquet", content)
    storage.discard(after.path, "y")
    assert [line.split(" ")[0] for line in lake.server.requests()] == ["PUT", "PUT", "POST"]
    assert not [name for name in lake.names() if "s-y" in name or "_staged" in name]
