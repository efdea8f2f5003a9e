"""`partwise compact` and `partwise retain` where something is wrong with a table: the others go on, and the exit code tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from partwise.upkeep.clean import Cleaned
from partwise.upkeep.compact import Compacted
from partwise.workspace import open_workspace
from tests.cli.conftest import Run
from tests.cli.stand_in import build_what_is_ready, load_dimension, load_rows

DAY = "2026-10-03T"


def test_one_bad_table_does_not_stop_the_others(run: Run, workspace: Path) -> None:
    file = workspace / "view_defs" / "total_loss.yaml"
    file.write_text(file.read_text().replace("start: earliest", "start: earliest\nkeep: 5 minutes"))
    load_rows(workspace, "measurements", f"{DAY}10:05..{DAY}10:19", rows=6)
    load_dimension(workspace, "nodes", rows=3)
    build_what_is_ready(
        workspace
    )  # the ledger has versions of them, and there are no folders: somebody moved these away
    done = run("compact")
    assert done.code == 1
    for name in ("measurements", "nodes", "total_loss", "loss_by_region"):
        assert f"{name} was left as it is: there is no Delta table in" in done.out, done.out
    found = run("compact", "total_loss", "--json")
    assert (found.code, list(found.json["failed"]), found.json["busy"]) == (1, ["total_loss"], [])
    kept = run("retain", "--json")
    assert (kept.code, list(kept.json["failed"]), kept.json["expired"]) == (1, ["total_loss"], [])
    assert kept.json["as_of_from"]  # the rest of it was done


def test_a_table_that_somebody_writes_is_left_and_is_no_problem(run: Run, workspace: Path) -> None:
    load_dimension(workspace, "nodes", rows=3)
    ledger = open_workspace(str(workspace), {}).open_ledger(0.0)
    ledger.take("nodes", "elsewhere:1:a", 1e12, 0.0)
    ledger.database.close()
    done = run("retain")
    assert (done.code, "nodes is being written just now by elsewhere:1:a; left for the next time." in done.out) == (
        0,
        True,
    )


def test_ctrl_c_keeps_what_is_done_and_says_so(run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_dimension(workspace, "nodes", rows=3)
    seen: list[str] = []

    def compact(ledger: object, warehouse: str, table: str, *_: object, **__: object) -> Compacted:
        seen.append(table)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return Compacted(table, 5, 1, 100)

    monkeypatch.setattr("partwise.upkeep.compact.compact", compact)
    monkeypatch.setattr("partwise.upkeep.retain.clean_up", lambda *_: Cleaned())
    done = run("compact")
    assert (done.code, len(seen)) == (130, 2)
    assert seen[0] in done.out
    assert "stopped; what is done stays, the next call goes on with the rest" in done.err
