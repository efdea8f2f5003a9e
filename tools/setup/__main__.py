"""Set-up in one command: virtual environment, Java, Delta's jars, an archive of Spark's classes.

Each step first looks whether its result is there and sound, and only otherwise works. Nothing is trusted because a
stamp says so: files are compared with what they should be, so a half-done or damaged set-up is noticed and repaired.
Only the standard library is used, since this runs before anything is installed.
"""

import fcntl
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))

import classes  # noqa: E402
import jars  # noqa: E402
import java  # noqa: E402
import venv_  # noqa: E402
from trouble import Trouble  # noqa: E402


def main() -> int:
    started = time.monotonic()
    with open(ROOT / ".setup.lock", "w") as lock:
        # Two terminals may call make at once: the second waits, then finds everything done.
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            worked = venv_.ensure(ROOT, os.environ.get("PYTHON", ""))
            home = java.ensure(ROOT)
            fetched = jars.ensure(ROOT, home)
            worked |= fetched | classes.ensure(ROOT, home, fetched)
        except Trouble as trouble:
            print(f"set-up: {trouble}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("set-up: interrupted; the next call continues", file=sys.stderr)
            return 130
    if worked:
        print(f"set-up: ready in {time.monotonic() - started:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
