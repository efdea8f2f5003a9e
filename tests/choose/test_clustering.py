"""Which tables have their old parts put together by key."""

from __future__ import annotations

import pytest

from partwise.choose.clustering import cluster_columns
from partwise.compile.load import load_texts

TEXT = b"""
source: m
part: 1 minute
time: t
columns: {t: timestamp, k: string, g: int, x: double}
files: m.csv
---
source: other
part: 1 minute
time: t
columns: {t: timestamp, k: string}
files: other.csv
---
dimension: d
columns: {k: string, region: string}
files: d.csv
---
view: hourly
part: 1 minute
update: SELECT k, SUM(x) AS s FROM m[j-59..j] GROUP BY k
---
view: latest
part: 1 minute
update: SELECT k, s FROM hourly[j]
---
view: few
part: 1 minute
update: SELECT k, COUNT(*) AS n FROM other[j-2..j] GROUP BY k
---
view: by_region
part: 1 minute
update: SELECT d.region, COUNT(*) AS n FROM latest[j-29..j] l JOIN d ON d.k = l.k GROUP BY d.region
"""


@pytest.mark.parametrize(
    "table, layout, expected",
    [
        ("m", (), ()),  # read by a window of an hour, but without an order
        ("hourly", ("k",), ("k",)),  # shows one
        ("few", ("k",), ()),  # three parts are few
        ("latest", ("k",), ("k",)),  # read by a long window, though that carries nothing: it has an order already
        ("latest", (), ()),
        ("d", (), ()),
        ("gone", ("k",), ()),
    ],
)
def test_long_windows_decide(table: str, layout: tuple[str, ...], expected: tuple[str, ...]) -> None:
    program = load_texts({"all.yaml": TEXT})
    assert program.ok, program.problems
    assert cluster_columns(program.graph(), table, layout) == expected
