"""Takes in what arrives: files and Delta tables of others, row by row into parts, exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_jobs.ingest.api import ingest, quarantined, release, retract
    from spark_jobs.ingest.result import Ingested

__all__ = ["Ingested", "ingest", "quarantined", "release", "retract"]


def __getattr__(name: str) -> Any:
    # Spark is imported when something is loaded: whether there is anything to load is found out without it.
    if name not in __all__:
        raise AttributeError(name)
    from spark_jobs.ingest import api, result

    return getattr(result if name == "Ingested" else api, name)
