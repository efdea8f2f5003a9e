"""Rows are placed in time, or kept in quarantine until they are released."""

from __future__ import annotations

import json

import pytest

from partwise.upkeep.retain import floors, retain
from tests.spark.landing import DAY, DEFINITION, World, text

pytestmark = pytest.mark.spark


TIMES = [
    ("10:05", "cannot be understood"), ("2026", "cannot be understood"), ("soon", "cannot be understood"),
    ("12026-01-01", "cannot be understood"), ("", "no event time"), ("  ", "no event time"), ("2026-13-01", "cannot be understood"),
]  # fmt: skip


def test_times_are_placed_exactly_or_set_aside(world: World) -> None:
    world.define(DEFINITION + "close: manual\nlate: {future: 3000000 days}\n")
    good = ["1969-12-31T23:59:59.999999", "1970-01-01", "2026-10-03 12:00:30+02:00", "2026-10-03T10:00:30Z", " 2026-10-03T10:00:30 ", "0001-01-01T00:00:00", "9999-12-31T23:59:59.999999"]  # fmt: skip
    bad = [time for time, _ in TIMES]
    lines = [f'"{time}",{at},1' for at, time in enumerate([*good, *bad])]
    lines += [f"{text(0)},few", f"{text(0)},many,1,2", f"{text(0)},number,1x", f'{text(0)},5" pipe']
    world.put("m/a.csv", "\n".join(["event_time,src,loss", *lines]))
    done = world.ingest()
    assert (done.rows, done.quarantined, done.closed) == (len(good), len(bad) + 4, world.parts())
    parts = {int(src): p for p, src, _ in world.rows()}
    now = DAY + 600
    first, last = -62_135_596_800 // 60, 253_402_300_799 // 60
    assert parts == {0: -1, 1: 0, 2: now, 3: now, 4: now, 5: first, 6: last}
    reasons = world.aside("m")
    assert len(reasons) == len(bad) + 4
    for time_text, reason in TIMES:
        if time_text.strip():
            assert any(reason in why and json.dumps(time_text) in row for why, row in reasons)
    assert sum("no event time" in why for why, _ in reasons) == 2
    assert {row for why, row in reasons if "declared columns" in why} == set(lines[-4:])


@pytest.mark.parametrize(("unit", "kind", "factor"), [("seconds", "bigint", 1), ("milliseconds", "bigint", 1000), ("seconds", "double", 1), ("milliseconds", "string", 1000)])  # fmt: skip
def test_times_as_numbers(world: World, unit: str, kind: str, factor: int) -> None:
    world.define(
        f"source: m\npart: 1 minute\ntime: {{column: t, unit: {unit}}}\ncolumns: {{t: {kind}, n: int}}\nfiles: landing/m/*.csv\nclose: manual\n"
    )
    values = [-1, 0, 59, 60, DAY * 60]
    extra = {"bigint": ["9223372036854775807", ""], "double": ["NaN", "Infinity", "1e300"], "string": ["x", "1e400"]}[
        kind
    ]
    lines = [*(str(v * factor) for v in values), *extra]
    world.put("m/a.csv", "t,n\n" + "".join(f"{line},{at}\n" for at, line in enumerate(lines)))
    done = world.ingest()
    assert (done.rows, done.quarantined) == (len(values), len(extra))
    assert list(world.rows(columns="part, n")) == sorted([(-1, 0), (0, 1), (0, 2), (1, 3), (DAY, 4)], key=repr)


def test_rows_too_old_too_new_or_expired_wait_in_quarantine_until_released(world: World) -> None:
    world.define(DEFINITION + "late: {accept: 10 minutes, future: 1 day}\n")
    world.csv("a.csv", (0, "old but first", 1), (5, "w", 1), (6, "v", 1), (60, "x", 1))
    assert world.ingest().quarantined == 0  # one row ahead of most others makes none of them too old
    head = "event_time,src,loss"
    world.put("m/b.csv", f"{head}\n{text(49)},too old,1\n{text(50)},just,1\n2026-10-09,ahead,1\n")
    done = world.ingest()
    assert (done.rows, done.late_rows, done.quarantined) == (1, 1, 2)
    assert sorted(why for why, _ in world.aside()) == [
        "further in the future than late.future (1 day)",
        "older than late.accept (10 minutes)",
    ]
    before = world.closed()
    done = world.release()
    assert (done.rows, done.late_rows, done.quarantined) == (2, 1, 0)
    assert world.aside() == []
    assert world.closed() == before  # a row from far ahead does not close what is before it
    assert {src for _, src, _ in world.rows()} == {"old but first", "w", "v", "x", "too old", "just", "ahead"}
    world.check()
    world.csv("b.csv", (50, "just", 1))  # corrected: released rows came from this file, too
    world.ingest()
    assert {src for _, src, _ in world.rows()} == {"old but first", "w", "v", "x", "just"}
    assert world.release().rows == 0
    world.check()


def test_a_source_that_keeps_less_sets_late_rows_for_expired_parts_aside(world: World) -> None:
    world.define(DEFINITION + "keep: 5 minutes\n")
    world.csv("a.csv", *((minute, "x", minute) for minute in range(11)))
    world.csv("b.csv", (1, "other", 1), (8, "other", 1))
    world.ingest()
    [wanted] = floors(world.ledger, world.engine.definitions.usable).values()
    assert retain(world.ledger, world.workspace.warehouse, "m", wanted, world.engine.now) is not None
    assert world.closed() == [5, 6, 7, 8, 9]
    world.check()
    world.csv("late.csv", (4, "expired", 1), (5, "late", 1))
    # The default of late.future: without it this row would close all parts up to its time.
    world.put("m/ahead.csv", "event_time,src,loss\n9999-12-31,ahead,1\n")
    done = world.ingest()
    assert (done.rows, done.late_rows, done.quarantined) == (1, 1, 2)
    assert {why for why, _ in world.aside()} == {
        "before the first part that is kept (2026-10-03T00:05)",
        "further in the future than late.future (1 day)",
    }
    world.csv("b.csv", (1, "other", 2), (8, "other", 2))  # a correction of rows that are gone and of some that are not
    world.ingest()
    world.retract("a.csv")
    assert world.minutes() == [(5, "late", 1.0), (8, "other", 2.0)]
    assert world.closed() == [5, 6, 7, 8, 9]
    world.check()


def test_unreadable_rows_can_be_released_after_the_definition_is_corrected(world: World) -> None:
    world.define(DEFINITION.replace("double", "int"))
    world.put("m/a.csv", f"event_time,loss,src\n{text(0)},1,x\n{text(0)},2.5,y\nnever,1,z\n{text(2)},1,w\n")
    assert world.ingest().quarantined == 2
    assert world.release().quarantined == 2
    assert len(world.aside()) == 2
    world.define()
    done = world.release()
    assert (done.rows, done.quarantined, len(world.aside())) == (1, 1, 1)
    assert world.minutes() == [(0, "x", 1.0), (0, "y", 2.5), (2, "w", 1.0)]
    world.check()


def test_columns_may_have_the_names_of_what_quarantine_keeps(world: World) -> None:
    kinds = "src: string, loss: int, text: string, line: int, file: string"
    world.define(DEFINITION.replace("src: string, loss: double", kinds))
    world.put("m/a.csv", f"event_time,src,loss,text,line,file\n{text(0)},x,1x,a,7,f\n{text(2)},y,1,b,8,g\n")
    assert world.ingest().quarantined == 1
    # A column that the file did not have is NULL in what is released, as in rows that were there.
    world.define(DEFINITION.replace("src: string, loss: double", kinds.replace("loss: int", "more: int, loss: string")))
    world.ingest()
    assert world.release().rows == 1
    assert world.rows(columns="loss, more, text, line, file") == [
        ("1", None, "b", 8, "g"),
        ("1x", None, "a", 7, "f"),
    ]


def test_a_wrong_time_in_the_first_load_is_as_wrong_as_in_the_second(world: World) -> None:
    world.define(DEFINITION + "late: {accept: 5 days}\n")
    head = "event_time,src,loss"
    world.put("m/a.csv", f"{head}\n1969-12-31,wrong,1\n{text(0)},x,1\n")
    done = world.ingest()
    assert (done.rows, done.quarantined) == (1, 1)
    assert world.aside()[0][0] == "older than late.accept (5 days)"
    world.put("m/b.csv", f"{head}\n1970-01-01,wrong,1\n{text(1)},x,1\n")
    assert world.ingest().quarantined == 1
    world.check()


def test_one_row_ahead_of_a_load_does_not_set_the_load_aside(world: World) -> None:
    world.define(DEFINITION + "late: {accept: 10 minutes}\n")
    world.put(
        "m/a.csv", f"event_time,src,loss\n{text(0)},x,1\n{text(1)},x,1\n{text(2)},x,1\n2026-10-03T23:00,ahead,1\n"
    )
    assert world.ingest().quarantined == 0
