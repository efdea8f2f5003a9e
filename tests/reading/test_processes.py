"""Real processes on one workspace, with clocks seconds apart: same moment, same answer; settled is what sources give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.ledger.processes import CONTEXT, run_together
from tests.reading.small import FIRST, Small, recomputed
from tests.reading.workers import (
    PARTS,
    TABLES,
    contents,
    ingester,
    read_at,
    reader_as_of,
    reader_of_settled,
    runner,
    slow_reader,
    torn_reads,
    upkeep,
)


def play(folder: Path, url: str, seconds: float, rounds: int) -> tuple[Small, dict[str, Any]]:
    small = Small(folder, url)
    small.ingest({FIRST + p: {"k": p} for p in range(PARTS)})
    small.run()
    over = CONTEXT.Event()
    works = {
        "ingester": (ingester, (folder, 5.0, over, seconds, rounds)),
        "runner": (runner, (folder, -5.0, over, seconds)),
        "other runner": (runner, (folder, 0.0, over, seconds)),
        "as of": (reader_as_of, (folder, 2.0, over, seconds)),
        "settled": (reader_of_settled, (folder, -2.0, over, seconds)),
        "newest": (torn_reads, (folder, over, seconds)),
    }
    return small, dict(zip(works, run_together(list(works.values())), strict=True))


def check(small: Small, found: dict[str, Any], run: Run) -> None:
    assert found["ingester"]
    assert found["runner"] + found["other runner"]
    # The same moment, asked again when all is over, by somebody with another clock.
    later = Small(small.folder, ahead=60.0)
    different = [answer for answer in found["as of"] if read_at(later, answer[0], answer[1]) != answer]
    assert found["as of"]
    assert different == []
    reads, _, wrong = found["settled"]
    assert reads
    assert wrong == []
    # When everything has come to rest all parts are what the source gives, and the ledger is in order.
    later.run()
    with later.ledger.database.reading() as r:
        seq = r.seq
    source = {FIRST + p: contents(later, seq, FIRST + p)["s"] for p in range(PARTS)}
    for p in source:
        shown = contents(later, seq, p)
        expected = {name: recomputed(name, p, source) for name in TABLES if name != "w" or p >= FIRST + 2}
        assert {name: shown[name] for name in expected} == expected
    done = run("audit", "--workspace", str(small.folder), "--json")
    assert (done.code, done.json["problems"]) == (0, [])
    later.close()
    small.close()


def test_processes_with_clocks_apart(tmp_path: Path, url: str, run: Run) -> None:
    check(*play(tmp_path / "place", url, seconds=100.0, rounds=12), run)


def test_upkeep_takes_nothing_that_a_reader_reads(tmp_path: Path, url: str) -> None:
    small = Small(tmp_path / "place", url)
    small.ingest({FIRST + p: {"k": p} for p in range(PARTS)})
    small.run()
    over = CONTEXT.Event()
    works = [
        (ingester, (small.folder, 0.0, over, 100.0, 100_000)),
        (runner, (small.folder, 0.0, over, 100.0)),
        (upkeep, (small.folder, over, 100.0, 25)),
        (slow_reader, (small.folder, over, 100.0)),
    ]
    _, steps, removed, (reads, wrong) = run_together(works)
    assert steps
    assert removed >= 25
    assert reads > 1
    assert wrong == []
    small.close()


@pytest.mark.slow
def test_thousands_of_reads(tmp_path: Path, url: str, run: Run) -> None:
    small, found = play(tmp_path / "place", url, seconds=80.0, rounds=100_000)
    assert found["newest"][1] > 0, "the newest moment is not always one of the sources: else nothing is proven"
    assert found["settled"][1] > 0
    check(small, found, run)
