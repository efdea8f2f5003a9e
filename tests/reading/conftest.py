"""Workspaces with real tables, and commands run in them as a person would run them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import cache, run  # noqa: F401
from tests.ledger.conftest import postgres, url  # noqa: F401
from tests.reading.small import FIRST, Small


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Small]:
    """Four parts of the source, and every view up to date."""
    found = Small(tmp_path / "place")
    found.ingest({FIRST + p: {"k": p + 1, "m": 10} for p in range(4)})
    found.run()
    monkeypatch.chdir(found.folder)
    yield found
    found.close()
