"""Steps that run now, as `status` and `why` tell of them."""

import time
from pathlib import Path

from partwise.ledger.records.running import Running, note
from partwise.parts import Range, parse_part
from partwise.workspace import open_workspace
from tests.cli.conftest import Run

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
