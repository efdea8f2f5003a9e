"""Every problem that definitions can have, with its text, in files to read: tests/golden/problems_in_*.txt."""

import re
from pathlib import Path

import pytest

from partwise.compile.load import load_texts
from partwise.definitions import CODES
from partwise.definitions.problems import QUERY_CODES
from tests.golden import FOLDER, Golden

GOLDEN = [Golden(path.name) for path in sorted(FOLDER.glob("problems_in_*.txt"))]
CASES = [(golden, name) for golden in GOLDEN for name in golden.cases]
#: No file of text can hold it.
NOT_UTF_8 = b"source: m\ndescription: caf\xe9\n"
#: Cannot be shown by a file's content, or only by a query that the translator refuses.
ELSEWHERE = {"cannot-read", "not-translated", "query-warning", "internal"}


def told(name: str, content: bytes) -> str:
    found = load_texts({name: content})
    lines = []
    for problem in found.problems:
        lines.append(f"{problem}" + ("" if problem.severity == "error" else f" ({problem.severity})"))
        if problem.hint:
            lines.append(f"    {problem.hint}")
    usable = ", ".join(found.usable) or "nothing"
    return "\n".join([*lines, f"usable: {usable}", ""])


@pytest.mark.parametrize("golden, name", CASES)
def test_problems_read_as_expected(golden: Golden, name: str) -> None:
    golden.check(name, told(f"{name}.yaml", golden.cases[name].encode()))


def test_bytes_that_are_not_utf_8() -> None:
    lines = [
        "encoding.yaml:2:17: encoding: the byte 0xE9 is not UTF-8 text",
        "    save the file as UTF-8",
        "usable: nothing",
    ]
    assert told("encoding.yaml", NOT_UTF_8).splitlines() == lines


def test_every_code_has_an_example_and_no_example_has_an_unknown_code() -> None:
    texts = [("encoding", NOT_UTF_8), *((name, golden.cases[name].encode()) for golden, name in CASES)]
    shown = {p.code for name, text in texts for p in load_texts({f"{name}.yaml": text}).problems}
    assert shown - set(CODES) - set(QUERY_CODES) == set()
    assert set(CODES) - shown - ELSEWHERE == set()


def test_every_code_of_the_translator_is_explained() -> None:
    """Found in its source: codes are the first plain words in quotes after the place of a problem."""
    folder = Path(__file__).parents[2] / "partwise" / "compile"
    text = "\n".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    used = set(re.findall(r'Problem\(\s*[^"()]*(?:\([^"()]*\))?[^"()]*"([a-z]+-[a-z-]+)"', text))
    assert len(used) > 10
    assert used - set(CODES) - set(QUERY_CODES) == set()
