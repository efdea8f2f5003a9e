"""The shortest way through the whole product: a file lands, its view follows, a late row is repaired, Ctrl-C ends it.

What else can happen to it is in the slow tests beside this one.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path

import psutil
import pytest

from tests.airflow.product import DEFINITIONS, Product, mentioning
from tests.spark.sessions import small

pytestmark = pytest.mark.airflow


def test_a_file_lands_its_view_follows_a_late_row_is_repaired_and_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    one_view = "---".join(DEFINITIONS.split("---")[:2])  # each more costs seconds of two cores
    product = Product(tmp_path, one_view)
    # A compiler that does less halves what the driver costs here.
    (product.workspace / "partwise.yaml").write_text(json.dumps({"spark": {"conf": small()}}))  # which is YAML
    product.start()
    try:
        product.land("first", ("00", "x", 1), ("01", "x", 2), ("02", "x", 3))
        product.wait("the first part", lambda: product.total("a", "01") == 2)
        product.land("late", ("01", "z", 100))
        product.wait("the late row", lambda: product.total("a", "01") == 102)
        product.is_right()
        assert product.process is not None
        everything = psutil.Process(product.process.pid).children(recursive=True)
        assert len(everything) > 10
    finally:
        product.stop(signal.SIGINT)
    assert product.process.returncode == 0, product.logs()
    assert [p for p in everything if p.is_running() and p.status() != psutil.STATUS_ZOMBIE] == []
    assert mentioning(str(tmp_path)) == []
