"""A server as a child process on the loopback address: a port for it, and its end."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def ending(process: subprocess.Popen[Any], seconds: float = 10) -> Iterator[None]:
    """Ends the process with the block: asked first, killed if it does not listen."""
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
