"""The same work by Partwise, dbt-spark and SQLMesh in the same hour, interleaved, every answer checked against DuckDB.

    python benchmarks/peers/compare.py [--rounds 3] [--only WORD] [--without dbt] [--keep DIR]

The environments of dbt and SQLMesh are made under .peers/ the first time (PySpark 3.5, about 1 GB). What is not comparable: the
peers are told which hour to compute and read the landed files in place; Partwise loads each file into a Delta table and finds
out by itself what to compute. The peers write Parquet, Partwise Delta with a ledger.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from landed import land, land_late, missing_or_wrong
from sides import LATE, PACKAGES, Dbt, Partwise, Side, SqlMesh, make_environments

ONE, TEN = ("v0",), tuple(f"v{n}" for n in range(10))
SIDES: tuple[type[Side], ...] = (Partwise, Dbt, SqlMesh)
CATCH_UP, PAST, LATE_AT = 200, 48, 5
#: Sides that are not run, as the user wishes.
left_out: set[str] = set()


@dataclass
class Session:
    """One process of a side that stays."""

    side: Side
    process: subprocess.Popen[str] = field(init=False)

    def __post_init__(self) -> None:
        self.process = subprocess.Popen(
            self.side.session(),
            cwd=self.side.folder,
            env=self.side.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(self.side.folder / "session.log").open("w"),
            text=True,
        )

    def seconds(self, hours: range, *views: str) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(hours.start, hours.stop, *views, file=self.process.stdin, flush=True)
        for line in self.process.stdout:
            if line.startswith("SECONDS "):
                return float(line.split()[1])
        raise RuntimeError(f"{self.side.name}: {(self.side.folder / 'session.log').read_text()[-3000:]}")

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@contextmanager
def places(at: Path, views: tuple[str, ...]) -> Iterator[list[Side]]:
    """Each side's project, in a folder of its own; they share what lands."""
    folder = Path(tempfile.mkdtemp(dir=at))
    sides = [kind(folder / kind.name.lower(), views) for kind in SIDES if kind.name not in left_out]
    (folder / "landing").mkdir()
    for side in sides:
        side.make()
    yield sides
    shutil.rmtree(folder)


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def check(sides: list[Side], hours: range, views: tuple[str, ...]) -> None:
    for side in sides:
        wrong = missing_or_wrong({view: side.shown(view, hours) for view in views}, side.landing, hours)
        if wrong:
            sys.exit(f"{side.name} is wrong in this many hours: {wrong}")


def turns(sides: list[Side], number: int) -> list[Side]:
    """Who goes first changes from round to round."""
    at = number % len(sides)
    return sides[at:] + sides[:at]


def cold(at: Path, views: tuple[str, ...], rounds: int) -> dict[str, float]:
    """One new hour by a command that starts everything."""
    taken: dict[str, list[float]] = {}
    with places(at, views) as sides:
        for hour in range(rounds + 1):
            land(sides[0].landing, hour)
            for side in turns(sides, hour):
                seconds = timed(lambda side=side, hour=hour: side.run(range(hour, hour + 1)))  # type: ignore[misc]
                if hour:  # the first one builds
                    taken.setdefault(side.name, []).append(seconds)
        check(sides, range(rounds + 1), views)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def warm(at: Path, views: tuple[str, ...], rounds: int, command: bool = False, alone: bool = False) -> dict[str, float]:
    """One new hour in a process that stays; ours also as a command with a driver in the background, and `alone`."""
    taken: dict[str, list[float]] = {}
    first = 4  # until code is compiled
    with places(at, views) as sides, ExitStack() as ends:
        sides = sides[:1] if alone else sides
        for side in sides:
            if command and isinstance(side, Partwise):
                side.keep("10 minutes")
                words = [sys.executable, "-m", "partwise.cli", "driver", "stop"]
                stop = {"cwd": side.folder, "env": side.environment, "check": False, "capture_output": True}
                ends.callback(subprocess.run, words, **stop)
        sessions = {s.name: Session(s) for s in sides if not (command and isinstance(s, Partwise))}
        for session in sessions.values():
            ends.callback(session.close)
        for hour in range(rounds + first):
            land(sides[0].landing, hour)
            hours = range(hour, hour + 1)
            for side in turns(sides, hour):
                if side.name in sessions:
                    seconds = sessions[side.name].seconds(hours)
                else:
                    seconds = timed(lambda side=side, hours=hours: side.run(hours))  # type: ignore[misc]
                if hour >= first:
                    taken.setdefault(side.name, []).append(seconds)
        check(sides, range(rounds + first), views)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def catch_up(at: Path, _: tuple[str, ...], __: int) -> dict[str, float]:
    """All at once, by a command that starts everything."""
    with places(at, ONE) as sides:
        for hour in range(CATCH_UP):
            land(sides[0].landing, hour)
        taken = {side.name: timed(lambda side=side: side.run(range(CATCH_UP))) for side in sides}  # type: ignore[misc]
        check(sides, range(CATCH_UP), ONE)
    return taken


def own_past(at: Path, _: tuple[str, ...], __: int) -> dict[str, float]:
    """Seconds a part of a running total, after a late row at hour 5 of 48, in a process that stays."""
    views = ("running",)
    with places(at, views) as sides, ExitStack() as ends:
        for hour in range(PAST):
            land(sides[0].landing, hour)
        sessions = {side.name: Session(side) for side in sides}
        for session in sessions.values():
            ends.callback(session.close)
            session.seconds(range(1))  # dbt and SQLMesh go hour by hour
            session.seconds(range(PAST))
        check(sides, range(PAST), views)
        land_late(sides[0].landing, LATE_AT)
        again = range(LATE_AT, PAST)
        taken = {
            side.name: sessions[side.name].seconds(again, *(views if isinstance(side, SqlMesh) else ())) / len(again)
            for side in sides
        }
        check(sides, range(PAST), views)
    return taken


def late_story(at: Path, _: tuple[str, ...], __: int) -> dict[str, float]:
    """A late row under a rolling, a running and a diamond view: what the ordinary command makes of it, and the cheapest repair."""
    with places(at, LATE) as sides:
        for hour in range(PAST):
            land(sides[0].landing, hour)
        for side in sides:
            side.run(range(PAST))
        land_late(sides[0].landing, LATE_AT)
        land(sides[0].landing, PAST)
        shown = range(2, PAST + 1)
        taken = {}
        for side in sides:
            taken[side.name] = timed(lambda side=side: side.run(range(PAST, PAST + 1)))  # type: ignore[misc]
            views = ("rolling", "running", "diamond")
            wrong = missing_or_wrong({view: side.shown(view, shown) for view in views}, side.landing, shown)
            print(
                f"    {side.name}: {'every hour is right' if not wrong else f'exit code 0, hours that are wrong: {wrong}'}"
            )
        repairs = (("rolling", 3), ("running", PAST + 1 - LATE_AT), ("total_of", 1), ("rows_of", 1))
        mesh = next(side for side in sides if isinstance(side, SqlMesh))
        session = Session(mesh)
        began = time.perf_counter()
        for view, hours in repairs:
            session.seconds(range(LATE_AT, LATE_AT + hours), view)
        taken["SQLMesh, ranges worked out by a person"] = time.perf_counter() - began
        session.close()
        check([mesh], shown, ("rolling", "running", "diamond"))
    return taken


ROWS: tuple[tuple[str, Callable[[Path, tuple[str, ...], int], dict[str, float]], tuple[str, ...], str, float], ...] = (
    ("one new hour, cold command", cold, ONE, "SQLMesh", 0.7),
    ("one new hour, warm, in one process", warm, ONE, "SQLMesh", 0.6),
    ("one new hour, ours a warm command; goal in seconds", lambda a, v, n: warm(a, v, n, True, True), ONE, "", 1.5),
    ("ten views, one new hour, cold", cold, TEN, "SQLMesh", 0.7),
    ("ten views, one new hour, ours a warm command, peers in one process", lambda a, v, n: warm(a, v, n, True), TEN, "SQLMesh", 0.5),
    (f"catch-up of {CATCH_UP} hours, cold", catch_up, ONE, "SQLMesh", 0.5),
    ("running total after a late row, seconds a part", own_past, (), "SQLMesh", 0.3),
    ("late row under rolling, running, diamond", late_story, (), "SQLMesh, ranges worked out by a person", 0.4),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose names contain this")
    parser.add_argument("--without", action="append", default=[], choices=["dbt"], help="leave this side out")
    parser.add_argument("--keep", type=Path, help="folder for the projects")
    asked = parser.parse_args()
    left_out.update(asked.without)
    make_environments()
    print("; ".join(f"{name}: {', '.join(packages[:2])}" for name, packages in PACKAGES.items()), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        at = asked.keep or Path(folder)
        print("| seconds | Partwise | dbt | SQLMesh | ours / SQLMesh | goal |\n|---|---|---|---|---|---|", flush=True)
        for name, work, views, against, goal in ROWS:
            if asked.only in name:
                taken = work(at, views, asked.rounds)
                cells = [f"{taken.get(side.name, float('nan')):.2f}" for side in SIDES]
                more = "".join(f"; {side}: {s:.1f}" for side, s in taken.items() if side not in {k.name for k in SIDES})
                ratio = taken["Partwise"] / taken.get(against, 1.0)
                print(f"| {name}{more} | {' | '.join(cells)} | {ratio:.2f} | {goal} |", flush=True)


if __name__ == "__main__":
    main()
