"""Tells whether Spark refused a query or was not there to answer.

The first is recorded as a failure of the part; the second says nothing about the part, so the step just ends
and is tried again.
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

#: Whatever Spark may raise. The second is a Java exception that PySpark has no class for: a task that failed for
#: good, a file that cannot be read, the wrapper around an error inside of a broadcast.
SPARK_ERRORS = (PySparkException, Py4JJavaError)

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
        if isinstance(why, SPARK_ERRORS) and _says_so(why):
            return True
        why = why.__cause__
    return False


def _says_so(why: PySparkException | Py4JJavaError) -> bool:
    code = getattr(getattr(why, "_grpc_status_code", None), "name", "")
    condition = (why.getCondition() if isinstance(why, PySparkException) else None) or ""
    return code in _CODES or condition.startswith(_CLASSES) or any(text in str(why) for text in _TEXTS)


def message_of(why: Exception) -> str:
    """What Spark says, without the stack of its JVM."""
    if isinstance(why, Py4JJavaError):
        return _said(why.java_exception)
    return str(why).split("\n\nJVM stacktrace")[0].strip()


def _said(java: Any) -> str:
    """Of an exception and its causes the first message with an error condition, which is Spark's; else the innermost."""
    said = java.toString()
    while java is not None:
        said = java.getMessage() or java.toString()
        if said.startswith("["):
            break
        java = java.getCause()
    return str(said).strip()
