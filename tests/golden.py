"""Golden files of many cases: what goes in and what must come out, side by side in a file that people can read.

    #### name of the case
    what goes in
    #--> what must come out
    what came out

`PARTWISE_WRITE_GOLDEN=1 pytest FILE` (one process) writes what comes out now; look at the difference before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"
_CASE, _OUT = "#### ", "#--> what must come out\n"


class Golden:
    """The cases of one file, in order: `cases` maps names to what goes in."""

    def __init__(self, name: str) -> None:
        self.path = FOLDER / name
        self.cases: dict[str, str] = {}
        self.expected: dict[str, str] = {}
        text = "\n" + self.path.read_text(encoding="utf-8")
        for block in text.split("\n" + _CASE)[1:]:
            title, _, body = block.partition("\n")
            given, _, out = body.partition(_OUT)
            self.cases[title], self.expected[title] = given, out.rstrip("\n") + "\n"

    def check(self, case: str, found: str) -> None:
        if os.environ.get("PARTWISE_WRITE_GOLDEN") and found.rstrip("\n") + "\n" != self.expected[case]:
            self.expected[case] = found
            self.path.write_text(written(self.cases, self.expected), encoding="utf-8")
        assert found.rstrip("\n") + "\n" == self.expected[case]


def written(cases: dict[str, str], expected: dict[str, str]) -> str:
    ended = {name: out.rstrip("\n") + "\n" for name, out in expected.items()}
    return "\n".join(f"{_CASE}{name}\n{given}{_OUT}{ended[name]}" for name, given in cases.items())
