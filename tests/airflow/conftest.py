"""Airflow reads its settings when it is imported: they are set here, before any test of this folder imports it."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.airflow.product import Product
    from tests.airflow.worker import Airflow

ROOT = Path(__file__).resolve().parents[2]
HOME = tempfile.mkdtemp(prefix="partwise-airflow-")
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
os.environ.setdefault("AIRFLOW_HOME", HOME)
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
os.environ.setdefault("AIRFLOW__CORE__PLUGINS_FOLDER", str(ROOT / "plugins"))
os.environ.setdefault("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", f"sqlite:///{HOME}/airflow.db")
os.environ.setdefault("AIRFLOW__CORE__UNIT_TEST_MODE", "False")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with two sources, a chain of views and one that is translated."""
    folder = tmp_path / "ws"
    (folder / "view_defs").mkdir(parents=True)
    (folder / "partwise.yaml").write_text("ledger: sqlite:///ledger.db\n")
    (folder / "view_defs" / "all.yaml").write_text(DEFINITIONS)
    return folder


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The whole product with its first parts. One for all tests of a file: it takes a minute to start."""
    from tests.airflow.product import Product

    found = Product(tmp_path_factory.mktemp("product"))
    found.land("first", ("00", "x", 1), ("01", "x", 2), ("02", "x", 3))
    found.start()
    try:
        found.wait("the first parts of b", lambda: found.has("b", "01"), 600)
        yield found
    finally:
        found.stop()


@pytest.fixture
def airflow(
    request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> Airflow:
    """The DEFINITIONS of a test's file as DAGs, and a worker for them."""
    from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator

    from tests.airflow.worker import Airflow

    monkeypatch.setattr(
        PySparkOperator, "execute_callable", lambda task: task.python_callable(**task.op_kwargs, spark=spark)
    )
    monkeypatch.setenv("PARTWISE_WORKSPACE", str(tmp_path / "ws"))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_CONNECT", '{"conn_type": "spark"}')  # no Connect server to wait for
    return Airflow(tmp_path / "ws", spark, request.module.DEFINITIONS)


DEFINITIONS = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, src: string, loss: double}
files: landing/m/*.csv
poll: 10 seconds
owner: ada
tags: [network]
---
dimension: nodes
columns: {node: string, region: string}
files: landing/nodes.csv
---
view: a
description: Sum per node
part: 1 minute
owner: grace
tags: [sums]
timeout: 20 minutes
update: |
  SELECT src, SUM(loss) AS total FROM m[j] GROUP BY src
---
view: b
part: 5 minutes
update: |
  SELECT n.region, SUM(a.total) AS total FROM a[5*j..5*j+4] a JOIN nodes n ON n.node = a.src GROUP BY n.region
---
view: w
share: false
part: 1 minute
query: |
  SELECT src, MAX(loss) AS worst, COUNT(*) AS n FROM m [WINDOW 3 minutes] GROUP BY src
---
view: heavy
part: 1 minute
engine: submit
update: |
  SELECT src, total FROM a[j]
"""


@pytest.fixture(scope="session")
def definitions() -> str:
    return DEFINITIONS
