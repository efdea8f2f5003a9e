"""Which parts a query may read: DuckDB must give the same answer when all other parts are taken away."""

from __future__ import annotations

import duckdb
import pytest

from partwise.parts import Parts, parse_part
from partwise.sql.parts_read import EVERYTHING, parts_read

#: Parts are minutes; there are ten of them from here on.
FIRST = parse_part("2026-10-03T04:00", 60)
LENGTHS = {"a": 60, "b": 60, "h": 3600, "d": 0}


def at(p: int) -> str:
    return f"2026-10-03T04:{p:02d}"


#: SQL, and what it may read of each table (offsets from FIRST; None: all).
NARROW: list[tuple[str, dict[str, tuple[tuple[int, int], ...] | None]]] = [
    (f"SELECT * FROM a WHERE part_timestamp = '{at(3)}'", {"a": ((3, 3),)}),
    (f"SELECT * FROM a WHERE part_timestamp >= TIMESTAMP '{at(3)}' AND part_timestamp < '{at(5)}'", {"a": ((3, 4),)}),
    (f"SELECT * FROM a x WHERE x.part_timestamp BETWEEN '{at(3)}' AND '{at(5)}'", {"a": ((3, 5),)}),
    (f"SELECT * FROM a WHERE part IN ({FIRST + 1}, {FIRST + 5})", {"a": ((1, 1), (5, 5))}),
    (f"SELECT * FROM a WHERE part_timestamp IN ('{at(1)}', '{at(5)}')", {"a": ((1, 1), (5, 5))}),
    (f"SELECT * FROM a WHERE {FIRST + 2} < part AND part <= {FIRST + 4} AND x > 1", {"a": ((3, 4),)}),
    (f"SELECT * FROM a JOIN b USING (part, k) WHERE part = {FIRST + 2}", {"a": ((2, 2),), "b": ((2, 2),)}),
    (f"SELECT * FROM a LEFT JOIN b ON b.part = a.part AND b.k = a.k WHERE a.part = {FIRST + 2}", {"a": ((2, 2),), "b": ((2, 2),)}),
    (f"SELECT * FROM a FULL JOIN b ON b.part = a.part AND b.k = a.k WHERE b.part = {FIRST + 2}", {"a": ((2, 2),), "b": ((2, 2),)}),
    (f"SELECT * FROM a RIGHT JOIN b USING (part, k) WHERE b.part > {FIRST + 7}", {"a": ((8, None),), "b": ((8, None),)}),
    (f"SELECT * FROM a LEFT JOIN b ON b.k = a.k AND b.part = {FIRST + 1} WHERE a.part = {FIRST + 2}", {"a": ((2, 2),), "b": ((1, 1),)}),
    (f"SELECT * FROM a, b WHERE a.part = b.part AND a.k = b.k AND b.part = {FIRST + 3}", {"a": ((3, 3),), "b": ((3, 3),)}),
    (f"WITH q AS (SELECT * FROM a WHERE part = {FIRST}) SELECT * FROM q UNION ALL SELECT * FROM a WHERE part = {FIRST + 9}", {"a": ((0, 0), (9, 9))}),
    (f"SELECT k, (SELECT max(x) FROM b WHERE b.part = {FIRST + 1}) FROM a WHERE part = {FIRST + 4}", {"a": ((4, 4),), "b": ((1, 1),)}),
    (f"SELECT * FROM a SEMI JOIN b ON a.part = b.part AND a.k = b.k WHERE a.part = {FIRST + 4}", {"a": ((4, 4),), "b": ((4, 4),)}),
    (f"SELECT * FROM a ANTI JOIN b ON a.part = b.part AND a.x < b.x WHERE a.part = {FIRST + 4}", {"a": ((4, 4),), "b": ((4, 4),)}),
    (f"SELECT * FROM a WHERE part_timestamp = '{at(3)}' AND part = {FIRST + 4}", {"a": ()}),
    (f"SELECT * FROM a WHERE part_timestamp > '{at(3)}:30' AND part_timestamp <= '{at(6)}:30'", {"a": ((4, 6),)}),
]  # fmt: skip
WHOLE = [
    "SELECT * FROM a",
    f"SELECT * FROM a WHERE part = {FIRST} OR x > 3",
    f"SELECT * FROM a WHERE NOT (part = {FIRST})",
    f"SELECT * FROM (SELECT * FROM a) q WHERE part = {FIRST + 3}",
    f"SELECT * FROM b ASOF JOIN a ON b.k = a.k AND b.x >= a.x WHERE a.part = {FIRST + 3} AND b.part = {FIRST + 3}",
    "SELECT * FROM a WHERE part_timestamp > (SELECT max(part_timestamp) FROM a) - INTERVAL 2 MINUTE",
    f"SELECT * FROM b LEFT JOIN a ON a.part = {FIRST} OR a.k = b.k WHERE b.part = {FIRST}",
    f"SELECT * FROM b FULL JOIN a ON a.k = b.k AND a.part = {FIRST}",
    f"SELECT * FROM a LEFT JOIN b ON a.part = {FIRST} AND a.k = b.k",
    f"SELECT sum(x) FILTER (part = {FIRST}), sum(x) FROM a",
    f"SELECT * FROM a WHERE part + 0 = {FIRST}",
    f"SELECT * FROM a WHERE k = (SELECT max(k) FROM b WHERE b.part = a.part AND b.part = {FIRST})",
]


def load(keep: dict[str, Parts]) -> duckdb.DuckDBPyConnection:
    on = duckdb.connect(":memory:")
    on.execute("SET TimeZone = 'UTC'")
    for name, shift in (("a", 0), ("b", 1)):
        on.execute(f"CREATE TABLE {name} (part BIGINT, part_timestamp TIMESTAMPTZ, k VARCHAR, x BIGINT)")
        for p in (p for p in range(FIRST, FIRST + 10) if p in keep[name]):
            for k, x in (("k", (7 * p + shift) % 5), ("m", (3 * p + shift) % 4)):
                on.execute(f"INSERT INTO {name} VALUES ({p}, to_timestamp({p * 60}), '{k}', {x})")
    return on


@pytest.mark.parametrize("sql", [sql for sql, _ in NARROW] + WHOLE)
def test_what_it_does_not_read_makes_no_difference(sql: str) -> None:
    found = parts_read(sql, {name: LENGTHS[name] for name in ("a", "b")})
    every = {"a": EVERYTHING, "b": EVERYTHING}
    rows = [sorted(map(repr, load(keep).execute(sql).fetchall())) for keep in (every, found)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(("sql", "wanted"), NARROW)
def test_what_is_certain_narrows(sql: str, wanted: dict[str, tuple[tuple[int, int | None], ...]]) -> None:
    found = parts_read(sql, {name: LENGTHS[name] for name in wanted})
    for name, spans in wanted.items():
        here = found[name].within(FIRST, FIRST + 9)
        assert here == Parts.of(*((FIRST + lo, FIRST + (9 if hi is None else hi)) for lo, hi in spans))
        assert (found[name] - here).count == 0 or any(hi is None for _, hi in spans)


@pytest.mark.parametrize(
    "sql", [*WHOLE, "SELECT broken FROM (((", "FROM query_table('a')", "SELECT * FROM a TABLESAMPLE 5"]
)
def test_what_is_not_certain_means_all(sql: str) -> None:
    assert parts_read(sql, {"a": 60})["a"] == EVERYTHING


def test_lengths_differ_and_dimensions_have_no_parts() -> None:
    sql = "SELECT * FROM h JOIN d USING (k) WHERE h.part_timestamp >= '2026-10-03T04:30' AND h.part_timestamp < '2026-10-03T06:00'"
    found = parts_read(sql, {"h": 3600, "d": 0})
    assert found == {"h": Parts.single((FIRST * 60) // 3600 + 1), "d": EVERYTHING}


def test_spark_is_read_as_spark() -> None:
    found = parts_read(
        "SELECT * FROM a LEFT ANTI JOIN b ON a.part <=> b.part WHERE a.part = 3", {"a": 60, "b": 60}, "spark"
    )
    assert found == {"a": Parts.single(3), "b": EVERYTHING}
