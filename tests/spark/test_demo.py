"""`make demo` tells its whole story: arrivals, late rows, exactly what must be recomputed, no differences."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.spark
@pytest.mark.slow  # the README tells the same story, and its commands run with the other tests
@pytest.mark.own_process
def test_the_demo_tells_its_story() -> None:
    environment = {**os.environ, "COLUMNS": "130"}
    done = subprocess.run(
        [sys.executable, "-m", "partwise.demo"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=550
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("Late rows", "late rows in measurements[", "high_loss", " 0 differences."):
        assert words in done.stdout
    assert "Traceback" not in done.stderr
