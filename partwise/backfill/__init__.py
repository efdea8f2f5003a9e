"""Backfills: which parts somebody means, what they need first, what may follow, how long it will take.

Everything here is pure: the ledger is asked through `World`. Recording one is `partwise.ledger.records.backfills`,
carrying it out `spark_jobs.backfill`.
"""

from partwise.backfill.bar import about, bar
from partwise.backfill.estimate import Estimate, StepTime, estimate
from partwise.backfill.request import Asked, BadRange, World, ask, parse, served
from partwise.backfill.scope import closure, grown

__all__ = [
    "Asked",
    "BadRange",
    "Estimate",
    "StepTime",
    "World",
    "about",
    "ask",
    "bar",
    "closure",
    "estimate",
    "grown",
    "parse",
    "served",
]
