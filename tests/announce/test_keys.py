"""Keys: readable, few, and covering everything."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partwise.announce import coalesced, keys_of, parse_key
from partwise.announce.keys import joined, same_time
from partwise.parts import Parts, Range

TEN = 29_584_800  # 2026-04-02T00:00 in minutes


def test_a_thousand_missing_parts_are_one_key() -> None:
    assert keys_of(Parts.of((TEN, TEN + 999)), 60) == ["2026-04-02T00:00..2026-04-02T16:39"]


def test_a_part_and_a_range_are_written_as_people_write_them() -> None:
    assert keys_of(Parts.of((TEN, TEN), (TEN + 5, TEN + 6)), 60) == [
        "2026-04-02T00:00",
        "2026-04-02T00:05..2026-04-02T00:06",
    ]


def test_the_widest_gaps_stay() -> None:
    parts = Parts.single(0, 2, 4, 100, 102, 500)
    assert coalesced(parts, 3) == [Range(0, 4), Range(100, 102), Range(500, 500)]
    assert coalesced(parts, 1) == [Range(0, 500)]


@given(st.sets(st.integers(0, 200), min_size=1), st.integers(1, 5))
def test_few_ranges_cover_all_and_end_at_parts(found: set[int], most: int) -> None:
    parts = Parts.single(*found)
    spans = coalesced(parts, most)
    assert len(spans) == min(most, len(parts.ranges))
    assert not parts - Parts.of(*spans)
    assert all(span.lo in parts and span.hi in parts for span in spans)
    for text, span in zip(keys_of(parts, 60, most), spans, strict=True):
        assert parse_key(text, 60) == span
        assert len(text) <= 250


@given(st.integers(-50, 50), st.integers(0, 30), st.sampled_from([60, 300, 3600]), st.sampled_from([60, 300, 3600]))
def test_other_lengths_cover_the_same_time(lo: int, more: int, length: int, other: int) -> None:
    span = same_time(Range(lo, lo + more), length, other)
    assert span.lo * other <= lo * length < (span.lo + 1) * other
    assert span.hi * other < (lo + more + 1) * length <= (span.hi + 1) * other


def test_reasons_are_said_once_and_stay_short() -> None:
    assert joined(["late rows in m[10:05]", "late rows in m[10:05]", "new view"]) == "late rows in m[10:05]; new view"
    assert len(joined(str(n) * 30 for n in range(100))) == 200
