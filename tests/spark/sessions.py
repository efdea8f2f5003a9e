"""The Spark session of a test run: a driver in this process, or a client of a Spark Connect server.

Tests run hundreds of queries over a handful of rows each. What pays for large data (generated code, plans made
again while they run, the second compiler of the JVM) costs them most of their time, so it is off; Spark computes the same
without. The commands in the documentation, the cluster and the tests over Connect run with everything on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from partwise.object_store import Access, spark_settings
from spark_jobs.session.connect import server
from spark_jobs.session.session import OBJECT_STORE, jars_folder, java_options, session

SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def small() -> dict[str, str]:
    """Settings for a driver that works on a handful of rows."""
    options = [*java_options(jars_folder()), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    # Tests of tables in an object store say where that is for buckets of their own.
    store = spark_settings(Access()) if (jars_folder() / OBJECT_STORE).is_dir() else {}
    return {**SMALL, **store, "spark.driver.extraJavaOptions": " ".join(options)}


@contextmanager
def tested(remote: str | None) -> Iterator[SparkSession]:
    """`remote`: None for a driver in this process, `start` for a server of our own, or the URL of one."""
    if remote is None:
        found = session(master="local[2]", conf=small())
        yield found
        found.stop()
    elif remote == "start":
        with server(conf={"spark.sql.shuffle.partitions": "2"}) as url, _client(url) as found:
            yield found
    else:
        with _client(remote) as found:
            yield found


@contextmanager
def _client(url: str) -> Iterator[SparkSession]:
    os.environ["PARTWISE_SPARK_REMOTE"] = url  # for commands that tests call in this process
    found = session(remote=url, conf={"spark.sql.shuffle.partitions": "2"})
    try:
        yield found
    finally:
        del os.environ["PARTWISE_SPARK_REMOTE"]
        found.stop()
