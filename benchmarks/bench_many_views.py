"""Many views with one new part a minute each: does a backlog grow, what does a run cost, how many views would hold?

The product is started as `make run` starts it, with a source and so many views that read it. A part lands each
minute. The views are behind by at most one part (the one that is being computed), unless there are too many of them.
Then nothing happens for two minutes: that is the fixed part. At last the largest number that should hold, by what a run
costs and the cores that there are, is tried as well, then more if it holds and less if it does not.

    python benchmarks/bench_many_views.py [--views 50] [--minutes 10] [--only]

It takes about half an hour; `--only` leaves out the search for the largest number. With `--goals` everything that is expected of
many views is measured, one after the other: 10 and 50 views in one job (bench_together.py), 20 windows of
one family (bench_sharing.py), how fresh views are at load 0.8, 1.2 and 2.0 (bench_urgency.py), and 90 views a minute in the
product, as above.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from served import SOURCE, VIEW, Product

IDLE_MINUTES = 2
#: Minutes of each try for the largest number, and how many tries.
TRY_MINUTES, TRIES = 5, 3


@dataclass(frozen=True)
class Load:
    """One number of views, minute by minute: by how many parts they were behind on average, and at most."""

    views: int
    mean: tuple[float, ...]
    most: tuple[int, ...]
    runs: int
    spent: Mapping[str, float]

    @property
    def holds(self) -> bool:
        """No more behind at the end than after the first minutes. Views that fall behind take several parts at once."""
        half = len(self.mean) // 2
        grows = statistics.mean(self.mean[half:]) - statistics.mean(self.mean[:half] or self.mean)
        return grows < 0.5 and self.most[-1] <= 2


def many(views: int, minutes: int, only: bool) -> None:
    cores = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder, Product(Path(folder), definitions(views)) as it:
        minute = int(time.time() // 60) - 1000
        it.land(minute)
        settle(it, views)
        minute, found = loaded(it, minute, views, minutes)
        settle(it, views)
        idle = resting(it)
        print(f"idle with {views} views: {shown(idle)} CPU seconds a minute")
        each = told(found, minutes, idle)
        if only or each <= 0:
            return
        held, failed = (views, None) if found.holds else (0, views)
        number = int((60 * cores - sum(idle.values())) / each * 0.9)
        for _ in range(TRIES):
            if number <= held or (failed is not None and number >= failed):
                number = next_try(held, failed)
            it.define(definitions(number))
            settle(it, number)
            print(f"-- {number} views")
            minute, found = loaded(it, minute, number, TRY_MINUTES)
            told(found, TRY_MINUTES, idle)
            held, failed = (number, failed) if found.holds else (held, number)
            number = next_try(held, failed)
        print(f"the largest number that held: {held or 'none of these'}; that did not: {failed or 'none of these'}")


def goals(views: int, minutes: int) -> None:
    """Each in a process of its own, so that none is warmed up by another."""
    here = Path(__file__).parent
    for script, *given in (
        ("bench_together.py", "10", "50"),
        ("bench_sharing.py",),
        ("bench_urgency.py",),
        ("bench_many_views.py", "--views", str(views), "--minutes", str(minutes), "--only"),
    ):
        print(f"== {' '.join([script, *given])}", flush=True)
        subprocess.run([sys.executable, str(here / script), *given], check=False)


def next_try(held: int, failed: int | None) -> int:
    """Half way between what held and what did not, or a quarter more than what held."""
    return held * 5 // 4 if failed is None else (held + failed) // 2


def definitions(views: int) -> str:
    return SOURCE + "".join(VIEW % (name, "m") for name in names(views))


def names(views: int) -> list[str]:
    return [f"v{n}" for n in range(views)]


def settle(it: Product, views: int) -> None:
    """Until Airflow shows exactly these, and all that is there is computed."""
    wanted = views + 4  # the source and three DAGs of Partwise's own

    def quiet() -> bool:
        shown = it.ask("dags?limit=1&tags=partwise")["total_entries"]
        found = it.parts()
        return shown == wanted and all(found.get(v, 0) == found.get("m", 0) for v in names(views))

    it.wait(quiet, 900)


def resting(it: Product) -> dict[str, float]:
    """CPU seconds of a minute in which nothing lands: looks at the source, the reconciler, and everybody's own rounds."""
    before = it.spent()
    time.sleep(60 * IDLE_MINUTES)
    return {name: each / IDLE_MINUTES for name, each in difference(it.spent(), before).items()}


def loaded(it: Product, minute: int, views: int, minutes: int) -> tuple[int, Load]:
    """A part a minute. Returns the last minute that landed."""
    before, had = it.spent(), runs(it, views)
    mean, most = [], []
    for number in range(1, minutes + 1):
        minute += 1
        it.land(minute)
        time.sleep(60)
        found = it.parts()
        behind = [found["m"] - found.get(v, 0) for v in names(views)]
        mean.append(sum(behind) / views)
        most.append(max(behind))
        print(f"minute {number}: {found['m']} source parts; views are behind by {mean[-1]:.1f}, at most {most[-1]}")
    spent = difference(it.spent(), before)
    return minute, Load(views, tuple(mean), tuple(most), runs(it, views) - had, spent)


def runs(it: Product, views: int) -> int:
    return sum(it.ask(f"dags/{v}/dagRuns?state=success&limit=1")["total_entries"] for v in names(views))


def difference(after: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    return {name: value - before.get(name, 0.0) for name, value in after.items()}


def told(found: Load, minutes: int, idle: Mapping[str, float]) -> float:
    """Prints what was found. Returns CPU seconds of a run without the fixed part."""
    print(f"spent: {shown(found.spent)} CPU seconds")
    if not found.runs:
        print("no run has ended")
        return 0.0
    all_of_it = sum(found.spent.values())
    each = (all_of_it - minutes * sum(idle.values())) / found.runs
    print(
        f"{found.runs} runs in {minutes} minutes ({found.views * minutes} would be one per part); {each:.2f} CPU seconds "
        f"each, and {sum(idle.values()):.0f} a minute besides; {all_of_it / 60 / minutes:.2f} cores busy"
    )
    print(f"{found.views} views: {'no growing backlog' if found.holds else 'the backlog grows'}")
    return each


def shown(spent: Mapping[str, float]) -> str:
    parts = [f"{name} {value:.1f}" for name, value in sorted(spent.items(), key=lambda item: -item[1]) if value >= 0.05]
    return f"{sum(spent.values()):.1f} ({', '.join(parts)})"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--views", type=int)
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--goals", action="store_true", help="measure everything that is expected of many views")
    parser.add_argument("--only", action="store_true", help="no search for the largest number that holds")
    given = parser.parse_args()
    if given.goals:
        goals(given.views or 90, given.minutes)
    else:
        many(given.views or 50, given.minutes, given.only)
