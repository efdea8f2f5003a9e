"""What grows without end is cut: rows and logs of Airflow, logs of processes."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from partwise.serve import clean
from partwise.serve.supervise import processes


def test_old_logs_of_tasks_go_and_new_ones_stay(tmp_path: Path) -> None:
    old, new = (
        tmp_path / "dag_id=m" / "run_id=1" / "attempt=1.log",
        tmp_path / "dag_id=m" / "run_id=2" / "attempt=1.log",
    )
    now = time.time()
    for file, at in ((old, now - 40 * clean.DAY), (new, now)):
        file.parent.mkdir(parents=True)
        file.write_text("said")
        for path in (file, file.parent):
            os.utime(path, (at, at))
    assert clean.remove_old(tmp_path, now - clean.KEEP) == 1
    assert not old.exists()
    assert new.read_text() == "said"
    os.utime(old.parent, (0, 0))
    clean.remove_old(tmp_path, now - clean.KEEP)
    assert [path.name for path in (tmp_path / "dag_id=m").iterdir()] == ["run_id=2"]


@pytest.mark.xdist_group("airflow")
def test_airflow_understands_the_command() -> None:
    from airflow.cli import cli_parser

    given = cli_parser.get_parser().parse_args(clean.words(1_790_000_000))
    assert given.clean_before_timestamp.isoformat() == "2026-09-21T14:13:20+00:00"
    assert (given.skip_archive, given.yes) == (True, True)


def test_a_log_that_has_grown_large_becomes_the_one_of_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "logs" / "spark.log"
    for text in ("first", "second"):
        processes.start([sys.executable, "-c", f"print('{text}')"], os.environ, log, tmp_path).wait()
    assert log.read_text() == "first\nsecond\n"
    processes.rotate(log, most=5)
    assert not log.exists()
    processes.rotate(log, most=5)
    assert log.with_name("spark.log.1").read_text() == "first\nsecond\n"
    monkeypatch.setattr(processes.rotate, "__defaults__", (5,))
    log.write_text("large enough")
    processes.start([sys.executable, "-c", "print('third')"], os.environ, log, tmp_path).wait()
    assert (log.read_text(), log.with_name("spark.log.1").read_text()) == ("third\n", "large enough")
