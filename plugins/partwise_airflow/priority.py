"""Which task comes first where views have `freshness`: the one of the run with the earliest deadline.

Airflow sorts by weight, then by logical date, which runs that assets trigger do not have. A weight is a whole number of 32 bits
that is settled when a task instance is made, and a strategy has no parameters. So a task's own `priority_weight` carries how far
behind its view may be, and the name of its run when that began.
"""

from __future__ import annotations

import re
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.task.priority_strategy import PriorityWeightStrategy

if TYPE_CHECKING:
    from airflow.models.taskinstance import TaskInstance

#: Seconds since 1970: 2026. Weights are positive and below `TOP` for 34 years from then on.
EPOCH = 1_767_225_600
TOP = 2**30
_BEGAN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")


class EarliestDeadline(PriorityWeightStrategy):
    """Weight falls with the deadline, so that the earliest is the heaviest."""

    def get_weight(self, ti: TaskInstance) -> int:
        assert ti.task is not None
        return weight(int(ti.task.priority_weight), str(ti.run_id), time.time())


def weight(own: int, run: str, now: float) -> int:
    """`own` is `TOP` less the freshness. A run without a time in its name begins now."""
    found = _BEGAN.search(run)
    began = datetime.fromisoformat(found[0].replace("Z", "+00:00")).timestamp() if found else now
    return max(1, own - max(0, int(began - EPOCH)))


def by_deadline(freshness: float) -> dict[str, Any]:
    """Arguments of tasks whose results may be so many seconds behind."""
    return {"weight_rule": f"{__name__}.EarliestDeadline", "priority_weight": TOP - int(min(freshness, TOP // 2))}


def before_deadlines(rank: int) -> dict[str, Any]:
    """Arguments of tasks that come before all views, the higher rank first."""
    return {"weight_rule": "absolute", "priority_weight": TOP + rank}
