"""Rows of a rolling table that came and went: two versions of its files, compared as multisets."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from partwise import storage
from partwise.cli.rows_changed import _compared
from partwise.storage import schema as schemas
from partwise.storage.query import PinnedTable


def write(path: str, rows: list[tuple[str | None, int]]) -> None:
    """The next version holds these rows alone."""
    handle, step = storage.create(path, schemas.of({"k": "string", "x": "bigint"}, parts=False)), uuid.uuid4().hex[:12]
    folder = Path(storage.begin(handle, step))
    if rows:
        folder.mkdir()
        table = pa.table(
            {"k": pa.array([k for k, _ in rows], pa.string()), "x": pa.array([x for _, x in rows], pa.int64())}
        )
        pq.write_table(table, folder / "rows.parquet")
    storage.commit(handle, storage.staged(path, step), handle.files, {})


def test_rows_that_came_and_went(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write(path, [("a", 1), ("a", 1), (None, 2)])
    write(path, [("a", 1), (None, 2), (None, 2), ("b", 3)])
    found = _compared(PinnedTable(path, 1), PinnedTable(path, 2), 10)
    assert found.columns == ("k", "x")
    assert sorted(found.came, key=repr) == [("b", 3), (None, 2)]
    assert found.went == (("a", 1),)
    assert found.to_json() == {
        "came": [{"k": "b", "x": 3}, {"k": None, "x": 2}],
        "went": [{"k": "a", "x": 1}],
        "came_count": 2,
        "went_count": 1,
    }
    few = _compared(PinnedTable(path, 0), PinnedTable(path, 2), 1)
    assert (len(few.came), few.came_count, few.went) == (1, 4, ())
    assert _compared(None, PinnedTable(path, 2), 10).came_count == 4
    assert _compared(None, None, 10).came == ()
