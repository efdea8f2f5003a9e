"""Ctrl-C and SIGTERM: running steps finish, no others begin, and the next run goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.thinned import thinned

pytestmark = [pytest.mark.spark, pytest.mark.own_process, pytest.mark.xdist_group("driver")]

#: Each view reads the one before: while one step runs, others are to come.
CHAIN = ("sales", "first", "second", "third", "fourth")
DEFINITIONS = "source: sales\npart: 1 minute\ntime: at\ncolumns: {at: timestamp, item: string}\nfiles: landing/*.csv\n"
DEFINITIONS += "".join(
    f"---\nview: {view}\npart: 1 minute\nupdate: SELECT item, COUNT(*) AS n FROM {source}[j] GROUP BY item\n"
    for source, view in pairwise(CHAIN)
)
ROWS = "at,item\n" + "".join(f"2026-10-03T10:0{n}:10,tea\n" for n in range(4))


@pytest.mark.parametrize("number", thinned([signal.SIGINT, signal.SIGTERM], 1))
def test_a_run_stops_cleanly_and_goes_on_later(number: signal.Signals, driver: str, tmp_path: Path) -> None:
    for name, text in {"partwise.yaml": "", "view_defs/all.yaml": DEFINITIONS, "landing/sales.csv": ROWS}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    environment = {**os.environ, "PARTWISE_SPARK_REMOTE": driver}
    environment.pop("PYTHONUNBUFFERED", None)  # steps are told when they are done, not when a buffer is full
    command = [sys.executable, "-m", "partwise.cli"]
    pipe = subprocess.PIPE
    process = subprocess.Popen([*command, "run", "--json"], cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe)
    assert process.stdout is not None
    first = json.loads(process.stdout.readline())  # a step is done, others are to come
    process.send_signal(number)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 130, err.decode()
    assert "stopping: running steps finish first" in err.decode()
    assert "Traceback" not in err.decode()
    done = [first, *map(json.loads, out.splitlines())]

    def call(*words: str) -> str:
        ended = subprocess.run([*command, *words], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    more = [json.loads(line) for line in call("run", "--json").splitlines()]
    assert more  # it was not the end
    parts = [(step["table"], part) for step in (*done, *more) for part in step["parts"]]
    assert len(parts) == len(set(parts))  # what was done is not done again
    assert json.loads(call("reconcile", "--json")) == {
        "adopted": {},
        "swept": {},
        "busy": {},
        "failed": {},
        "repaired": [],
        "damaged": {},
        "rebuilding": {},
    }
    assert json.loads(call("verify", "--json")) == {"checked": 12, "different": [], "stale": 0, "expired": 0}
    # A process whose first need of Spark is to take a file out again.
    assert json.loads(call("retract", "sales", "sales.csv", "--json"))["sources"][0]["rows"] == -4
