"""Settings for all tests, and the Spark session that they share. Other fixtures live beside the tests that use them."""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.object_store.store import Lake, Server

# The same examples on every run and every machine: a failure that somebody sees is a failure that everybody sees.
# HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("explore", deadline=None, max_examples=2_000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--histories",
        type=int,
        default=250,
        help="how many random histories are simulated; `make test-slow` goes on to 1,000",
    )
    parser.addoption("--spark-histories", type=int, default=12, help="how many random histories run on real Spark")
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in a random order; the same for a seed")
    parser.addoption("--relations", type=int, default=1000, help="how many random queries are compared for each rule")
    parser.addoption("--soak", type=float, default=0, help="how many minutes the soak test runs; 0: not at all")
    parser.addoption("--minio", metavar="PROGRAM", help="use this MinIO as object store instead of moto's server")
    parser.addoption(
        "--spark-remote",
        metavar="URL",
        help="run the Spark tests over Spark Connect: the URL of a server (sc://...), or `start` for one of its own",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (seed := config.getoption("--shuffle")) is not None:
        random.Random(seed).shuffle(items)
    if config.getoption("--spark-remote"):
        for item in items:
            if item.get_closest_marker("own_process"):
                item.add_marker(pytest.mark.skip(reason="starts drivers of its own"))


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """One session for all tests of a process."""
    from tests.spark.sessions import tested

    with tested(request.config.getoption("--spark-remote")) as found:
        yield found


@pytest.fixture(scope="session")
def s3(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One object store for all tests of a process."""
    if find_spec("moto") is None or find_spec("obstore") is None:
        pytest.fail("moto and obstore are not installed; run `make setup`")
    from tests.object_store.store import minio, server

    program = request.config.getoption("--minio")
    with minio(program, tmp_path_factory.mktemp("minio")) if program else server() as found:
        yield found


@pytest.fixture
def lake(s3: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Lake]:
    """A bucket of its own for each test, with the keys of the store where AWS's tools look for them."""
    from tests.object_store.store import KEYS, use

    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    # Whoever runs the tests may have a profile; none of them may use it.
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    s3.faults()
    yield use(s3, s3.make_bucket(f"lake-{uuid.uuid4().hex[:8]}"))
    s3.faults()


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of one warm driver with the settings that users have, for commands that tests call as processes."""
    from spark_jobs.session.connect import server

    with server(log=tmp_path_factory.mktemp("driver") / "log") as url:
        yield url
