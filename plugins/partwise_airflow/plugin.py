"""What Airflow loads at start: the listeners that note the reasons of runs and make tasks start quicker,
and the order of tasks by deadline."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from partwise_airflow.preload import Preload
from partwise_airflow.priority import EarliestDeadline
from partwise_airflow.tasks.notes import Notes


class PartwisePlugin(AirflowPlugin):
    name = "partwise"
    listeners = [Notes(), Preload()]  # noqa: RUF012  # Airflow's way to declare them
    priority_weight_strategies = [EarliestDeadline]  # noqa: RUF012
