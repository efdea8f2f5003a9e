"""What every step of the set-up uses: an error for people, and running a program."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


class Trouble(Exception):
    """Something the user has to know: one sentence, with what to type where there is something to type."""


def say(text: str) -> None:
    print(f"set-up: {text}", file=sys.stderr, flush=True)


def run(command: Sequence[str | Path], what: str, env: Mapping[str, str] | None = None) -> None:
    """Runs a program quietly; when it fails, its last words become the message."""
    try:
        done = subprocess.run(
            [str(part) for part in command],
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise Trouble(f"{what} failed: {error}") from error
    if done.returncode:
        last_words = "\n".join(done.stdout.strip().splitlines()[-15:])
        raise Trouble(f"{what} failed ({' '.join(str(part) for part in command[:4])} ...):\n{last_words}")


def can_install_system_packages() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install_system_package(*names: str) -> None:
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "update", "-q"], "reading the list of system packages", quiet)
    run(["apt-get", "install", "-q", "-y", "--no-install-recommends", *names], f"installing {' '.join(names)}", quiet)
