"""Commands with their JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from partwise.cli import main


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("PARTWISE_CACHE", "off")

    def call(*words: str, code: int = 0) -> Any:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([*words, "--json"])
        said = capsys.readouterr()
        assert ended.value.code == code, said.err
        return json.loads(said.out)

    return call
