"""Which files are merged: never twice in vain, always into files with parts of their own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partwise.storage import File
from partwise.upkeep.groups import groups


def files(*spans: tuple[int, int, int]) -> list[File]:
    return [File(f"f{n}", size, 1, lo, hi) for n, (lo, hi, size) in enumerate(spans)]


def names(found: list[tuple[File, ...]]) -> list[list[str]]:
    return [[file.path for file in group] for group in found]


def test_small_neighbours_go_together_up_to_the_target() -> None:
    some = files(*((n, n, 10) for n in range(10)))
    assert names(groups(some, lambda _: True, 50)) == [[f"f{n}" for n in range(5)], [f"f{n}" for n in range(5, 10)]]


def test_a_large_file_is_not_copied_for_a_few_small_ones() -> None:
    some = files((0, 9, 90), (10, 10, 2), (11, 11, 2))
    assert names(groups(some, lambda _: True, 100)) == [["f1", "f2"]]
    some = files((0, 9, 60), (10, 10, 20), (11, 11, 20))
    assert names(groups(some, lambda _: True, 100)) == [["f0", "f1", "f2"]]


def test_overlapping_files_go_together_whatever_their_size() -> None:
    assert names(groups(files((0, 99, 90), (50, 50, 1), (100, 100, 1)), lambda _: True, 91)) == [["f0", "f1"]]
    assert names(groups(files((0, 99, 300), (50, 50, 1)), lambda _: True, 100)) == [["f0", "f1"]]


def test_young_files_and_files_without_statistics_stay() -> None:
    some = [*files((0, 0, 1), (1, 1, 1), (2, 2, 1), (3, 3, 1)), File("foreign", 1)]
    assert names(groups(some, lambda file: file.path != "f1", 100)) == [["f2", "f3"]]


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 5), st.integers(1, 60)), max_size=40), st.data())
def test_groups_are_apart_and_worth_it(spans: list[tuple[int, int, int]], data: st.DataObject) -> None:
    some = files(*((lo, lo + wide, size) for lo, wide, size in spans))
    old = set(data.draw(st.lists(st.sampled_from([f.path for f in some])))) if some else set()
    found = groups(some, lambda file: file.path in old, 100)
    chosen = [file for group in found for file in group]
    assert len(chosen) == len({file.path for file in chosen})
    assert all(file.path in old for file in chosen)
    for group in found:
        assert len(group) > 1
        lo, hi = min(f.lo or 0 for f in group), max(f.hi or 0 for f in group)
        others = [f for f in some if f not in group]
        assert not [f for f in others if (f.lo or 0) <= hi and (f.hi or 0) >= lo], "another file reaches into it"
