"""Events: `ready/<view>` with a key for each range of parts that became ready."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from airflow.sdk import Asset

log = logging.getLogger(__name__)


def ready(view: str) -> Asset:
    return Asset(name=f"ready/{view}", uri=f"partwise://ready/{view}")


def emit(context: Any, keys: Mapping[str, Mapping[str, str]]) -> None:
    """Let the task that runs now emit these keys (with their reasons) by view when it succeeds.

    The outlets are set here and not where the task is defined: a declared outlet without keys would still emit
    one event, and an event for an asset that is not an outlet is ignored without a word.
    """
    task = context["task"]
    task.outlets = []
    for view, reasons in keys.items():
        asset = ready(view)
        task.outlets.append(asset)
        event = context["outlet_events"][asset]
        event.add_partitions(list(reasons))
        event.extra = {"reasons": dict(reasons)}
        for key, reason in reasons.items():
            log.info("%s[%s] is ready: %s", view, key, reason)
    if not keys:
        log.info("nothing became ready")
