"""Which files are taken, and what digests become when rows come and go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partwise.ledger.records.files import Delivery, TakenFile
from partwise.ledger.write.commit import EMPTY, Content, Entry
from partwise.sources.bounds import bounds, reason_text
from partwise.sources.files import ListedFile, braces, format_of, fresh, growing, newest, set_apart, to_read, unfinished
from partwise.sources.sums import changed, plus


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.csv", "csv"), ("A.CSV", "csv"), ("a.csv.gz", "csv"), ("a.json", "json"), ("a.ndjson.gz", "json"), ("a.jsonl", "json"), ("a.parquet", "parquet"), ("a.parquet.gz", None), ("a.xls", None), ("csv", None)],
)  # fmt: skip
def test_the_ending_tells_the_format(name: str, kind: str | None) -> None:
    assert format_of(name) == kind


@pytest.mark.parametrize("name", ["_a.csv", ".a.csv", "x/_a.csv", "a.csv.tmp", "a.csv.PART", "a.csv~", "a.crdownload"])
def test_names_of_files_that_are_being_written(name: str) -> None:
    assert unfinished(name)


@pytest.mark.parametrize("name", ["a.csv", "x/a_.csv", "_x/a.csv", "tmp.csv", "a.tmp.csv"])
def test_names_of_files_that_are_ready(name: str) -> None:
    assert not unfinished(name)


@pytest.mark.parametrize(
    ("name", "pattern", "apart"),
    [
        ("landing/_temporary/a.csv", "landing/**/*.csv", True),
        ("landing/x/.hidden/a.csv", "landing/*/.hidden/*.csv", True),
        ("landing/_x/y/a.csv", "landing/*/*/a.csv", True),
        ("landing/x/a.csv", "landing/**/*.csv", False),
        ("_landing/a.csv", "_landing/*.csv", False),  # the user named it
        ("landing/_a.csv", "landing/*.csv", False),  # the name of a file tells another thing
    ],
)
def test_folders_that_are_none_of_ours(name: str, pattern: str, apart: bool) -> None:
    assert set_apart(name, pattern) is apart


def test_the_newest_file_of_a_dimension() -> None:
    looks = {"a": ListedFile("a", 1, 5), "b": ListedFile("b", 1, 7)}
    a, b = TakenFile(1, "a", 1, 5, "h"), TakenFile(2, "b", 1, 7, "h")
    assert newest(looks, {}) == ({"b": looks["b"]}, {})
    assert newest(looks, {"a": a, "b": b}) == ({"b": looks["b"]}, {"b": b})
    again = {**looks, "a": ListedFile("a", 1, 9)}
    assert newest(again, {"a": a, "b": b}) == ({"a": again["a"]}, {"b": b})
    assert newest({"a": looks["a"]}, {"a": a, "b": b}) == ({}, {"b": b})  # b disappeared
    assert newest({}, {"b": b})[0] == {}


def test_only_what_looks_different_is_read() -> None:
    known = {"a": TakenFile(1, "a", 10, 5, "h"), "b": TakenFile(2, "b", 10, 5, "h", "retracted")}
    looks = [ListedFile("a", 10, 5), ListedFile("b", 10, 6), ListedFile("c", 1, 1)]
    assert [f.name for f in to_read(looks, known)] == ["b", "c"]
    assert [f.name for f in to_read([ListedFile("a", 11, 5)], known)] == ["a"]


def test_files_that_change_between_two_looks_are_growing() -> None:
    young = [ListedFile("a", 1, 99_500_000_000), ListedFile("b", 1, 99_500_000_000), ListedFile("c", 1, 99_500_000_000)]
    assert fresh([*young, ListedFile("old", 1, 98_000_000_000)], 1.0, 100.0) == young
    assert growing(young, {"a": young[0], "b": ListedFile("b", 2, 99_500_000_000)}) == {"b", "c"}


def test_braces_as_shells_read_them() -> None:
    assert list(braces("a/{b,c}/*.{csv,json}")) == ["a/b/*.csv", "a/b/*.json", "a/c/*.csv", "a/c/*.json"]
    assert list(braces("a/{b}.csv")) == ["a/{b}.csv"]


hashes = st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))


def _digest(rows: list[tuple[int, int]]) -> str:
    return f"{len(rows)}:{sum(a for a, _ in rows) % 2**64:016x}{sum(b for _, b in rows) % 2**64:016x}"


@given(st.lists(hashes), st.lists(hashes), st.data())
def test_digests_follow_rows_that_come_and_go(
    held: list[tuple[int, int]], new: list[tuple[int, int]], data: st.DataObject
) -> None:
    gone = data.draw(st.lists(st.sampled_from(held), unique=True)) if held else []
    rest = list(held)
    for row in gone:
        rest.remove(row)
    found = changed({0: Content(len(held), _digest(held))}, {0: _digest(new)}, {0: _digest(gone)})
    assert found[0].digest == _digest([*rest, *new])
    assert found[0].rows == len(rest) + len(new)
    assert plus(_digest(held), _digest(held), -1) == EMPTY.digest


def test_more_rows_cannot_go_than_there_were() -> None:
    with pytest.raises(ValueError, match="do not agree"):
        changed({}, {}, {3: _digest([(1, 1)])})


def test_bounds_count_from_what_was_seen_before() -> None:
    found = bounds(100_000_000, 50.0, 60, 10, 7)
    assert (found.oldest, found.newest, found.floor) == (40_000_000, 60_000_000, 7)
    assert bounds(None, 50.0, 60, None, None).oldest is None
    assert reason_text(5, found, 60, "t") == "older than late.accept (1 minute)"
    assert reason_text(7, found, 60, "t") == "before the first part that is kept (1970-01-01T00:07)"


def test_an_entry_keeps_its_delivery_through_json() -> None:
    import json

    taken = TakenFile(3, "a b.csv", 1, 2**60, "h", "loaded", -5, 7)
    delivery = Delivery((taken,), (1, 2), "batch", ("old",), -1, 3, "origin", 9)
    entry = Entry("m", 0, "f", None, parts={1: EMPTY}, delivery=delivery)
    assert Entry.from_json(json.loads(json.dumps(entry.to_json()))) == entry
    older = entry.to_json()
    del older["delivery"]
    assert Entry.from_json(older).delivery is None
