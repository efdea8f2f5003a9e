"""Files become rows of parts: formats, names, corrections, closing, dimensions."""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from partwise.ledger.write.closing import close, declare_empty
from partwise.parts import Range
from spark_jobs.ingest import load
from spark_jobs.ingest.api import NotDone
from tests.spark.landing import DAY, DEFINITION, NOW, World, text

pytestmark = pytest.mark.spark


def test_a_file_is_loaded_once_corrected_and_retracted(world: World) -> None:
    world.define()
    world.csv("a.csv", (0, "x", 1), (0, "y", 2), (3, "x", 3))
    world.csv("b.csv", (1, "x", 4))
    done = world.ingest()
    assert (done.files, done.rows, done.late_rows, done.quarantined, done.refused) == (2, 4, 0, 0, [])
    # Minute 3 holds the newest event time and is open; minute 2 is a gap between closed parts.
    assert world.closed() == [0, 1, 2]
    assert [p - DAY for p in done.closed] == [0, 1, 2]
    assert not done.changed
    assert world.minutes() == [(0, "x", 1.0), (0, "y", 2.0), (1, "x", 4.0), (3, "x", 3.0)]
    world.check()

    before = world.handle().version
    os.utime(world.folder / "landing/m/a.csv")  # delivered again: another time, the same content
    done = world.ingest()
    assert (done.files, done.rows) == (0, 0)
    assert world.handle().version == before

    world.csv("a.csv", (0, "x", 1), (1, "z", 9))  # a correction: y and the row of minute 3 go, z comes
    done = world.ingest()
    assert world.minutes() == [(0, "x", 1.0), (1, "x", 4.0), (1, "z", 9.0)]
    assert [p - DAY for p in done.changed] == [0, 1]
    assert (done.files, done.rows, done.late_rows) == (1, 2, 2)
    assert world.revisions() == {0: 2, 1: 2, 2: 1}
    world.check()

    world.csv("a.csv", (1, "z", 9), (0, "x", 1))  # the same rows in another order: no revision
    assert not world.ingest().changed
    assert world.revisions() == {0: 2, 1: 2, 2: 1}

    (world.folder / "landing/m/b.csv").unlink()  # it disappears: nothing
    assert world.ingest().files == 0
    assert (1, "x", 4.0) in world.minutes()

    done = world.retract("landing/m/b.csv")
    assert (done.rows, [p - DAY for p in done.changed]) == (-1, [1])
    assert world.minutes() == [(0, "x", 1.0), (1, "z", 9.0)]
    with pytest.raises(NotDone, match="retracted already"):
        world.retract("b.csv")
    with pytest.raises(NotDone, match="it knows 2 files"):
        world.retract("c.csv")
    world.csv("b.csv", (1, "x", 4))  # delivered again as it was: it stays out
    assert world.ingest().files == 0
    world.csv("b.csv", (2, "new", 5))
    assert world.ingest().files == 1
    assert (2, "new", 5.0) in world.minutes()
    world.check()
    assert world.arrivals()[:3] == [(0, 2, False), (1, 1, False), (3, 1, False)]
    assert world.arrivals()[-1] == (
        2,
        1,
        True,
    )


NAMES = ["a b.csv", "a%20b.csv", "[x].csv", "{a,b}.csv", "st*r.csv", "wh?t.csv", "ha#sh.csv", "2026-10-03T10:05.csv", "ü+&,.csv", "q'\".csv", "b\\s.csv"]  # fmt: skip


def test_a_file_that_goes_while_it_is_loaded_leaves_the_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.define()
    going = world.csv("a.csv", (0, "x", 1))
    world.put("m/b.csv", f'event_time,src,loss\n{text(1)},"y",2\n')  # with quotation marks Spark reads it
    union = load.union

    def gone(frames: Sequence[DataFrame]) -> DataFrame:
        going.unlink(missing_ok=True)
        return union(frames)

    monkeypatch.setattr(load, "union", gone)
    done = world.ingest()
    assert (done.files, done.refused) == (1, [])
    assert world.minutes() == [(1, "y", 2.0)]
    world.check()


def test_any_name_and_every_kind_of_text(world: World) -> None:
    world.define()
    for at, name in enumerate(NAMES):
        world.csv(name, (at, f"n{at}", at))
    head = "event_time,src,loss"
    world.put("m/bom.csv", "\ufeff" + f"{head}\n{text(20)},bom,1")  # no newline at the end
    world.put("m/crlf.csv", f"{head}\r\n{text(20)},crlf,1\r\n")
    world.put("m/packed.csv.gz", gzip.compress(f"{head}\n{text(20)},gz,1\n".encode()))
    world.put("m/two.csv.gz", gzip.compress(f"{head}\n".encode()) + gzip.compress(f"{text(20)},gz2,1\n".encode()))
    world.put("m/order.csv", f"loss,more,SRC,Event_Time\n7,ignored,order,{text(20)}\n")
    world.put("m/quoted.csv", f'{head}\n{text(20)},"say ""hi"", you", 1.5 \n{text(20)},"",\n')
    world.put("m/only_head.csv", f"{head}\n")
    world.put("m/nothing.csv", "")
    world.put(
        "m/lines.json",
        json.dumps({"event_time": text(20), "src": "json", "loss": 2}) + "\n" + json.dumps({"event_time": text(20)}),
    )
    times = [datetime(2026, 10, 3, 0, 20, tzinfo=UTC), datetime(2026, 10, 3, 0, 20, 59, 999_999, tzinfo=UTC)]
    table = pa.table(
        {
            "loss": pa.array([1, 2], pa.int32()),
            "event_time": pa.array(times, pa.timestamp("us", "UTC")),
            "src": ["pq", "pq"],
        }
    )
    pq.write_table(table, world.put("m/p.parquet", ""))
    done = world.ingest()
    assert done.refused == []
    assert done.quarantined == 0
    found = world.minutes()
    assert sorted(src for minute, src, _ in found if minute < 20) == sorted(f"n{at}" for at in range(len(NAMES)))
    assert [row for row in found if row[0] == 20] == sorted(
        [(20, src, 1.0) for src in ("bom", "crlf", "gz", "gz2", "pq")]
        + [(20, "pq", 2.0), (20, "order", 7.0), (20, 'say "hi", you', 1.5), (20, None, None), (20, "json", 2.0), (20, None, None)],
        key=repr,
    )  # fmt: skip
    world.check()
    assert not (world.folder / ".ingest").exists()


def test_files_that_are_refused_or_left_alone(world: World) -> None:
    world.define()
    world.csv("good.csv", (0, "x", 1), (2, "x", 1))
    for name in ("_a.csv", ".b.csv", "c.csv.tmp", "d.csv~"):
        world.csv(name, (0, "no", 1))
    world.put("m/missing.csv", "event_time,sorc,loss\n")
    world.put("m/twice.csv", "event_time,src,loss,SRC\n")
    whole = gzip.compress(b"event_time,src,loss\n" + os.urandom(5000).hex().encode())
    world.put("m/cut.csv.gz", whole[:-300])
    world.put("m/damaged.csv.gz", whole[:100] + b"\0\0\0\0" + whole[104:])
    world.put("m/words.json", "not\njson\n")
    world.put("m/array.json", "[1, 2]\n")
    world.put("m/other.json", '{"time": 1}\n')
    world.put("m/cut.parquet", b"PAR1abc")
    pq.write_table(pa.table({"event_time": [1], "src": ["a"], "loss": [1.0]}), world.put("m/number.parquet", ""))
    world.put("m/what.xyz", "")
    world.put("m/open.csv", f'event_time,loss,src\n{text(0)},1,x\n{text(0)},1,"never closed\n{text(0)},1,y\n')
    world.put("m/keys.json", f'{{"event_time": "{text(0)}", "sorc": "a"}}\n')
    world.put("m/_temporary/0/half.csv", f"event_time,src,loss\n{text(0)},half,1\n")
    done = world.ingest()
    assert done.files == 1
    assert world.minutes() == [(0, "x", 1.0), (2, "x", 1.0)]
    said = {Path(name).name: message for name, message in done.refused}
    assert set(said) == {"missing.csv", "twice.csv", "cut.csv.gz", "damaged.csv.gz", "words.json", "array.json", "other.json", "cut.parquet", "number.parquet", "what.xyz", "open.csv", "keys.json"}  # fmt: skip
    assert said["open.csv"] == "a quotation mark in line 3 is never closed"
    assert said["keys.json"] == "none of its first rows has src; did you mean sorc?"
    assert said["missing.csv"] == "the column src is missing; did you mean sorc?"
    assert "cut off" in said["cut.csv.gz"]
    assert "damaged" in said["damaged.csv.gz"]
    assert "int64 in the file, timestamp expected" in said["number.parquet"]
    assert "whole Parquet" in said["cut.parquet"]
    assert "event_time" in said["other.json"]
    assert "one object a line" in said["words.json"]
    # A file that is corrected to something wrong keeps what it brought before.
    world.put("m/good.csv", "nothing\n")
    assert [name for name, _ in world.ingest().refused if name.endswith("good.csv")]
    assert len(world.minutes()) == 2


def test_columns_added_removed_and_of_another_type(world: World) -> None:
    world.define()
    world.csv("a.csv", (0, "7", 1), (2, "8", 2))
    world.ingest()
    version = world.handle().version
    world.define(DEFINITION.replace("src: string, loss: double", "src: int, more: string"))
    done = world.ingest()
    assert done.notes == [
        "columns changed: more added (NULL in rows that were there); loss removed; src of another type"
    ]
    assert world.handle().version == version + 1
    assert world.rows(columns="part, src, more") == [(DAY, 7, None), (DAY + 2, 8, None)]
    assert world.revisions() == {0: 2, 1: 1}
    world.put("m/b.csv", f"event_time,src,more\n{text(1)},9,new\n")
    assert world.ingest().rows == 1
    assert not world.ingest().notes
    world.check()
    world.define(DEFINITION.replace("src: string, loss: double", "src: int, more: double"))
    done = world.ingest()
    assert done.refused == [
        ("", "1 stored rows of m have a more that is no double; keep its type, or give the new column another name")
    ]


def test_another_part_length_loads_the_files_again(world: World) -> None:
    world.define()
    world.csv("a.csv", (0, "x", 1), (2, "x", 1))
    world.ingest()
    world.define(DEFINITION.replace("1 minute", "1 hour"))
    assert world.ingest().rows == 2
    assert {p for p, *_ in world.rows()} == {DAY // 60}


def test_closing_by_delay_marker_and_hand(world: World) -> None:
    source = DEFINITION.replace("landing/m/*", "landing/m/*.csv")
    world.define(
        "---".join(
            [
                source.replace("source: m", "source: d") + "close: {delay: 2 minutes}\n",
                source.replace("source: m", "source: k") + "close: {marker: landing/m/{part}.done}\n",
                source.replace("source: m", "source: h") + "close: manual\n",
            ]
        )
    )
    world.csv("a.csv", (0, "x", 1), (4, "x", 1))
    world.csv("b.csv", (2, "x", 1))
    world.put("m/2026-10-03T00-04.done", "")
    world.put("m/unknown.done", "")
    done = world.ingest()
    assert world.closed("d") == [0, 1]
    assert world.closed("k") == [4]
    assert world.closed("h") == []
    assert not any(each.refused for each in done.values())
    world.put("m/2026-10-03T00-00.done", "")
    world.ingest()
    assert world.closed("k") == [0, 1, 3, 4]  # minute 2 has rows and no marker
    close(world.ledger, "h", DAY, "test", NOW)
    declare_empty(world.ledger, "h", Range(DAY + 1, DAY + 1), "test", NOW)
    world.csv("c.csv", (1, "late", 1), (0, "late", 1))
    assert world.ingest()["h"].late_rows == 2
    assert world.revisions("h") == {0: 2, 1: 2}
    close(world.ledger, "h", DAY + 2, "test", NOW)
    for name in ("d", "k", "h"):
        world.check(name)


def test_a_wrong_time_does_not_make_millions_of_empty_parts(world: World) -> None:
    world.define()
    world.put("m/a.csv", f"event_time,src,loss\n1970-01-01,x,1\n{text(0)},x,1\n{text(2)},x,1\n")
    done = world.ingest()
    assert world.parts().count == 3
    assert "too many to be a gap" in done.notes[0]


def test_files_that_are_still_written_to_wait(world: World) -> None:
    world.define()
    path = world.csv("slow.csv", (0, "x", 1), (2, "x", 1))
    os.utime(path)  # just now
    stop = threading.Event()

    def write() -> None:
        with path.open("a") as file:
            while not stop.wait(0.05):
                file.write(f"{text(1)},more,1\n")
                file.flush()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert world.ingest(settle=0.4).files == 0
    finally:
        stop.set()
        writer.join()
    time.sleep(0.01)
    assert world.ingest(settle=0.2).files == 1
    world.check()


def test_dimensions_are_replaced_and_stay_when_nothing_changes(world: World) -> None:
    world.define("dimension: nodes\ncolumns: {node: string, n: int}\nfiles: landing/nodes*.csv\n")
    world.put("nodes.csv", "node,n\na,1\na,1\nb,x\n")
    done = world.ingest()
    assert (done.rows, done.quarantined, list(done.changed)) == (2, 1, [0])
    assert world.rows("nodes", "node, n") == [("a", 1), ("a", 1)]
    version = world.handle("nodes").version
    world.put("nodes.csv", "n,node\n1,a\n1,a\n")  # the same content in other words
    done = world.ingest()
    assert not done.changed
    assert world.handle("nodes").version == version
    assert world.aside() == []
    world.put("nodes_2.csv", "node,n\nc,3\n")  # the newest file is the content
    assert world.ingest().changed
    assert world.rows("nodes", "node, n") == [("c", 3)]
    assert not world.ingest().changed


def test_an_older_file_of_a_dimension_delivered_again_is_its_content(world: World) -> None:
    world.define("dimension: nodes\ncolumns: {node: string, n: int}\nfiles: landing/nodes*.csv\n")
    for name, node in (("nodes_1.csv", "a"), ("nodes_2.csv", "b"), ("nodes_1.csv", "a")):
        last = world.put(name, f"node,n\n{node},1\n")
        assert world.ingest().changed
        assert world.rows("nodes", "node, n") == [(node, 1)]
        assert world.ingest().files == 0
    last.unlink()  # what is left is older: nothing changes
    assert world.ingest().files == 0


def test_line_breaks_in_values(world: World) -> None:
    """The string is the last column: half of it would be a row of the right length."""
    world.define(DEFINITION.replace("src: string, loss: double", "loss: double, src: string") + "close: manual\n")
    head = "event_time,loss,src"
    world.put("m/plain.csv", f'{head}\n{text(0)},1,"say ""hi"""\n{text(0)},1,5" pipe\n')
    world.put(
        "m/broken.csv", f'{head}\n{text(0)},1,"one\ntwo"\r\n{text(0)},x,"bad\nnumber"\n{text(1)},2,"a,\r\n""b"""\n'
    )
    world.put("m/packed.csv.gz", gzip.compress(f'{head}\n{text(2)},3,"gz\n"\n'.encode()))
    done = world.ingest()
    assert (done.rows, done.quarantined, done.refused) == (5, 1, [])
    assert sorted(src for _, src, _ in world.minutes()) == sorted(
        ['say "hi"', '5" pipe', "one\ntwo", 'a,\r\n"b"', "gz\n"]
    )
    assert [row for _, row in world.aside()] == [f'{text(0)},x,"bad\nnumber"']
    world.define(DEFINITION.replace("src: string, loss: double", "loss: string, src: string") + "close: manual\n")
    world.ingest()
    assert world.release().rows == 1
    assert (0, "bad\nnumber", "x") in world.minutes()


def test_thousands_of_files_are_one_pass_and_one_commit(world: World) -> None:
    world.define()
    for at in range(1500):
        world.csv(f"{at}.csv", (at % 100, "x", at))
    done = world.ingest()
    assert (done.files, done.rows, world.handle().version) == (1500, 1500, 1)
    assert len(world.handle().files) == 1  # three tasks read them; so few rows are written together
