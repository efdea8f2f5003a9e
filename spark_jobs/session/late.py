"""A session that starts when it is first used: what finds nothing to compute starts no JVM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

    @property
    def is_started(self) -> bool:
        return self._session is not None

    def _started(self) -> SparkSession:
        with self._lock:
            if self._session is None:
                with _same_interrupt():
                    self._session = self._start()
            return self._session


@contextmanager
def _same_interrupt() -> Iterator[None]:
    """PySpark takes Ctrl-C for itself when it starts a driver: it would cancel the jobs of steps that are to finish."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def late(start: Callable[[], SparkSession]) -> SparkSession:
    return cast("SparkSession", LateSession(start))


def started(spark: SparkSession) -> SparkSession:
    """The session that a late one stands in for, started now if it is not yet; any other session as it is."""
    return spark._started() if isinstance(spark, LateSession) else spark
