"""Real processes race for the same version: each round has exactly one winner."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from partwise import storage
from tests.storage.tables import SCHEMA, rows, stage

ROOT = Path(__file__).parents[2]
RACERS, ROUNDS = 6, 20

#: Every racer opens the table in the version of the round, waits until all have, and commits its own
#: row, which was staged before the start so that only commits race. Files are the signals.
RACER = """
    import sys, time
    from pathlib import Path
    from partwise import storage
    path, me, rounds, racers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    signals = Path(path).parent / "signals"
    def meet(name):
        (signals / f"{name}-{me}").touch()
        while sum(1 for _ in signals.glob(f"{name}-*")) < racers:
            time.sleep(0.001)
    meet("create")
    storage.create(path, sys.argv[5])
    for round in range(rounds):
        meet(f"open{round:03d}")
        handle = storage.open_at(path)
        staged = storage.staged(path, f"{round}-{me}")
        meet(f"commit{round:03d}")
        try:
            print(round, me, storage.commit(handle, staged, (), {"round": round, "racer": me}), flush=True)
        except storage.Conflict:
            storage.discard(path, f"{round}-{me}")
"""


def stage_all(path: str) -> None:
    """The table itself is created by the racers too, so these are staged by way of another one."""
    other = storage.create(f"{path}-other", SCHEMA)
    for round in range(ROUNDS):
        for me in range(RACERS):
            stage(other, f"{round}-{me}", [(round, f"r{me}", 1.0)])
    Path(path).mkdir()
    for name in Path(other.path).glob("s-*"):
        name.rename(Path(path) / name.name)


def test_one_winner_each_round(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    (tmp_path / "signals").mkdir()
    stage_all(path)
    command = [sys.executable, "-c", textwrap.dedent(RACER), path]
    racers = [
        subprocess.Popen(
            [*command, str(me), str(ROUNDS), str(RACERS), SCHEMA], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        for me in range(RACERS)
    ]
    wins = []
    for racer in racers:
        output, _ = racer.communicate(timeout=120)
        assert racer.returncode == 0
        wins += [tuple(map(int, line.split())) for line in output.splitlines()]
    winner = {round: me for round, me, _ in wins}
    assert len(wins) == len(winner) == ROUNDS
    assert sorted((round, version) for round, _, version in wins) == [(r, r + 1) for r in range(ROUNDS)]
    assert rows(path) == [(r, f"r{winner[r]}", 1.0) for r in range(ROUNDS)]
    expected = [(r + 1, {"round": r, "racer": winner[r]}, True) for r in range(ROUNDS)]
    assert storage.entries(path, 0) == expected
    assert storage.open_at(path, 0).schema == SCHEMA
