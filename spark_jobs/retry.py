"""Tells whether Spark refused a query or was not there to answer.

The first is recorded as a failure of the part; the second says nothing about the part, so the step just ends
and is tried again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from partwise.object_store import explained, meaning
from partwise.storage.errors import StoreProblem

_T = TypeVar("_T")

#: Whatever Spark may raise. The second is a Java exception that PySpark has no class for: a task that failed for
#: good, a file that cannot be read, the wrapper around an error inside a broadcast.
SPARK_ERRORS = (PySparkException, Py4JJavaError)

#: Seconds before the second and the third try of what Spark was not there for.
PAUSES = (1.0, 5.0)

_CODES = {"UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED", "ABORTED"}
_CLASSES = ("INVALID_HANDLE", "RETRIES_EXCEEDED", "INVALID_CURSOR", "NO_ACTIVE_SESSION", "SESSION_CHANGED")
_CONDITION = re.compile(r"^\[([A-Z][A-Z0-9_.]+)\]")
#: Conditions that may be gone the next time.
_UNSURE = ("INTERNAL_ERROR", "FAILED_READ_FILE", "CANNOT_READ", "CONNECT", "TASK_", "UNABLE_TO", "FAILED_RENAME")
_TEXTS = (
    "SparkContext was shut down",
    "stopped SparkContext",
    "Connection refused",
    "failed to connect to all addresses",
    "ExecutorLostFailure",
    "[OPERATION_CANCELED]",  # its task was stopped: that says nothing about the query
)


def is_infrastructure(why: BaseException | None) -> bool:
    """Whether the driver, the connection or an executor was lost; causes are looked at, too."""
    while why is not None:
        if type(why).__name__ == "RetriesExceeded" or type(why).__module__.partition(".")[0] == "grpc":
            return True
        if isinstance(why, StoreProblem) or (isinstance(why, SPARK_ERRORS) and _says_so(why)):
            return True
        why = why.__cause__
    return False


def _says_so(why: PySparkException | Py4JJavaError) -> bool:
    code = getattr(getattr(why, "_grpc_status_code", None), "name", "")
    condition = (why.getCondition() if isinstance(why, PySparkException) else None) or ""
    text = str(why)
    return code in _CODES or condition.startswith(_CLASSES) or any(one in text for one in _TEXTS) or _store_said(text)


def _store_said(text: str) -> bool:
    """Whether Hadoop's connector could not reach the object store: that says nothing about the query."""
    return "s3a" in text and meaning(text) is not None


def is_certain(why: BaseException | None) -> bool:
    """Whether Spark would say the same each time: it names what is wrong with the query, or with a value in the data.

    Its own faults (INTERNAL_ERROR) and trouble with files are no such thing.
    """
    while why is not None:
        if isinstance(why, SPARK_ERRORS):
            condition = why.getCondition() if isinstance(why, PySparkException) else None
            found = condition or next(iter(_CONDITION.findall(message_of(why))), "")
            return bool(found) and not found.startswith(_UNSURE) and not is_infrastructure(why)
        if type(why).__name__ == "BadSchema":
            return True
        why = why.__cause__
    return False


def patiently(work: Callable[[], _T]) -> _T:
    """Do it again, after a while, if Spark was not there."""
    for pause in PAUSES:
        try:
            return work()
        except Exception as why:
            if not is_infrastructure(why):
                raise
            time.sleep(pause)
    return work()


def sentence_of(why: Exception) -> str:
    """One or two sentences for people, whatever went wrong."""
    if isinstance(why, SPARK_ERRORS) and _store_said(str(why)):
        return explained(_bucket_in(str(why)), str(why))
    if isinstance(why, StoreProblem):
        return str(why)
    if isinstance(why, SPARK_ERRORS) or is_infrastructure(why):
        text = message_of(why).split("\n")[0][:500]
        return f"Spark is unavailable: {text}" if is_infrastructure(why) else text
    return str(why) or type(why).__name__


def _bucket_in(text: str) -> str:
    found = re.search(r"s3a://([^/\s:;,]+)", text)
    return f"s3://{found[1]}" if found else "s3://"


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
