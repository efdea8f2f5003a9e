"""A Spark Connect server as a process of its own: one warm driver for many short clients."""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

from partwise.serve.supervise.answers import answers
from partwise.serve.supervise.child import ending, free_port
from spark_jobs.session.session import driver_settings, find_java

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def server(
    *, master: str = "local[2]", port: int = 0, conf: Mapping[str, str] | None = None, log: Path | None = None
) -> Iterator[str]:
    """Runs a server on the loopback address; yields its URL (`sc://...`) once it answers."""
    port = port or free_port()
    process = start(master=master, port=port, conf=conf, log=log)
    with ending(process):
        wait_for(process, port)
        yield f"sc://127.0.0.1:{port}"


def start(
    *, master: str, port: int, conf: Mapping[str, str] | None = None, log: Path | None = None
) -> subprocess.Popen[bytes]:
    """Starts the server and does not wait. The process is the JVM itself: ending it ends everything."""
    find_java()
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    with open(log or os.devnull, "ab") as output:
        return subprocess.Popen(
            command(master, port, conf), stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        )


def command(master: str, port: int, conf: Mapping[str, str] | None = None, host: str = "127.0.0.1") -> list[str]:
    """What runs the server. A setting given in `conf` wins, except for the address."""
    settings = driver_settings(master, conf) | {
        "spark.connect.grpc.binding.address": host,
        "spark.connect.grpc.binding.port": str(port),
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    return [submit, *options, "--class", SERVER, "spark-internal"]


def wait_for(process: subprocess.Popen[bytes], port: int, seconds: float = 180) -> None:
    """Until the server takes connections. Raises if it ends before, or takes too long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the Spark Connect server ended with code {process.returncode} while starting")
        if answers(f"sc://127.0.0.1:{port}", seconds=1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"the Spark Connect server did not answer on port {port} within {seconds:.0f} seconds")


def main() -> None:
    """`python -m spark_jobs.session.connect`: becomes the server. Whoever started this process holds the JVM itself."""
    parser = argparse.ArgumentParser(description="A Spark Connect server with Delta and the settings of Partwise.")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=15002)
    parser.add_argument(
        "--conf", action="append", default=[], metavar="NAME=VALUE", help="setting of Spark; repeatable"
    )
    given = parser.parse_args()
    find_java()
    conf = workspace_conf(os.environ) | dict(pair.split("=", 1) for pair in given.conf)
    words = command(given.master, given.port, conf, given.host)
    os.execv(words[0], words)


def workspace_conf(environment: Mapping[str, str]) -> dict[str, str]:
    """What the object store of a workspace needs: only the start of a driver settles it. Empty without a workspace."""
    if not environment.get("PARTWISE_WORKSPACE"):
        return {}
    from partwise.workspace import open_workspace

    return open_workspace(environment=environment).spark_conf


if __name__ == "__main__":
    main()
