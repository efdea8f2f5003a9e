"""A Spark cluster of processes on this machine: a standalone master and its workers, from the pip package."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from partwise.serve.supervise.answers import answers
from partwise.serve.supervise.child import ending, free_port
from spark_jobs.session.session import find_java

SPARK_CLASS = str(Path(pyspark.__file__).parent / "bin" / "spark-class")


@contextmanager
def cluster(folder: Path, workers: int = 2, cores: int = 1, memory: str = "512m") -> Iterator[str]:
    """Yields the master's URL once all workers have registered. Logs are in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    port, page = free_port(), free_port()
    host = ("--host", "127.0.0.1")
    master = ("org.apache.spark.deploy.master.Master", *host, "--port", str(port), "--webui-port", str(page))
    size = ("--cores", str(cores), "--memory", memory)
    with ExitStack() as running:
        running.enter_context(process((SPARK_CLASS, *master), folder / "master.log"))
        wait_until_answers(f"http://127.0.0.1:{page}/")
        for number in range(workers):
            place = ("--work-dir", str(folder / f"work-{number}"), "--webui-port", str(free_port()))
            worker = ("org.apache.spark.deploy.worker.Worker", *host, *size, *place, f"spark://127.0.0.1:{port}")
            running.enter_context(process((SPARK_CLASS, *worker), folder / f"worker-{number}.log"))
        wait_for_workers(page, workers)
        yield f"spark://127.0.0.1:{port}"


@contextmanager
def process(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is ended with the block; `spark-class` and `spark-submit` become the JVM itself."""
    find_java()
    env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"} if environment is None else dict(environment)
    with open(log, "ab") as output:
        found = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env, cwd=folder)
    with ending(found):
        yield found


def wait_until_answers(url: str, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not answers(url):
        if time.monotonic() > end:
            raise TimeoutError(f"{url} does not answer after {seconds:.0f} seconds")
        time.sleep(0.2)


def wait_for_workers(page: int, workers: int, seconds: float = 120) -> None:
    """Until the master counts so many live workers; `page` is the port of its web pages."""
    import json
    import urllib.request

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + seconds
    while True:
        with opener.open(f"http://127.0.0.1:{page}/json/", timeout=10) as answer:
            found = json.load(answer)
        if found["aliveworkers"] >= workers:
            return
        if time.monotonic() > end:
            raise TimeoutError(f"{found['aliveworkers']} of {workers} workers have registered")
        time.sleep(0.2)
