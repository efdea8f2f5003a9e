"""Partwise in Airflow: views and sources become DAGs, the ledger decides what runs.

For DAGs of your own:

    from partwise_airflow import PartsSensor
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partwise_airflow.tasks.sensor import PartsSensor

__all__ = ["PartsSensor"]


def __getattr__(name: str) -> Any:
    # Imported when requested: stubs and the scheduler need only a part of this package.
    if name == "PartsSensor":
        from partwise_airflow.tasks.sensor import PartsSensor

        return PartsSensor
    raise AttributeError(name)
