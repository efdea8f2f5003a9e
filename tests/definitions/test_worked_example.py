"""The paper's worked example, on the hand-written views of the example: found, spliced and run on DuckDB."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
import sqlglot

from partwise.compile.load import load
from partwise.definitions import View
from partwise.sql import FoundReference, splice

EXAMPLE = Path(__file__).parents[2] / "view_defs"
LOSSES = [6, 12, 15, 24, 20, 16, 7]  # 10:00 to 10:06


@pytest.fixture
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    made = duckdb.connect()
    made.execute("CREATE TABLE measurements (part BIGINT, src TEXT, dest TEXT, loss DOUBLE)")
    made.execute("CREATE TABLE loss_runs (part BIGINT, src TEXT, dest TEXT, ct BIGINT, sum_loss DOUBLE)")
    made.execute("CREATE TABLE high_loss_by_hand (part BIGINT, src TEXT, dest TEXT, ct BIGINT, sum_loss DOUBLE)")
    for minute, loss in enumerate(LOSSES):
        made.execute("INSERT INTO measurements VALUES (?, 'a', NULL, ?)", [minute, loss])
    yield made
    made.close()


def build(database: duckdb.DuckDBPyConnection, view: View, part: int, first: bool) -> None:
    statement = view.initialize if first and view.initialize is not None else view.update
    assert statement is not None

    def parts(found: FoundReference) -> str:
        assert found.reference is not None
        lo, hi = found.reference.requires(part)
        return f"(SELECT * EXCEPT (part) FROM {found.table} WHERE part BETWEEN {lo} AND {hi})"

    spark = splice(statement.text, parts, statement.index)
    (sql,) = sqlglot.transpile(spark, read="spark", write="duckdb")
    database.execute(f"INSERT INTO {view.name} SELECT {part}, * FROM ({sql})")


def test_four_high_losses_in_a_row(database: duckdb.DuckDBPyConnection) -> None:
    views = load(EXAMPLE).tables
    for part in range(len(LOSSES)):
        for name in ("loss_runs", "high_loss_by_hand"):
            view = views[name]
            assert isinstance(view, View)
            build(database, view, part, first=part == 0)
    rows = database.execute("SELECT part, src, dest, ct, sum_loss FROM high_loss_by_hand ORDER BY part").fetchall()
    assert rows == [(4, "a", None, 4, 71.0), (5, "a", None, 5, 87.0)]
    runs = database.execute("SELECT part, ct, sum_loss FROM loss_runs ORDER BY part").fetchall()
    assert runs == [(1, 1, 12.0), (2, 2, 27.0), (3, 3, 51.0), (4, 4, 71.0), (5, 5, 87.0)]
