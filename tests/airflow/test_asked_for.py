"""Manual runs, on real Spark: what somebody requested is computed, or the task says why it is not."""

from __future__ import annotations

import pytest

from tests.airflow.worker import Airflow

pytestmark = pytest.mark.spark

DEFINITIONS = """
source: s
part: 1 minute
time: at
columns: {at: timestamp, x: int}
files: landing/*.csv
---
view: v
part: 1 minute
update: SELECT SUM(x) AS x FROM s[j]
---
view: w
part: 1 minute
update: SELECT x + 1 AS s FROM v[j]
"""


def test_a_run_by_hand_does_not_end_well_without_what_was_asked_for(airflow: Airflow) -> None:
    """What the part requires exists, so the sensor lets it pass; but part of that is about to be computed again."""
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    airflow.land("a", (0, 1), (1, 2), (2, 0))
    for name in ("s", "v", "w"):
        airflow.tasks(name)
    airflow.land("late", (1, 10))
    airflow.tasks("s")
    minute = "2026-10-03T10:01"
    with pytest.raises(AirflowException) as why:
        airflow.tasks("w", part=minute)
    assert str(why.value) == f"w[{minute}] was requested and waits: v[{minute}] is stale"
    assert not isinstance(why.value, AirflowFailException), "it is tried again"
    airflow.tasks("v")
    airflow.tasks("w", part=minute)
    assert airflow.seen("w") == {0: [2], 1: [13]}
