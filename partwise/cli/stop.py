"""How a command ends when it cannot do what was asked."""

from __future__ import annotations

#: Exit codes.
FINE, PROBLEMS, WRONG_USE = 0, 1, 2


class Stop(Exception):
    """Ends the command with a message for people: one or two sentences, what is wrong and what to do."""

    def __init__(self, message: str, code: int = PROBLEMS) -> None:
        super().__init__(message)
        self.code = code


def wrong_use(message: str) -> Stop:
    return Stop(message, WRONG_USE)
