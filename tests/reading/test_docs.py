"""Every example of docs/reading.md, run as it is written: all read the same moment, whatever happens meanwhile."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.reading.small import FIRST, Small

PAGE = Path(__file__).parents[2] / "docs/reading.md"


def examples() -> dict[str, str]:
    """The Python of each section, by its heading."""
    found: dict[str, str] = {}
    for section in re.split(r"^##+ ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE):
        code = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
        if code:
            found[section.partition("\n")[0]] = "\n".join(code)
    return found


FIRST_OF_ALL = "Other programs"
EXAMPLES = [name for name in examples() if name != FIRST_OF_ALL]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.spark] if name == "Spark" else []) for name in EXAMPLES]
)
def test_an_example_reads_the_moment(
    name: str, small: Small, run: Run, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = examples()
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    names: dict[str, Any] = {}
    exec(shown[FIRST_OF_ALL], names)
    expected = run(
        "query", "SELECT part, k, s.x, a.x AS x_a FROM s JOIN a USING (part, k) ORDER BY part, k", "--json"
    ).json
    small.ingest({FIRST: {"k": 77}, FIRST + 4: {"k": 1}})
    small.run()
    if name == "Spark":
        names["spark"] = request.getfixturevalue("spark")
    exec(shown[name], names)
    assert list(names["rows"]) == [tuple(row.values()) for row in expected]
    assert len(expected) == 8


def test_there_is_an_example_for_everyone() -> None:
    assert EXAMPLES == ["delta-rs", "pandas", "DuckDB", "Polars", "Spark", "Python, without any of them"]
