"""Whether no two rows are alike in some columns, told from the files alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from partwise import storage
from partwise.parts import Parts
from partwise.storage import unique as looked
from partwise.storage.unique import unique
from tests.storage.tables import SCHEMA, Row, stage


def table(at: Path, *files: list[Row]) -> storage.Handle:
    handle = storage.create(str(at / "it's here"), SCHEMA)
    storage.commit(handle, stage(handle, "one", *files), (), {})
    return storage.open_at(handle.path)


def test_rows_of_other_parts_and_files_count_as_they_should(tmp_path: Path) -> None:
    handle = table(tmp_path, [(1, "a", 1.0), (2, "a", 1.0)], [(1, "b", 1.0), (2, "a", 2.0), (3, "c", 0.0)])
    assert unique(handle, Parts.of((1, 1)), ["SRC"]) is True  # part 2 stands in the same file
    assert unique(handle, Parts.of((2, 2)), ["src"]) is False  # in two files
    assert unique(handle, Parts.of((1, 2)), ["src", "part"]) is False
    assert unique(handle, Parts.single(1, 3), ["src", "part"]) is True
    assert unique(handle, Parts.of((9, 9)), ["src"]) is True  # no rows


def test_null_is_no_key(tmp_path: Path) -> None:
    handle = table(tmp_path, [(1, None, 1.0), (1, "a", 1.0), (2, "b", 1.0), (3, None, 1.0), (3, None, 2.0)])  # type: ignore[list-item]
    assert [unique(handle, Parts.of((p, p)), ["src"]) for p in (1, 2, 3)] == [None, True, None]
    assert unique(handle, Parts.of((1, 1)), ["part", "src"]) is None


def test_what_cannot_be_told_is_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = table(tmp_path, [(1, "a", 0.0), (1, "b", -0.0)])
    assert unique(handle, Parts.of((1, 1)), ["loss"]) is None  # equal for Spark, though not the same bits
    assert unique(handle, Parts.of((1, 1)), ["nowhere"]) is None
    assert unique(handle, Parts.of((1, 1)), []) is None
    monkeypatch.setattr(looked, "MOST_ROWS", 1)
    assert unique(handle, Parts.of((1, 1)), ["src"]) is None
    monkeypatch.undo()
    Path(handle.uris()[0]).unlink()
    assert unique(handle, Parts.of((1, 1)), ["src"]) is None  # a store that cannot be read
