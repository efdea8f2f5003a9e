"""What all three compute from: an hour of rows in a Parquet file each; and the right answers, by DuckDB over all that landed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

BEGIN = datetime(2026, 10, 3, tzinfo=UTC)
ROWS, KEYS = 10_000, 1_000

#: What a view shows of an hour, as DuckDB says it over the rows `r` (hour, k, x). `v<n>` of ten alike differ by the n.
TRUTH = {
    "rolling": "SELECT h.hour, r.k, SUM(r.x) AS total FROM hours h JOIN r ON r.hour BETWEEN h.hour - INTERVAL 2 HOURS AND h.hour "
    "GROUP BY h.hour, r.k",
    "running": "SELECT h.hour, r.k, SUM(r.x) AS total FROM hours h JOIN r ON r.hour <= h.hour GROUP BY h.hour, r.k",
    "diamond": "SELECT hour, k, SUM(x) + COUNT(*) AS total FROM r GROUP BY hour, k",
}


def hour_of(number: int) -> datetime:
    return BEGIN + timedelta(hours=number)


def land(folder: Path, number: int) -> None:
    """An hour of rows, and the word that it is complete: Partwise waits for that, the peers are told by hand."""
    _write(folder / f"h{number:05}.parquet", number, ROWS, 0)
    closed = folder.with_name("closed")
    closed.mkdir(exist_ok=True)
    (closed / f"{hour_of(number):%Y-%m-%dT%H-%M}.done").touch()


def land_late(folder: Path, number: int, name: str = "late", rows: int = 5) -> None:
    _write(folder / f"{name}{number:05}.parquet", number, rows, 3)


def _write(path: Path, number: int, rows: int, salt: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    step = timedelta(hours=1) / (rows + 1)
    columns = {
        "at": pa.array([hour_of(number) + step * i for i in range(rows)], pa.timestamp("us", tz="UTC")),
        "k": pa.array([(i * 7 + number) % KEYS for i in range(rows)], pa.int64()),
        "x": pa.array([(i + salt + number) % 101 for i in range(rows)], pa.int64()),
    }
    new = path.with_name("." + path.name)
    pq.write_table(pa.table(columns), new)
    new.rename(path)


def truth(landing: Path, view: str, hours: range) -> set[tuple[datetime, int, int]]:
    """(hour, key, total) of these hours."""
    query = TRUTH.get(view) or f"SELECT hour, k, SUM(x + {view[1:]}) AS total FROM r GROUP BY hour, k"
    with duckdb.connect() as on:
        on.execute("SET TimeZone = 'UTC'")
        files = f"read_parquet('{landing}/*.parquet')"
        on.execute(f"CREATE TABLE r AS SELECT date_trunc('hour', \"at\") AS hour, k, x FROM {files}")
        on.execute("CREATE TABLE hours AS SELECT DISTINCT hour FROM r")
        return rows_of(on, query, hours)


def rows_of(on: duckdb.DuckDBPyConnection, query: str, hours: range) -> set[tuple[datetime, int, int]]:
    first, last = hour_of(hours.start), hour_of(hours.stop - 1)
    found = on.execute(
        f"SELECT epoch_us(hour::TIMESTAMPTZ), k, total::BIGINT FROM ({query}) WHERE hour::TIMESTAMPTZ BETWEEN ? AND ?",
        [first, last],
    ).fetchall()
    return {(datetime.fromtimestamp(us / 1e6, UTC), k, total) for us, k, total in found}


def missing_or_wrong(
    shown: Mapping[str, set[tuple[datetime, int, int]]], landing: Path, hours: range
) -> dict[str, int]:
    """View → hours in which it does not show what it should."""
    found = {}
    for view, rows in shown.items():
        wrong = {hour for hour, _, _ in rows ^ truth(landing, view, hours)}
        if wrong:
            found[view] = len(wrong)
    return found
