"""Files that Spark stumbles over: they are refused one by one, and everything else is loaded."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, PySparkException

from spark_jobs import retry
from spark_jobs.ingest import api, load
from spark_jobs.ingest.files.find import RefusedFile, Utf8
from spark_jobs.ingest.load import FileChanged
from tests.spark.landing import DEFINITION, World, text

pytestmark = pytest.mark.spark


def parquet(world: World, name: str, minute: int, src: str, **given: Any) -> None:
    at = datetime(2026, 10, 3, 0, minute, 1, tzinfo=UTC)
    columns = {"event_time": pa.array([at], pa.timestamp("us")), "src": [src], "loss": [1.0], **given}
    pq.write_table(pa.table(columns), world.put(f"m/{name}", ""))


def refused(done: Any) -> dict[str, str]:
    return {Path(name).name: message for name, message in done.refused}


def test_nanoseconds_are_read_and_what_spark_has_no_type_for_is_refused(world: World) -> None:
    world.define()
    times = [
        datetime(2026, 10, 3, 0, 1, 59, 999_999, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ]
    columns = {"event_time": pa.array(times, pa.timestamp("ns")), "src": ["ns", "old"], "loss": [1.0, 1.0]}
    pq.write_table(pa.table(columns), world.put("m/nanos.parquet", ""))
    pq.write_table(pa.table(columns), world.put("m/int96.parquet", ""), use_deprecated_int96_timestamps=True)
    parquet(world, "good.parquet", 0, "good")
    parquet(world, "null.parquet", 0, "null", loss=pa.array([None]))
    parquet(world, "half.parquet", 0, "half", loss=pa.array([1.0], pa.float32()).cast(pa.float16()))
    # Nothing is wrong with its declared columns: Spark says nothing before it tries, and then names no file.
    for at in range(3):
        parquet(world, f"time{at}.parquet", 0, f"t{at}", more=pa.array([1], pa.time32("ms") if at == 1 else pa.int32()))
    world.csv("a.csv", (2, "csv", 1))
    done = world.ingest()
    said = refused(done)
    assert set(said) == {"half.parquet", "time1.parquet"}
    assert said["half.parquet"] == "the column loss is halffloat in the file, double expected"
    assert "Illegal Parquet type" in said["time1.parquet"]
    found = {(minute, src) for minute, src, _ in world.minutes()}
    assert found >= {(0, "good"), (0, "null"), (0, "t0"), (0, "t2"), (1, "ns"), (2, "csv")}
    assert [src for _, src, _ in world.minutes()].count("ns") == 2
    assert (
        world.rows(columns="unix_micros(event_time), src").count(
            (int(times[0].timestamp()) * 1_000_000 + 999_999, "ns")
        )
        == 2
    )
    assert world.closed()
    world.check()


def test_nested_columns_must_be_nested_in_the_file(world: World) -> None:
    world.define(DEFINITION.replace("loss: double", "loss: array<double>") + "close: manual\n")
    parquet(world, "good.parquet", 0, "good", loss=[[1.0, 2.0]])
    parquet(world, "null.parquet", 0, "null", loss=pa.array([None]))
    parquet(world, "number.parquet", 0, "number")
    parquet(world, "text.parquet", 0, "text", loss=["[1]"])
    parquet(world, "times.parquet", 0, "times", loss=pa.array([[1]], pa.list_(pa.timestamp("ns"))))
    said = refused(world.ingest())
    assert set(said) == {"number.parquet", "text.parquet", "times.parquet"}
    assert said["number.parquet"] == "the column loss is double in the file, array<double> expected"
    assert sorted(src for src, _ in world.rows(columns="src, loss")) == ["good", "null"]


TWO = DEFINITION.replace("landing/m/*", "landing/m/*.csv") + "---" + DEFINITION.replace("source: m", "source: other")


def test_what_fails_in_one_source_leaves_the_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.define(TWO)
    world.csv("a.csv", (0, "x", 1), (2, "x", 1))
    whole, said = load.publish, ["Spark has no idea"]

    def publish(work: Any, change: Any, close: bool) -> Any:
        if work.name == "m" and said:
            raise AnalysisException(said[0])
        return whole(work, change, close)

    monkeypatch.setattr(load, "publish", publish)
    done = world.ingest()
    assert done["m"].refused == [("", "Spark has no idea")]
    assert done["other"].rows == 2
    said.clear()
    assert world.ingest()["m"].rows == 2
    world.check()


def test_a_file_that_never_stands_still_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.define()
    path = world.csv("a.csv", (0, "x", 1), (2, "x", 1))
    monkeypatch.setattr(api, "_TRIES", 2)

    def always(files: object) -> None:
        raise FileChanged(f"{path.name} is written to all the time")

    monkeypatch.setattr(load, "unchanged", always)
    assert world.ingest().refused == [("", "a.csv is written to all the time")]


def test_spark_that_was_not_there_for_a_moment_is_asked_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.define(TWO)
    world.put("m/a.csv", f"event_time,src,loss\n{text(0)},x,1\n{text(2)},x,1\n")
    monkeypatch.setattr(retry, "PAUSES", (0.0, 0.0))
    whole, failures = api.load_files, [1]

    def load_files(*given: Any) -> Any:
        if failures and failures.pop():
            raise PySparkException("Connection refused")
        return whole(*given)

    monkeypatch.setattr(api, "load_files", load_files)
    done = world.ingest()
    assert (done["m"].rows, done["other"].rows) == (2, 2)
    world.put("m/b.csv", f"event_time,src,loss\n{text(2)},y,1\n")  # without news nobody would need Spark
    failures.extend([1, 1, 1])  # of the first source all tries
    done = world.ingest()
    assert done["m"].refused == [("", "Spark is unavailable: Connection refused")]
    assert done["other"].refused == []


def test_whoever_stops_an_ingest_waits_for_one_source_only(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.define(TWO)
    taken: list[str] = []
    monkeypatch.setattr(api, "take_in", lambda engine, workspace, name, *how: taken.append(name))
    assert len(list(api.each(world.engine, world.workspace, stop=lambda: bool(taken)))) == 1
    assert taken == ["m"]


def test_what_is_lost_or_doubled_on_the_way_is_told(world: World) -> None:
    world.define(DEFINITION.replace("loss: double", "loss: 'decimal(10,2)'"))
    head = "event_time,src,loss"
    world.put("m/latin.csv", f"{head}\n{text(0)},x,1\n{text(0)},M\u00fcller,1\n".encode("latin1"))
    world.put(
        "m/a.csv",
        f'{head},more\n{text(0)},x,1.239,1\n{text(0)},y,1.230,1\n{text(0)},z,"1,000.5",1\n{text(0)},w,1.5e-3,1\n',
    )
    world.put("m/b.json", f'{{"event_time": "{text(0)}", "src": "j", "loss": 0.125}}\n')
    world.put("m/c.csv", f"{head}\n{text(0)},twice,1\n")
    world.put("m/d.csv", f"{head}\n{text(0)},twice,1\n")
    table = pa.table({"event_time": [text(0)] * 2, "src": ["p", "q"], "loss": [0.5, 0.333]})
    pq.write_table(table, world.put("m/p.parquet", ""))
    done = world.ingest()
    [(file, why)] = done.refused
    at = len(f"{head}\n{text(0)},x,1\n{text(0)},M")
    assert file == "landing/m/latin.csv"
    assert f"byte 0xfc at position {at} (line 3)" in why
    assert done.rounded == 4
    assert done.ignored_columns == ["more"]
    assert done.same_content == [("landing/m/d.csv", "landing/m/c.csv")]
    found = {(src, str(loss)) for _, src, loss in world.rows()}
    assert found == {("x", "1.24"), ("y", "1.23"), ("z", "1000.50"), ("w", "0.00"), ("j", "0.13"), ("twice", "1.00"), ("p", "0.50"), ("q", "0.33")}  # fmt: skip
    world.check()
    again = world.put("m/e.csv", f"{head}\n{text(0)},twice,1\n")
    assert world.ingest().same_content == [("landing/m/e.csv", "landing/m/c.csv")]
    again.unlink()


def looked_at(content: bytes, size: int) -> None:
    seen = Utf8()
    for at in range(0, len(content), size):
        seen.see(content[at : at + size])
    seen.end()


def test_a_byte_that_is_not_utf8_is_found_wherever_chunks_end() -> None:
    text_ = "a\n\u00e9\n".encode() * 3 + b"\xe9\n"
    for size in range(1, 8):
        with pytest.raises(RefusedFile, match=r"0xe9 at position 15 \(line 7\)"):
            looked_at(text_, size)
    cut = Utf8()
    cut.see("\u00e9".encode()[:1])
    with pytest.raises(RefusedFile, match="position 0"):
        cut.end()
