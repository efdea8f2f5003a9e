"""Steps that run now, as `status` and `why` tell of them."""

import io
import sys
import time
from pathlib import Path

import pytest

from partwise.cli.views import running
from partwise.cli.views.running import Live
from partwise.ledger.records.running import Running, note
from partwise.parts import Range, parse_part
from partwise.tables import Graph, Table
from partwise.workspace import open_workspace
from tests.cli.conftest import Run


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_step_of_one_part_says_that_it_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    live = Live(lambda: Graph.of([Table("v", "view", 60, "f")]))
    step = Running("v", Range(FIRST, FIRST), 0, 1, time.time() - 90)
    live.draw(step)
    assert terminal.getvalue() == ""  # its own line tells of it when it is done
    live.working(step)
    assert "v[2026-10-03T10:00]" in terminal.getvalue()
    assert "0 of 1 parts, 1 left; at work for 90 seconds" in terminal.getvalue()


def test_a_large_file_says_that_it_is_being_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setattr(running, "_BETWEEN", 0.0)
    live = Live(lambda: Graph.of([]))
    live.load("s", 0, 1)
    assert terminal.getvalue() == ""
    live.loading_since("s", time.time() - 40)
    assert "s: being loaded; at work for 40 seconds" in terminal.getvalue()
    live.load("s", 200, 3000)
    live.loading_since("s", time.time() - 50)
    assert "s: 200 of 3,000 files loaded; at work for 50 seconds" in terminal.getvalue()


FIRST = parse_part("2026-10-03T10:00", 60)


def test_status_and_why_tell_of_steps_that_run(run: Run, workspace: Path) -> None:
    assert run("status", "--running").out == "No step runs now.\n"
    assert run("empty", "measurements", "2026-10-03T10:00..2026-10-03T10:09").code == 0
    where = open_workspace(str(workspace), {})
    ledger = where.open_ledger(time.time())
    now = time.time()
    held = ledger.take("total_loss", "somebody", 60, now)
    note(ledger.database, held, Running("total_loss", Range(FIRST, FIRST + 9), 4, 10, now - 20))
    expected = {"table": "total_loss", "parts": "2026-10-03T10:00..2026-10-03T10:09", "done": 4, "of": 10}
    for words in (["status", "--running"], ["status"]):
        (found,) = run(*words, "--json").json["running"]
        assert {name: found[name] for name in expected} == expected
        assert found["since"].startswith("20")
        shown = run(*words).out.replace("\n", " ")
        assert (
            "total_loss[2026-10-03T10:00..2026-10-03T10:09] [#########...............] 4 of 10 parts, 6 left" in shown
        )
    assert "4 of 10 parts are computed" in run("why", "total_loss", "2026-10-03T10:03").out
    assert "parts are computed" not in run("why", "total_loss", "2026-10-03T11:03").out
    ledger.release(held, time.time())
    assert run("status", "--running", "--json").json == {"running": []}
    assert run("status", "total_loss", "--running").code == 2
    ledger.database.close()
