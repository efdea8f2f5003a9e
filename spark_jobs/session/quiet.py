"""Starts the JVM without the warning that it prints on every start because Spark asks for the vector module."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping

from pyspark import SparkConf, SparkContext  # noqa: TID251 - the JVM is started here, before any session
from pyspark.java_gateway import launch_gateway

_NOISE = b"WARNING: Using incubator modules"


def start(settings: Mapping[str, str]) -> None:
    """Start the JVM of this process, unless it runs already. All else that it says goes to standard error as before."""
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    reading, writing = os.pipe()
    threading.Thread(target=_pass_on, args=(reading,), daemon=True, name="stderr of the JVM").start()
    try:
        gateway = launch_gateway(  # type: ignore[no-untyped-call]
            SparkConf(loadDefaults=False).setAll(list(settings.items())), {"stderr": writing}
        )
    finally:
        os.close(writing)
    SparkContext._ensure_initialized(gateway=gateway)


def _pass_on(reading: int) -> None:
    with os.fdopen(reading, "rb", buffering=0) as lines:
        rest = b""
        while chunk := lines.read(1 << 16):
            *whole, rest = (rest + chunk).split(b"\n")
            _write(b"".join(line + b"\n" for line in whole if not line.startswith(_NOISE)))
        _write(rest)


def _write(said: bytes) -> None:
    if said:
        try:
            os.write(2, said)
        except OSError:
            return  # nobody listens any more
