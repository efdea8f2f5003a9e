"""Tells whether Spark refused a query or was not there to answer.

The first is recorded as a failure of the part; the second says nothing about the part, so the step just ends
and is tried again.
"""

from __future__ import annotations

from pyspark.errors import PySparkException

_CODES = {"UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED", "ABORTED"}
_CLASSES = ("INVALID_HANDLE", "RETRIES_EXCEEDED", "INVALID_CURSOR", "NO_ACTIVE_SESSION", "SESSION_CHANGED")
_TEXTS = (
    "SparkContext was shut down",
    "stopped SparkContext",
    "Connection refused",
    "failed to connect to all addresses",
    "ExecutorLostFailure",
)


def is_infrastructure(why: BaseException | None) -> bool:
    """Whether the driver, the connection or an executor was lost; causes are looked at, too."""
    while why is not None:
        if type(why).__name__ == "RetriesExceeded" or type(why).__module__.partition(".")[0] == "grpc":
            return True
        if isinstance(why, PySparkException) and _says_so(why):
            return True
        why = why.__cause__
    return False


def _says_so(why: PySparkException) -> bool:
    code = getattr(getattr(why, "_grpc_status_code", None), "name", "")
    condition = why.getCondition() or ""
    return code in _CODES or condition.startswith(_CLASSES) or any(text in str(why) for text in _TEXTS)
