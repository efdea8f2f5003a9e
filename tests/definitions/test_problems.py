"""Every problem that definitions can have, with its text, as a file to read: tests/golden/problems.

`PARTWISE_WRITE_GOLDEN=1 pytest tests/definitions/test_problems.py` writes them again; look at the difference.
"""

import os
import re
from pathlib import Path

import pytest

from partwise.compile.load import load_texts
from partwise.definitions import CODES
from partwise.definitions.problems import QUERY_CODES

FOLDER = Path(__file__).parents[1] / "golden" / "problems"
FILES = sorted(FOLDER.glob("*.yaml"))
#: Cannot be shown by a file's content, or only by a query that the translator refuses.
ELSEWHERE = {"cannot-read", "not-translated", "query-warning", "internal"}


def told(path: Path) -> str:
    found = load_texts({path.name: path.read_bytes()})
    lines = []
    for problem in found.problems:
        lines.append(f"{problem}" + ("" if problem.severity == "error" else f" ({problem.severity})"))
        if problem.hint:
            lines.append(f"    {problem.hint}")
    usable = ", ".join(found.usable) or "nothing"
    return "\n".join([*lines, f"usable: {usable}", ""])


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_problems_read_as_expected(path: Path) -> None:
    expected = path.with_suffix(".txt")
    if os.environ.get("PARTWISE_WRITE_GOLDEN"):
        expected.write_text(told(path), encoding="utf-8")
    assert told(path) == expected.read_text(encoding="utf-8")


def test_every_code_has_an_example_and_no_example_has_an_unknown_code() -> None:
    shown = {p.code for path in FILES for p in load_texts({path.name: path.read_bytes()}).problems}
    assert shown - set(CODES) - set(QUERY_CODES) == set()
    assert set(CODES) - shown - ELSEWHERE == set()


def test_every_code_of_the_translator_is_explained() -> None:
    """Found in its source: codes are the first plain words in quotes after the place of a problem."""
    folder = Path(__file__).parents[2] / "partwise" / "compile"
    text = "\n".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    used = set(re.findall(r'Problem\(\s*[^"()]*(?:\([^"()]*\))?[^"()]*"([a-z]+-[a-z-]+)"', text))
    assert len(used) > 10
    assert used - set(CODES) - set(QUERY_CODES) == set()
