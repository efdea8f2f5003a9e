"""The engine's own tests once more, over Spark Connect: `pytest --spark-remote URL` in a process of its own.

Any of them can be run so; here it is what a workspace lives through, and two random histories.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_process, pytest.mark.xdist_group("driver")]
ROOT = Path(__file__).parents[2]
CHOSEN = [
    "tests/spark/test_commands.py::test_a_day_at_the_shell",
    "tests/spark/test_ingest.py::test_a_file_is_loaded_once_corrected_and_retracted",
    "tests/spark/test_ingest_times.py::test_rows_too_old_too_new_or_expired_wait_in_quarantine_until_released",
    "tests/spark/test_ingest_foreign.py::test_every_kind_of_change_is_followed",
    "tests/spark/test_engine.py::test_a_failing_query_is_recorded_where_it_stands",
    "tests/spark/test_verify.py::test_everything_is_checked_and_nothing_differs",
    "tests/spark/test_history.py",
]


@pytest.mark.timeout(1500)  # what is in it has limits of its own
def test_the_same_tests_over_connect(driver: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    options = ["-q", "-p", "no:cacheprovider", "--spark-remote", driver, "--spark-histories", "2"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *CHOSEN], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    [passed] = re.findall(r"(\d+) passed", done.stdout)
    assert int(passed) == len(CHOSEN) - 1 + 2
    assert "skipped" not in done.stdout
