"""How fresh views are under load, by the order of steps: a simulation with the real rule, without Spark and without waiting.

    python benchmarks/bench_urgency.py [--minutes 240] [--views 40]

Every minute each view gets a new part; of some views late rows make an older one stale. Two steps run at once, and a step computes
everything that is due of its view, at a fixed cost and a cost for each part. Load is the work that comes in, if every part were a
step of its own, over what two workers can do. Compared are a fixed order, waiting time alone, and deadlines.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from partwise.parts import Range
from partwise.plan.model import Step
from partwise.plan.urgency import first_of_each

SLOTS = 2
ALLOWED = (60.0, 120.0, 300.0, 600.0, 900.0)
Order = Callable[[list[Step], dict[str, float], float], list[Step]]

ORDERS: dict[str, Order] = {
    "fixed": lambda steps, allowed, now: sorted(steps, key=lambda step: step.table),
    "waiting time": lambda steps, allowed, now: first_of_each(steps),
    "deadlines": first_of_each,
}


@dataclass
class View:
    """`missing` and `stale` are times at which parts became due."""

    name: str
    allowed: float
    seconds: float  # of a step with one part
    missing: list[float] = field(default_factory=list)
    stale: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)  # of every part, until it was published
    busy: bool = False

    def steps(self) -> list[Step]:
        found = []
        if self.missing:
            found.append(Step(self.name, Range(0, 0), "missing", "", min(self.missing)))
        if self.stale:
            found.append(Step(self.name, Range(0, 0), "stale", "", min(self.stale)))
        return found


def simulate(order: Order, load: float, fixed: float, count: int, minutes: int, seed: int = 1) -> list[View]:
    """Second by second. `fixed`: the share of a step's cost that does not depend on its parts."""
    rng = Random(seed)
    weights = [rng.uniform(0.5, 1.5) for _ in range(count)]
    scale = load * SLOTS * 60 / sum(weights) / 1.1  # a tenth of the parts are computed once more
    views = [View(f"v{n:03}", ALLOWED[n % len(ALLOWED)], scale * weights[n]) for n in range(count)]
    allowed = {view.name: view.allowed for view in views}
    by_name = {view.name: view for view in views}
    running: list[tuple[float, View, list[float]]] = []
    for now in range(minutes * 60):
        for view in views if now % 60 == 0 else ():
            view.missing.append(float(now))
            if rng.random() < 0.1:
                view.stale.append(float(now))
        for ends, view, parts in [item for item in running if item[0] <= now]:
            view.waits += [ends - since for since in parts]
            view.busy = False
        running = [item for item in running if item[0] > now]
        ready = [step for view in views if not view.busy for step in view.steps()]
        for step in order(ready, allowed, float(now)) if len(running) < SLOTS else ():
            view = by_name[step.table]
            if len(running) == SLOTS or view.busy:
                continue
            parts, view.missing, view.stale = [*view.missing, *view.stale], [], []
            cost = view.seconds * (fixed + (1 - fixed) * len(parts))
            view.busy = True
            running.append((now + cost, view, parts))
    for view in views:  # what nobody came to has waited as well
        view.waits += [minutes * 60 - since for since in (*view.missing, *view.stale)]
    return views


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--minutes", type=int, default=240)
    ask.add_argument("--views", type=int, default=40)
    asked = ask.parse_args()
    told: list[str] = []
    print("parts | load | order | on time % | mean s | worst view's mean s | longest s")
    print("---|---|---|---|---|---|---")
    for size, fixed in (("small", 0.9), ("heavy", 0.3)):
        for load in (0.8, 1.2, 2.0):
            for name, order in ORDERS.items():
                views = simulate(order, load, fixed, asked.views, asked.minutes)
                waits = [wait for view in views for wait in view.waits]
                met = sum(wait <= view.allowed for view in views for wait in view.waits) / len(waits)
                worst = max(sum(view.waits) / len(view.waits) for view in views)
                mean = sum(waits) / len(waits)
                print(f"{size} | {load} | {name} | {100 * met:.0f} | {mean:.0f} | {worst:.0f} | {max(waits):.0f}")
                if name == "waiting time" and load == 1.2:
                    goal = f"worst view {worst / mean:.1f} x the mean (goal: at most 2, where no view has a deadline)"
                    told.append(f"{size} parts at load {load}: {goal}")
    print("\n".join(told))


if __name__ == "__main__":
    main()
