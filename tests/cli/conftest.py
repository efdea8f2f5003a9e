"""A copy of the example workspace, and commands run in it as a person would run them."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from partwise.cli import main

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Done]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cache: Path) -> Run:
    monkeypatch.setenv("PARTWISE_CACHE", str(cache))
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("PARTWISE_WORKSPACE", "")  # set, so that it is restored: `partwise -w DIR` writes it

    def call(*words: str) -> Done:
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        said = capsys.readouterr()
        return Done(ended.value.code, said.out, said.err)  # type: ignore[arg-type]

    return call


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example, and the place where commands run."""
    folder = tmp_path / "example"
    shutil.copytree(ROOT / "view_defs", folder / "view_defs")
    shutil.copy(ROOT / "partwise.yaml", folder)
    monkeypatch.chdir(folder)
    return folder
