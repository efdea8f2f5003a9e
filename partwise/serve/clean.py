"""Once a day, what is older than a month is taken out of Airflow: rows of its database, logs of its tasks.

A source that is looked at every 30 seconds makes 2,880 runs a day. The ledger keeps what is known of parts; these are only
the history of how they were made.

    python -m partwise.serve.clean LOGS
"""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

DAY = 86_400.0
KEEP = 30 * DAY
#: Not while everything is being started.
FIRST = 3_600.0


def main(logs: Path) -> None:
    time.sleep(FIRST)
    while True:
        before = time.time() - KEEP
        print(f"{remove_old(logs, before)} logs of tasks removed", flush=True)
        subprocess.run([sys.executable, "-m", "airflow", *words(before)], check=False)  # tomorrow is another day
        time.sleep(DAY)


def words(before: float) -> list[str]:
    """The command that removes rows; `airflow` is before it."""
    moment = datetime.fromtimestamp(before, UTC).isoformat(timespec="seconds")
    return ["db", "clean", "--clean-before-timestamp", moment, "--skip-archive", "--yes"]


def remove_old(logs: Path, before: float) -> int:
    """Removes files that were last written before, and folders that are empty then. Returns how many files."""
    removed = 0
    for path in sorted(logs.rglob("*"), reverse=True):  # what is in a folder comes before the folder
        try:
            if path.is_dir() and not path.is_symlink():
                if path.stat().st_mtime < before and not any(path.iterdir()):
                    path.rmdir()
            elif path.lstat().st_mtime < before:
                path.unlink()
                removed += 1
        except OSError:
            continue  # somebody else was quicker, or writes there just now
    return removed


if __name__ == "__main__":
    main(Path(sys.argv[1]))
