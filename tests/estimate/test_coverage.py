"""Intervals hold what they promise: simulated populations, thousands of samples of each.

The truth is known, so every answered cell either covers it or does not. 6,000 keys in a stale part (rows
updated, missing and superfluous) and in a missing one, which is compared with a stand-in. Exact keys are the largest of
each part's inputs, as a helper of the product keeps them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from partwise.estimate.formula import Formula, TotalAt, average, evaluate
from partwise.estimate.interval import Interval, NoEstimate, Totals, estimate, student

KEYS, TRIALS, RATIO = 6_000, 1_200, 0.05
SUM, COUNT, AVERAGE = TotalAt(0), TotalAt(1), average(0, 1)


@dataclass(frozen=True)
class Population:
    """Values by part and key (0 where there is no row); `base` is what fresh parts are compared with."""

    fresh: np.ndarray
    base: np.ndarray

    @property
    def dirty(self) -> range:
        return range(self.fresh.shape[0])


def values(kind: str, random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    if kind == "mild":
        return random.gamma(4.0, 25.0, shape)
    if kind == "lognormal":
        return random.lognormal(3.0, 1.5, shape)
    return np.minimum(random.zipf(2.0, shape), 10_000).astype(float)


def population(kind: str, seed: int, stale: int = 1, missing: int = 1) -> Population:
    random = np.random.default_rng(seed)
    was = values(kind, random, (stale, KEYS)) * (random.random((stale, KEYS)) > 0.05)
    fresh = was.copy()
    new = values(kind, random, was.shape)
    change = random.random(was.shape)
    fresh = np.where((change < 0.10) | (was == 0), new, np.where(change < 0.115, 0.0, fresh))
    late = values(kind, random, (missing, KEYS)) * (random.random((missing, KEYS)) > 0.03)
    stand_in = values(kind, random, (missing, KEYS)) * (random.random((missing, KEYS)) > 0.03)
    return Population(np.vstack([fresh, late]), np.vstack([was, stand_in]))


def answers(
    found: Population, formula: Formula, keep: int, seed: int, trials: int = TRIALS, where: np.ndarray | None = None
) -> tuple[float, list[Interval | NoEstimate]]:
    """The truth, and what each of many samples says."""
    random = np.random.default_rng(seed)
    inside = np.ones(KEYS, bool) if where is None else where
    exact = np.zeros_like(found.fresh, bool)
    for p in found.dirty:
        exact[p, np.argsort(-found.fresh[p], kind="stable")[:keep]] = True
    most = [float((found.fresh[p] * ~exact[p]).max()) for p in found.dirty]
    # No key that is not exact holds more than this by now: what held more is compared with nothing.
    base = np.where(~exact & (found.base > np.array(most)[:, None]), 0.0, found.base)
    # By total: the value, and the number of rows.
    sides = [(found.fresh, base), ((found.fresh > 0).astype(float), (base > 0).astype(float))]
    d = [(new - old) * inside for new, old in sides]
    known = [float((x * exact).sum()) for x in d]
    rest = np.array([(x * ~exact).sum(axis=0) for x in d])  # over parts first, then squared
    bases = tuple(float((old * inside).sum()) for _, old in sides)
    largest = (tuple(most), (1.0,) * len(most))
    truth = [float((new * inside).sum()) for new, _ in sides]
    # One product for all trials: sums, sums of products, and how many keys differ.
    a, b = rest
    added = np.stack([a, b, a * a, a * b, b * b, (np.abs(rest).sum(axis=0) > 0).astype(float)], axis=1)
    sums = (random.random((trials, KEYS)) < RATIO).astype(float) @ added
    made = [
        estimate(
            formula,
            Totals(bases, (known[0], known[1]), (x, y), ((xx, xy), (xy, yy)), largest, round(n), ((0, 1),)),
            RATIO,
        )
        for x, y, xx, xy, yy, n in sums.tolist()
    ]
    right = evaluate(formula, truth)
    assert right is not None
    return right.value, made


def covered(truth: float, made: list[Interval | NoEstimate]) -> tuple[float, float]:
    """The share of answers that cover, and the share of cells that are answered."""
    given = [e for e in made if isinstance(e, Interval)]
    return sum(e.low <= truth <= e.high for e in given) / max(1, len(given)), len(given) / len(made)


@pytest.mark.parametrize("formula", [SUM, COUNT, AVERAGE], ids=["sum", "count", "avg"])
@pytest.mark.parametrize("kind, keep", [("mild", 100), ("lognormal", 300), ("zipf", 300)])
def test_answered_cells_cover_the_truth(kind: str, keep: int, formula: Formula) -> None:
    hits: list[float] = []
    total = 0
    for seed in range(3):
        truth, made = answers(population(kind, seed), formula, keep, seed)
        share, answered = covered(truth, made)
        total += round(answered * TRIALS)
        hits.append(share * answered * TRIALS)
    assert total >= TRIALS, "most of what can be answered is answered"
    assert 0.93 <= sum(hits) / total <= 0.97


@pytest.mark.parametrize("kind", ["mild", "lognormal", "zipf"])
def test_groups_cover_as_well(kind: str) -> None:
    found = population(kind, 7, stale=0)
    hits = cells = 0
    for group in range(2):
        truth, made = answers(found, SUM, 300, group, where=np.arange(KEYS) % 2 == group)
        given = [e for e in made if isinstance(e, Interval)]
        cells += len(given)
        hits += sum(e.low <= truth <= e.high for e in given)
    assert cells > TRIALS
    assert 0.93 <= hits / cells <= 0.97


@pytest.mark.parametrize("kind, keep", [("mild", 0), ("lognormal", 300), ("zipf", 300)])
def test_totals_are_unbiased(kind: str, keep: int) -> None:
    """Over all samples, those that are refused as well: within three standard errors of the mean."""
    found = population(kind, 3)
    for formula in (SUM, COUNT):
        random = np.random.default_rng(5)
        exact = np.zeros_like(found.fresh, bool)
        for p in found.dirty:
            exact[p, np.argsort(-found.fresh[p], kind="stable")[:keep]] = True
        fresh, base = (found.fresh, found.base) if formula is SUM else (found.fresh > 0, found.base > 0)
        d = fresh.astype(float) - base
        rest = (d * ~exact).sum(axis=0)
        sums = (random.random((4_000, KEYS)) < RATIO) @ rest
        values = base.sum() + (d * exact).sum() + sums / RATIO
        assert abs(values.mean() - fresh.sum()) <= 3 * values.std() / np.sqrt(len(values))


def test_without_exact_keys_skew_is_refused() -> None:
    for seed in range(3):
        _, made = answers(population("zipf", seed), SUM, 0, seed, 400)
        assert sum(isinstance(e, NoEstimate) for e in made) >= 0.99 * len(made)


def test_a_late_giant_outside_the_sample_is_never_missed() -> None:
    """It is in the inputs, so it is either exact, or its size is known and everything is refused."""
    found = population("mild", 1)
    found.fresh[0, 17] = 1e7
    truth, made = answers(found, SUM, 0, 1, 400)
    assert all(isinstance(e, NoEstimate) and e.why == "large-key" for e in made)
    truth, made = answers(found, SUM, 100, 1)
    share, answered = covered(truth, made)
    assert answered == 1
    assert 0.93 <= share <= 0.97


def test_a_retracted_giant_is_covered() -> None:
    """No key that is not exact holds so much by now, so its old rows are compared with nothing."""
    found = population("mild", 2)
    found.base[0, 17], found.fresh[0, 17] = 1e7, 0.0
    share, answered = covered(*answers(found, SUM, 100, 2))
    assert answered == 1
    assert 0.93 <= share <= 0.97


def test_variances_of_parts_must_not_be_added() -> None:
    """The trap: parts that change alike, each key sampled in all of them or in none."""
    random = np.random.default_rng(0)
    base = np.repeat(values("mild", random, (1, KEYS)), 4, axis=0)
    found = Population(base * 1.6, base)
    share, answered = covered(*answers(found, SUM, 300, 0))
    assert answered > 0.5
    assert 0.93 <= share <= 0.97


def test_confidence_widens_the_interval() -> None:
    assert student(0.95, 10_000) == pytest.approx(1.9602, abs=1e-3)
    assert student(0.95, 29) == pytest.approx(2.0452, abs=1e-3)
    assert student(0.99, 40) == pytest.approx(2.7045, abs=2e-3)
