"""Which times a changed dimension concerns, against what is valid at every single second."""

from __future__ import annotations

from random import Random

from partwise.parts import FOREVER, Range
from partwise.sources.validity import EVER, MOST, Validity, changed_ranges

SECOND = 1_000_000
Content = dict[tuple[str, int], int]  # (key, second from which on) -> what the rows hold


def rows(before: Content, after: Content) -> list[Validity]:
    return [
        Validity((key,), EVER if at < 0 else at * SECOND, (key, at) in before, (key, at) in after, before.get((key, at)) != after.get((key, at)))
        for key, at in sorted(before.keys() | after.keys())
    ]  # fmt: skip


def valid(content: Content, key: str, second: int) -> tuple[int, int] | None:
    # -1 stands for "since ever".
    since = max((at for k, at in content if k == key and (at < 0 or at <= second)), default=None)
    return None if since is None else (since, content[key, since])


def test_exactly_the_times_at_which_something_else_is_valid() -> None:
    rng = Random(1)
    for _ in range(400):
        before = {(rng.choice("ab"), rng.randrange(-1, 12)): rng.randrange(2) for _ in range(rng.randrange(5))}
        after = dict(before)
        for _ in range(rng.randrange(4)):
            at = (rng.choice("ab"), rng.randrange(-1, 12))
            if rng.random() < 0.5:
                after.pop(at, None)
            else:
                after[at] = rng.randrange(2)
        found = changed_ranges(rows(before, after))
        for second in range(-3, 16):
            different = any(valid(before, key, second) != valid(after, key, second) for key in "ab")
            assert any(lo <= second <= hi for lo, hi in found) == different, (before, after, second)


def test_a_row_that_comes_in_between_leaves_the_time_before_it_alone() -> None:
    before = {("eur", 10): 1}
    assert changed_ranges(rows(before, before)) == ()
    assert changed_ranges(rows(before, {**before, ("eur", 50): 2})) == (Range(50, FOREVER),)
    assert changed_ranges(rows({**before, ("eur", 80): 3}, {**before, ("eur", 50): 2, ("eur", 80): 3})) == (
        Range(50, 79),
    )
    assert changed_ranges(rows({}, {("eur", -1): 2})) == (Range(-FOREVER, FOREVER),)


def test_very_many_ranges_are_told_as_one() -> None:
    after = {(f"k{n}", n * 10): 1 for n in range(2 * MOST)} | {(f"k{n}", n * 10 + 1): 0 for n in range(2 * MOST)}
    before = {at: value for at, value in after.items() if at[1] % 10}
    found = changed_ranges(rows(before, after))
    assert found == (Range(0, (2 * MOST - 1) * 10),)


def test_parts_of_seconds_belong_to_their_second() -> None:
    row = Validity(("a",), 1_500_000, False, True, True)
    following = Validity(("a",), 3_000_000, True, True, False)
    assert changed_ranges([row, following]) == (Range(1, 2),)
