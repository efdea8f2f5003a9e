"""`python -m partwise.serve.feed LANDING`: measurements for the example workspace, one minute of them every few seconds.

Now and then a row is held back and comes late, in a file of its own. The rows of a minute depend on that minute alone,
and which minutes were delivered is seen from the files: a feed that is stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

NODES = {"ams": "north", "ber": "north", "osl": "north", "lis": "south", "rom": "south"}
BEHIND = 24 * 60  # minutes before now at which a new feed begins; it catches up and then keeps pace with the clock
FIRST = 15  # minutes that are there from the beginning
LATE_EVERY, LATE_BY = 6, 5  # every so many minutes one row comes so many minutes late
HEADER = "event_time,src,dest,loss\n"


@dataclass(frozen=True, slots=True)
class FeedFile:
    """A file that lands."""

    name: str
    text: str


def rows(minute: int) -> list[str]:
    """One row per pair of nodes. A pair that is troubled stays so for some minutes: there are patterns to find."""
    at = datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    found = []
    for src in NODES:
        for dest in NODES:
            if src != dest:
                troubled = random.Random(f"{src} {dest} {minute // 7}").random() < 0.15
                loss = random.Random(f"{src} {dest} {minute}").randint(9, 30) if troubled else 0
                loss += random.Random(f"{dest} {src} {minute}").randint(0, 8)
                found.append(f"{at},{src},{dest},{loss}\n")
    return found


def files(minute: int) -> Iterator[FeedFile]:
    """What lands when a minute is delivered: its rows but one that is held back, and the late row of an older minute."""
    found = rows(minute)
    if minute % LATE_EVERY == 0:
        del found[minute % len(found)]
    yield FeedFile(f"{_name(minute)}.csv", HEADER + "".join(found))
    old = minute - LATE_BY
    if old % LATE_EVERY == 0:
        late = rows(old)
        yield FeedFile(f"late-{_name(old)}.csv", HEADER + late[old % len(late)])


def nodes() -> FeedFile:
    return FeedFile("nodes.csv", "node,region\n" + "".join(f"{node},{region}\n" for node, region in NODES.items()))


def last_delivered(names: Iterator[str]) -> int | None:
    """The newest minute among the files of the landing folder."""
    found = [minute for name in names if (minute := _minute(name)) is not None]
    return max(found, default=None)


def due(last: int | None, now: float) -> list[int]:
    """Minutes to deliver at this time: at first several, then one at a time, never one that is not over yet."""
    newest = int(now // 60) - 1
    if last is None:
        first = (newest - BEHIND) // LATE_EVERY * LATE_EVERY  # so that no late row is older than the first minute
        return list(range(first, first + FIRST))
    return [last + 1] if last < newest else []


def deliver(landing: Path, file: FeedFile) -> None:
    """Written beside, then renamed: whoever reads the folder sees it whole."""
    landing.mkdir(parents=True, exist_ok=True)
    draft = landing / f"{file.name}.tmp"
    draft.write_text(file.text, encoding="utf-8")
    draft.replace(landing / file.name)


def main() -> int:
    parser = argparse.ArgumentParser(description="Delivers measurements into the landing folder of the example.")
    parser.add_argument("landing", type=Path)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between deliveries")
    given = parser.parse_args()
    folder = given.landing / "measurements"
    deliver(given.landing, nodes())
    while True:
        names = (file.name for file in folder.glob("*.csv"))
        for minute in due(last_delivered(names), time.time()):
            for file in reversed(list(files(minute))):  # the late row first: if we end here, it was not forgotten
                deliver(folder, file)
                print(f"{datetime.now(UTC):%H:%M:%S} {file.name}", flush=True)
        time.sleep(given.every)


def _name(minute: int) -> str:
    return datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%dT%H-%M")


def _minute(name: str) -> int | None:
    try:
        return int(datetime.strptime(name, "%Y-%m-%dT%H-%M.csv").replace(tzinfo=UTC).timestamp()) // 60
    except ValueError:
        return None


if __name__ == "__main__":
    sys.exit(main())
