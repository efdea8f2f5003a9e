"""Definitions are remembered between commands, and never wrongly."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from partwise.compile import cache
from partwise.compile.load import load

ROOT = Path(__file__).parents[2]
SOURCE = "source: m\npart: 1 minute\ntime: t\ncolumns: {t: timestamp, src: string}\nfiles: a.csv\n"
VIEW = "---\nview: v\npart: 1 minute\nupdate: SELECT src FROM m[j]\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARTWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "definitions"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.yaml"
    path.write_text(SOURCE + VIEW)
    return path


def test_remembered_is_the_same(folder: Path, file: Path) -> None:
    first = load(file)
    assert len(list(folder.iterdir())) == 1
    again = load(file)
    assert again == first
    assert again.graph().tables == first.graph().tables


def test_remembered_definitions_need_no_parser(folder: Path, file: Path) -> None:
    code = (
        "import sys; from partwise.compile.load import load;"
        f"found = load({str(file)!r}); assert found.ok and set(found.graph().order) == {{'m', 'v'}};"
        "print([m for m in ('sqlglot', 'pydantic', 'yaml') if m in sys.modules])"
    )
    run = [sys.executable, "-c", code]
    outputs = [
        subprocess.run(run, capture_output=True, text=True, check=True, cwd=ROOT, env=os.environ).stdout.strip()
        for _ in range(2)
    ]
    assert outputs == ["['sqlglot', 'pydantic', 'yaml']", "[]"]


def test_other_content_is_read_anew(folder: Path, file: Path) -> None:
    assert load(file).ok
    file.write_text(SOURCE + VIEW.replace("src FROM", "nope FROM"))
    assert [p.code for p in load(file).problems] == ["unknown-column"]


def test_other_code_reads_anew(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {str(file): file.read_bytes()}
    before = cache.key(texts)
    assert cache.key(texts) == before
    assert cache.key({"other.yaml": file.read_bytes()}) != before
    monkeypatch.setattr(cache, "_code", lambda: [("load.py", 1, 1)])
    assert cache.key(texts) != before


def test_a_damaged_entry_is_read_anew(folder: Path, file: Path) -> None:
    load(file)
    for damage in (b"", b"not a pickle", b"\x80\x04N."):
        next(iter(folder.glob("*.pickle"))).write_bytes(damage)
        assert set(load(file).tables) == {"m", "v"}


def test_a_folder_that_others_can_write_to_is_not_used(folder: Path, file: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert load(file).ok
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_no_problem(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTWISE_CACHE", str(file))
    assert load(file).ok


def test_old_entries_go(folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MOST_ENTRIES", 3)
    for number in range(6):
        file.write_text(SOURCE.replace("source: m", f"source: m{number}"))
        assert set(load(file).tables) == {f"m{number}"}
    assert len(list(folder.iterdir())) == 3
