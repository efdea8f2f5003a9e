"""A price list that changes forward, on real tables: every part keeps the prices of when its rows came to exist."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from partwise.ledger.read.born import Versions, versions
from partwise.parts import FOREVER, Parts, Range
from spark_jobs.run import run_all
from spark_jobs.verify.verify import verify
from tests.spark.landing import DAY, DEFINITION, NOW, Crash, World
from tests.spark.test_rebuild import again

pytestmark = pytest.mark.spark
#: The source stands before the dimension, which is loaded first all the same.
SHOP = (
    DEFINITION.strip()
    + """
---
dimension: rates
change: forward
columns: {src: string, rate: double}
files: landing/rates.csv
---
view: priced
part: 1 minute
update: SELECT m.src, m.loss * r.rate AS v FROM m[j] m JOIN rates r ON r.src = m.src
---
view: total
part: 1 minute
initialize: SELECT SUM(m.loss * r.rate) AS v FROM m[i] m JOIN rates r ON r.src = m.src
update: |
  SELECT MAX(t.v) + COALESCE(SUM(m.loss * r.rate), 0) AS v
  FROM total[j-1] t LEFT JOIN m[j] m ON true LEFT JOIN rates r ON r.src = m.src
"""
)
LATER = """
---
view: later
part: 2 minutes
update: SELECT SUM(m.loss * r.rate) AS v FROM m[2*j..2*j+1] m JOIN rates r ON r.src = m.src
---
view: windowed
part: 1 minute
strategy: merge
query: SELECT SUM(w.loss * r.rate) AS v FROM m [WINDOW 2 minutes] w JOIN rates r ON r.src = w.src
---
view: seen
part: 1 minute
query: SELECT DISTINCT r.rate AS v FROM m [WINDOW 2 minutes] m LEFT JOIN rates r ON r.src = m.src
"""


PRICES = """
---
dimension: prices
key: src
valid_from: since
columns: {src: string, price: double, since: timestamp}
files: landing/prices.csv
---
view: sold
part: 1 minute
update: SELECT m.src, m.loss * p.price AS v FROM m[j] m LEFT JOIN prices p ON p.src = m.src
---
view: lately
part: 1 minute
strategy: merge
query: SELECT SUM(w.loss * p.price) AS v FROM m [WINDOW 3 minutes] w JOIN prices p ON p.src = w.src
"""


def prices(world: World, *rows: tuple[float, str]) -> None:
    """Prices of x, each from a minute on."""
    lines = [f"x,{price},2026-10-03T{minute}Z\n" for price, minute in rows]
    world.put("prices.csv", "src,price,since\n" + "".join(lines))


def rates(world: World, rate: float, note: str = "") -> None:
    columns, row = ("src,rate", f"x,{rate}") if not note else ("src,rate,note", f"x,{rate},{note}")
    world.put("rates.csv", f"{columns}\n{row}\n")


def held(world: World, view: str = "priced") -> dict[int, float]:
    found: dict[int, float] = {}
    for p, v in world.rows(view, "part, v"):
        found[p - DAY] = found.get(p - DAY, 0) + v
    return found


def test_every_part_keeps_the_version_of_when_its_rows_came_to_exist(world: World) -> None:
    world.define(SHOP)
    rates(world, 1)
    world.csv("a.csv", (0, "x", 1), (1, "x", 1), (2, "x", 1))
    world.ingest()
    run_all(world.engine)
    assert held(world) == {0: 1, 1: 1}

    rates(world, 10)
    world.csv("b.csv", (3, "x", 1), (4, "x", 1))
    assert not world.ingest()[
        "rates"
    ].refused  # minutes 2 and 3 come to exist after the new rates, which are loaded first
    assert {step.table for step in world.ledger.plan(NOW).steps} == {"priced", "total"}
    run_all(world.engine)
    assert held(world) == {0: 1, 1: 1, 2: 10, 3: 10}
    assert held(world, "total") == {0: 1, 1: 2, 2: 12, 3: 22}

    rates(world, 100)
    for point in ("kept", "committed"):
        world.crash_at(point)
        with pytest.raises(Crash):
            world.ingest("rates")
        world.go_on()
    world.ingest("rates")
    assert not world.ledger.plan(NOW).steps, "a new version counts for what comes to exist later"

    # Whoever cleans up takes nothing away that is still read.
    live = {file.path for file in world.handle("rates").files}
    root = Path(world.handle("rates").path)
    for file in root.rglob("*.parquet"):
        if str(file.relative_to(root)) not in live:
            file.unlink()

    world.csv("late.csv", (0, "x", 1), (2, "x", 1), (5, "x", 1))
    world.ingest()
    run_all(world.engine)
    assert held(world) == {0: 2, 1: 1, 2: 20, 3: 10, 4: 100}
    assert held(world, "total") == {0: 2, 1: 3, 2: 23, 3: 33, 4: 133}

    before = held(world), held(world, "total")
    world.ledger.request("priced", Parts.of((DAY, DAY + 9)), NOW)
    again(world, "total")
    assert not any(report.changed for report in run_all(world.engine))
    assert (held(world), held(world, "total")) == before

    world.define(SHOP + LATER)
    run_all(world.engine)
    # Part 1 holds minutes 2 and 3: both came with the second version.
    assert sorted(v for _, v in world.rows("later", "part, v")) == [3, 30]
    # Of a window each part counts by the version of when it came.
    assert held(world, "windowed") == {1: 3, 2: 21, 3: 30, 4: 110}
    assert held(world, "seen") == {1: 1, 2: 11, 3: 10, 4: 110}
    found = verify(world.engine)
    assert found.checked == 5 + 5 + 2 + 4 + 4
    assert not found.different

    # The second version had a wrong row: the third one counts for the minutes that came with it.
    with world.ledger.database.reading() as r:
        third = versions(r, "rates").contents[-1].seq
    due = world.ledger.repin("rates", Range(60 * (DAY + 2), 60 * (DAY + 3) + 59), third, "me", NOW)
    assert due == {
        "priced": Parts.of((DAY + 2, DAY + 3)),
        "total": Parts.of((DAY + 2, DAY + 3)),
        "later": Parts.single(DAY // 2 + 1),
        "windowed__dated": Parts.of((DAY + 2, DAY + 3)),
        "seen__dated": Parts.of((DAY + 2, DAY + 3)),
    }
    run_all(world.engine)
    assert held(world) == {0: 2, 1: 1, 2: 200, 3: 100, 4: 100}
    assert held(world, "total") == {0: 2, 1: 3, 2: 203, 3: 303, 4: 403}
    assert held(world, "windowed") == {1: 3, 2: 201, 3: 300, 4: 200}
    assert held(world, "seen") == {1: 1, 2: 101, 3: 100, 4: 100}
    assert not verify(world.engine).different
    with patch.object(Versions, "repinned", lambda self, born, until=FOREVER: None):
        world.csv("later.csv", (2, "x", 1))
        world.ingest()
        run_all(world.engine)
    wrong = {(name, p - DAY) for name, p, _, _ in verify(world.engine).different}
    assert {("priced", 2), ("windowed", 2), ("windowed", 3), ("seen", 3)} <= wrong


def test_new_columns_are_null_in_old_versions_and_verify_notices_a_wrong_version(world: World) -> None:
    world.define(SHOP)
    rates(world, 1)
    world.csv("a.csv", (0, "x", 1), (1, "x", 1))
    world.ingest()
    run_all(world.engine)
    rates(world, 10)
    world.ingest()
    wide = SHOP.replace("rate: double}", "rate: double, note: string}").replace(
        "m.loss * r.rate AS v FROM m[j]", "m.loss * r.rate AS v, r.note FROM m[j]"
    )
    world.define(wide)
    rates(world, 100, "dear")
    world.csv("b.csv", (2, "x", 1), (3, "x", 1))
    world.ingest()
    run_all(world.engine)
    assert [(p - DAY, v, note) for p, v, note in world.rows("priced", "part, v, note")] == [
        (0, 1, None),
        (1, 100, "dear"),
        (2, 100, "dear"),
    ]
    assert not verify(world.engine).different

    with patch.object(Versions, "number_for", lambda self, born: len(self.contents) - 1):
        world.csv("late.csv", (0, "x", 1))
        world.ingest()
        run_all(world.engine)
    wrong = {(name, p - DAY) for name, p, _, _ in verify(world.engine).different}
    assert ("priced", 0) in wrong

    # Turned back, the newest version counts for everything.
    world.define(wide.replace("change: forward\n", ""))
    run_all(world.engine)
    assert held(world) == {0: 200, 1: 100, 2: 100}
    assert not verify(world.engine).different


def test_rows_meet_what_was_valid_at_their_time_and_late_rows_of_the_dimension_touch_their_time_alone(
    world: World,
) -> None:
    world.define(DEFINITION.strip() + PRICES)
    prices(world, (1, "00:00:00"))
    world.csv("a.csv", *((minute, "x", 1) for minute in range(7)))
    world.ingest()
    run_all(world.engine)
    assert held(world, "sold") == {0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1}
    assert held(world, "lately") == {2: 3, 3: 3, 4: 3, 5: 3}

    # A row for a time that is over: from minute 2 on until minute 4 the price was another one.
    prices(world, (1, "00:00:00"), (10, "00:02:00"), (1, "00:04:00"))
    world.crash_at("committed")
    with pytest.raises(Crash):
        world.ingest("prices")
    world.go_on()
    world.ingest("prices")
    due = {step.table: Parts.of(step.parts) for step in world.ledger.plan(NOW).steps}
    # From minute 4 on another row says the same: it is another row.
    assert due["sold"] == due["lately__dated"] == Parts.of((DAY + 2, DAY + 5))
    run_all(world.engine)
    assert held(world, "sold") == {0: 1, 1: 1, 2: 10, 3: 10, 4: 1, 5: 1}
    assert held(world, "lately") == {2: 12, 3: 21, 4: 21, 5: 12}

    # One row is corrected: its time alone is due, and what it feeds.
    prices(world, (1, "00:00:00"), (5, "00:02:00"), (1, "00:04:00"))
    world.ingest("prices")
    due = {step.table: Parts.of(step.parts) for step in world.ledger.plan(NOW).steps}
    assert due == {"sold": Parts.of((DAY + 2, DAY + 3)), "lately__dated": Parts.of((DAY + 2, DAY + 3))}
    assert not world.ledger.audit()
    run_all(world.engine)
    world.csv("late.csv", (3, "x", 2))
    world.ingest()
    run_all(world.engine)
    assert held(world, "sold") == {0: 1, 1: 1, 2: 5, 3: 15, 4: 1, 5: 1}
    assert held(world, "lately") == {2: 7, 3: 21, 4: 21, 5: 17}
    found = verify(world.engine)
    assert found.checked == 6 + 4
    assert not found.different

    # Of a commit that paints too little verify notices what nobody computed.
    prices(world, (1, "00:00:00"), (7, "00:02:00"), (1, "00:04:00"))
    with patch("spark_jobs.ingest.dimension.changed_times", lambda *_: (Range(60 * (DAY + 3), 60 * (DAY + 3) + 59),)):
        world.ingest("prices")
    run_all(world.engine)
    assert {(name, p - DAY) for name, p, _, _ in verify(world.engine).different} == {
        ("sold", 2),
        ("lately", 2),
        ("lately", 3),
        ("lately", 4),
    }
