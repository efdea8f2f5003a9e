"""Why there is no answer: a code for programs, a message and a hint for people. Never a number."""

from __future__ import annotations


class Refused(Exception):
    """The whole query cannot be answered from a sample."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


def not_answerable(what: str, why: str) -> Refused:
    hint = "run without --fresh for the published rows"
    return Refused("not-answerable", f"{what} cannot be answered from a sample{': ' + why if why else ''}", hint)
