"""`python -m spark_jobs.session.keeper`: keeps a Spark driver for others, and ends it when nobody has used it for long.

What it is to keep comes as JSON on standard input (see `background`). The JVM is this process's child and reads from a pipe to
it: it ends when this process does, also by `kill -9`. A query whose client has died is interrupted by the driver.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from partwise.serve.supervise.answers import answers
from partwise.serve.supervise.child import free_port
from spark_jobs.session import background
from spark_jobs.session.background import Driver

#: Seconds between looks, and seconds after which a query that nobody waits for any more is interrupted.
LOOK = 0.5
FORSAKEN = "20s"
PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"


def main() -> int:
    asked = json.loads(sys.stdin.read())
    where, keep = Path(asked["folder"]), float(asked["keep"])
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    token, port = secrets.token_urlsafe(32), free_port()
    # Not as a setting of Spark: those can be read by everybody who sees the command.
    os.environ["SPARK_CONNECT_AUTHENTICATE_TOKEN"] = token
    spark = _started(asked["settings"], port)
    service = spark._jvm.org.apache.spark.sql.connect.service.SparkConnectService
    while not answers(f"sc://127.0.0.1:{port}", seconds=1):
        time.sleep(0.02)
    driver = Driver(asked["key"], os.getpid(), background.birth(os.getpid()), port, token, time.time(), keep)
    background.write(where, driver)
    _keep(where / f"{driver.key}.json", driver, service, over)
    return 0


def _started(settings: dict[str, str], port: int) -> Any:
    from pyspark.sql import SparkSession

    more = {
        "spark.plugins": PLUGIN,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.execute.manager.detachedTimeout": FORSAKEN,
        "spark.connect.execute.manager.maintenanceInterval": "2s",
    }
    builder = SparkSession.builder.appName("partwise driver")
    for name, value in {**settings, **more}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _keep(file: Path, driver: Driver, service: Any, over: threading.Event) -> None:
    """Until it is told to end, loses its JVM or its note, or nothing has run in it for long."""
    used = time.time()
    while not over.wait(LOOK):
        try:
            if service.listActiveExecutions().isRight():
                used = time.time()
            used = max(used, file.stat().st_mtime)
        except Exception:  # the JVM is gone, or somebody removed the note: nobody would find it again
            break
        if time.time() - used < driver.keep:
            continue
        with background.locked(file.parent, driver.key, wait=False) as mine:
            # Whoever holds the lock is about to use it.
            if mine and time.time() - file.stat().st_mtime >= driver.keep:
                file.unlink(missing_ok=True)
                return
    if background.read(file) == driver:
        file.unlink(missing_ok=True)


if __name__ == "__main__":
    code = main()
    os._exit(code)  # nothing to wait for: the JVM goes with the pipe
