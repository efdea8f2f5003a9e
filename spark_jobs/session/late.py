"""A session that starts when it is first used: what finds nothing to compute starts no JVM."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class LateSession:
    """Stands in for a session, which `start` makes at the first use of any of its attributes, in whatever thread."""

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._session: SparkSession | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._started(), name)

    def _started(self) -> SparkSession:
        with self._lock:
            if self._session is None:
                self._session = self._start()
            return self._session


def late(start: Callable[[], SparkSession]) -> SparkSession:
    return cast("SparkSession", LateSession(start))
