"""A line that tells how far a backfill has come."""

from __future__ import annotations

from partwise.parts import duration_text

_WIDTH = 24


def bar(done: int, unchanged: int, left: int, elapsed: float, expected: float | None = None) -> str:
    """`[######..] 12 of 40 parts, 3 unchanged, 28 left, about 40 seconds`.

    `elapsed`: seconds for what is done; `expected`: seconds for what is left, to go by while nothing is done yet.
    """
    of = done + left
    filled = _WIDTH if not of else done * _WIDTH // of
    time = elapsed / done * left if done else expected
    words = [f"{done:,} of {of:,} parts"]
    if unchanged:
        words.append(f"{unchanged:,} unchanged")
    if left:
        words.append(f"{left:,} left")
        words += [] if time is None else [about(time)]
    return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {', '.join(words)}"


def about(seconds: float) -> str:
    """Rounded, as guesses should be."""
    for limit, unit in ((90, 1), (90 * 60, 60), (36 * 3600, 3600)):
        if seconds < limit:
            return f"about {duration_text(max(1, round(seconds / unit)) * unit)}"
    return f"about {duration_text(round(seconds / 86400) * 86400)}"
