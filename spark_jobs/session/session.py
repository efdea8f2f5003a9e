"""The Spark session that every job uses: one warm driver in this process, a cluster, or a Connect server.

Jobs keep to what Spark Connect offers (no context, no RDDs), so the three are told apart only here.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from partwise.object_store import S3A_SETTING
from spark_jobs.session import quiet

#: The folder beside Delta's jars with those that object stores need.
OBJECT_STORE = "object_store"
ROOT = Path(__file__).resolve().parents[2]

#: Which jars a driver needs beside Spark's own.
LISTED = ROOT / "spark_jobs/jars.txt"

#: What results depend on; set in every session, also in those that others have started.
MEANING = {
    # Parts are UTC, and so is a time without a zone.
    "spark.sql.session.timeZone": "UTC",
    # The default writes INT96, which has no statistics: no reader could skip files by time.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Dates before 1582 as they are, for all readers alike.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    # What pandas writes by default, and Spark has no type for; ingest makes times of them.
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    # Above 32 paths Spark would start a job with one task per file, only to list what we have listed.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}

#: What a driver of our own gets besides. A setting given by the user wins over all of these.
DRIVER = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Delta's log is small; its default of 50 tasks to read it costs more than reading.
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

#: For a driver that is its own cluster.
LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # VACUUM lists folders with so many tasks; the default is ten thousand.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
}

#: Errors only: what people need to know of a job, the job itself says.
LOGGING = f"-Dlog4j2.configurationFile={ROOT / 'spark_jobs' / 'log4j2.properties'}"


def session(
    *,
    master: str | None = None,
    remote: str | None = None,
    conf: Mapping[str, str] | None = None,
    jars: Path | None = None,
) -> SparkSession:
    """The session for `master` (`local[2]` by default, or `spark://...`) or `remote` (`sc://host:port`).

    There is one session in a process: asked again, Spark returns the same one.
    """
    for logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        # PySpark writes every failed query to standard error, as JSON with all stacks; the job says what failed.
        PySparkLogger.getLogger(logger).setLevel(logging.CRITICAL + 1)
    if remote is not None:
        spark = SparkSession.builder.remote(remote).getOrCreate()
        mean_the_same(spark, conf)
        return spark
    find_java()
    if local_cores(master or "local[2]"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("partwise")
    settings = driver_settings(master or "local[2]", conf, jars)
    quiet.start(settings)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def mean_the_same(spark: SparkSession, conf: Mapping[str, str] | None = None) -> None:
    """Settings that results depend on (and `conf`), in a session that others have started.

    Over Connect each setting is a call, so they are requested at once: a driver of ours has them already.
    """
    # What Hadoop is told counts at the start of a driver only.
    wanted = {
        **MEANING,
        **{name: value for name, value in (conf or {}).items() if not name.startswith("spark.hadoop.")},
    }
    there: Mapping[str, str | None] = {}
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        known = spark.client.get_config_with_defaults(*((name, None) for name in wanted))
        there = dict(zip(wanted, known, strict=True))
    for name, value in wanted.items():
        if there.get(name) != value:
            try:
                spark.conf.set(name, value)
            except AnalysisException as why:
                # What only the start of a driver settles (its memory, say) is up to whoever started it.
                if name in MEANING or not (why.getCondition() or "").startswith("CANNOT_MODIFY"):
                    raise


def driver_settings(master: str, conf: Mapping[str, str] | None = None, jars: Path | None = None) -> dict[str, str]:
    """All settings of a driver: of ours in this process, or of a Connect server."""
    folder = jars or jars_folder()
    found = {"spark.master": master, **MEANING, **DRIVER, "spark.jars.ivy": str(folder / "ivy")}
    libraries = os.pathsep.join(map(str, jars_for(folder, conf or {})))
    found["spark.sql.warehouse.dir"] = str(folder / "warehouse")  # else Spark leaves one where it is started
    if cores := local_cores(master):
        found |= LOCAL | {"spark.sql.shuffle.partitions": str(2 * cores)}
        # On the class path, jars need not be copied to executors, and can be in a class archive.
        found["spark.driver.extraClassPath"] = libraries
        found["spark.driver.extraJavaOptions"] = " ".join(java_options(folder))
    else:
        found["spark.driver.extraJavaOptions"] = LOGGING
        found["spark.jars"] = libraries.replace(os.pathsep, ",")
    return found | dict(conf or {})


def jars_for(folder: Path, conf: Mapping[str, str]) -> list[Path]:
    """Delta's jars, and those for object stores if the settings speak of one. Raises FileNotFoundError."""
    found = sorted(folder.glob("*.jar"))
    if not any(name.startswith(S3A_SETTING) for name in conf) or brings_its_own(conf):
        return found
    more = sorted((folder / OBJECT_STORE).glob("*.jar"))
    if not any(jar.name.startswith("hadoop-aws-") for jar in more):
        raise FileNotFoundError(
            f"no jars for object stores in {folder / OBJECT_STORE}: run `make setup OBJECT_STORE=1`, "
            "or name your own in spark.jars.packages"
        )
    return found + more


def brings_its_own(conf: Mapping[str, str]) -> bool:
    """Whether the user has said where the connector comes from."""
    places = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
    return any("hadoop-aws" in conf.get(name, "") for name in places)


def java_options(folder: Path) -> list[str]:
    found = [LOGGING]
    if (archive := archive_in(folder)).exists():
        found += [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    return found


def archive_in(folder: Path) -> Path:
    """Where `python -m spark_jobs.session.archive` keeps loaded classes; a driver that finds them starts quicker.

    The name says what they are of: another Java, Spark or jar has another archive.
    """
    of = [os.environ.get("JAVA_HOME", ""), version("pyspark"), *sorted(jar.name for jar in folder.glob("*.jar"))]
    return folder / f"classes-{hashlib.sha256(repr(of).encode()).hexdigest()[:12]}.jsa"


def jars_folder() -> Path:
    """Delta's jars, fetched once by the set-up."""
    folder = Path(os.environ.get("PARTWISE_JARS") or ROOT / ".jars").absolute()
    if not any(folder.glob("delta-spark_*.jar")):
        raise FileNotFoundError(
            f"no Delta jars in {folder}: run `make setup`, or put the jars that {LISTED} lists into a folder and set "
            "PARTWISE_JARS to it"
        )
    return folder


def find_java() -> None:
    """Spark looks for JAVA_HOME; the set-up has noted which Java it found."""
    noted = ROOT / ".java-home"
    if not os.environ.get("JAVA_HOME") and noted.exists():
        os.environ["JAVA_HOME"] = noted.read_text().strip()


def local_cores(master: str) -> int:
    """Cores of a `local` master; 0 for a cluster."""
    match = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master)
    if not match:
        return 0
    return (os.cpu_count() or 1) if match[1] == "*" else int(match[1] or 1)
