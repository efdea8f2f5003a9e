"""Something done again and again while other work goes on: renewing a lease, noting progress."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def heartbeat(every: float, beat: Callable[[], bool]) -> Iterator[None]:
    """Calls `beat` every so many seconds, in a thread, until the block ends or it returns False. No beat outlives the block."""
    over = threading.Event()

    def beating() -> None:
        while not over.wait(every) and beat():
            pass

    thread = threading.Thread(target=beating, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
