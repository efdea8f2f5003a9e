"""An archive of the classes that Spark loads when it starts, in `.jars`: drivers that find it start with less work.

It is only a help: without it everything works, so nothing that goes wrong here stops the set-up.
"""

import os
import subprocess
from pathlib import Path

from trouble import say


def ensure(root: Path, java_home: Path, new_jars: bool) -> bool:
    """Makes the archive if there is none, or if the jars are others; True when there was something to do."""
    maker = root / "spark_jobs" / "session" / "archive.py"
    if not maker.exists() or (not new_jars and any((root / ".jars").glob("classes-*.jsa"))):
        return False
    say("keeping the classes that Spark loads, so that it starts quicker")
    command = [str(root / ".venv/bin/python"), "-m", "spark_jobs.session.archive"]
    environment = {**os.environ, "JAVA_HOME": str(java_home)}
    try:
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as why:
        say(f"that did not work ({why}); Spark starts without them")
        return True
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        say(f"that did not work ({last}); Spark starts without them")
    return True
