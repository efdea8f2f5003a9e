"""An archive of the classes that Spark loads when it starts, in `.jars`: drivers that find it start with less work.

It is only a help: without it everything works, so nothing that goes wrong here stops the set-up.
"""

import os
import signal
import subprocess
from pathlib import Path

from trouble import say


def ensure(root: Path, java_home: Path, new_jars: bool) -> bool:
    """Makes the archive if there is none, or if the jars are others; True when there was something to do."""
    maker = root / "spark_jobs" / "session" / "archive.py"
    failed = root / ".jars" / "classes.failed"  # tried once: every target of make calls this
    tried = failed.exists() or any((root / ".jars").glob("classes-*.jsa"))
    if not maker.exists() or (tried and not new_jars):
        return False
    say("keeping the classes that Spark loads, so that it starts quicker")
    command = [str(root / ".venv/bin/python"), "-m", "spark_jobs.session.archive"]
    environment = {**os.environ, "JAVA_HOME": str(java_home)}
    # A group of its own, so that the driver goes with it.
    process = subprocess.Popen(
        command, cwd=root, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        _, errors = process.communicate(timeout=180)
        said = errors.decode(errors="replace").strip().splitlines()
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        said = ["it took too long"]
    if process.returncode:
        failed.touch()
        say(f"that did not work ({(said or ['no message'])[-1]}); Spark starts without them")
    return True
