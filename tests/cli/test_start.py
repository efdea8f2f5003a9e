"""Commands start quickly: they import what they need and nothing else."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from partwise.cli.app import COMMANDS, command_names
from partwise.cli.reference import pages
from tests.cli.conftest import ROOT, Run

HEAVY = ("pyspark", "airflow", "pandas", "great_expectations", "deltalake", "duckdb", "alembic")
#: Definitions that were read once need neither their model nor a parser of SQL.
PARSERS = ("sqlglot", "pydantic", "pydantic_core")
_IMPORTED = """
import sys
from partwise.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert end.code == 0, end.code
print("IMPORTED", *(name for name in sys.modules if "." not in name))
"""


def call(folder: Path, cache: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PARTWISE_CACHE": str(cache), "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(ROOT / "view_defs", folder / "view_defs")
    shutil.copy(ROOT / "partwise.yaml", folder)
    done = call(folder, cache, "-m", "partwise.cli", "empty", "measurements", "2026-10-03T10:00..2026-10-03T10:04")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize(
    "command",
    ["--help", "validate", "plan", "status", "status measurements", "why total_loss 2026-10-03T10:03",
     "changes measurements --since 2026-01-01", "explain loss_by_region", "explain high_loss",
     "close measurements 2026-10-03T10:05", "empty measurements 2026-10-03T10:06..2026-10-03T10:08", "init new"],
)  # fmt: skip
def test_nothing_heavy_is_imported(folder: Path, cache: Path, command: str) -> None:
    """Seconds depend on the machine; what is imported is nearly all of what a command takes to start."""
    done = call(folder, cache, "-c", _IMPORTED, *command.split())
    assert done.returncode == 0, done.stderr
    imported = done.stdout.rpartition("IMPORTED")[2].split()
    assert [name for name in HEAVY if name in imported] == []
    if not command.startswith("explain"):  # which asks the translators for their reasons
        assert [name for name in PARSERS if name in imported] == []


def test_steps_need_no_parser_of_sql(folder: Path, cache: Path) -> None:
    """What `run` imports before it loads and computes: what queries mean was found out when they were read."""
    code = "import sys, spark_jobs.ingest.api, spark_jobs.run\nprint([n for n in sys.argv[1:] if n in sys.modules])"
    done = call(folder, cache, "-c", code, *PARSERS, "airflow", "duckdb", "great_expectations")
    assert done.stdout == "[]\n", done.stderr


def test_every_command_without_spark_is_looked_at() -> None:
    marks = [mark for mark in getattr(test_nothing_heavy_is_imported, "pytestmark", []) if mark.name == "parametrize"]
    named = {command.split()[0] for command in marks[0].args[1]}
    assert named >= {"init", "validate", "explain", "plan", "status", "why", "changes", "close", "empty"}


def test_help_imports_no_command(folder: Path, cache: Path) -> None:
    code = _IMPORTED.replace('if "." not in name', 'if ".commands." in name')
    assert call(folder, cache, "-c", code, "--help").stdout.rpartition("IMPORTED")[2].split() == []


def test_help_names_every_command(run: Run) -> None:
    shown = run("--help").out
    found = {line.split()[0] for line in shown.partition("Commands:")[2].splitlines() if line[2:3].strip()}
    assert found >= {"init", "validate", "explain", "plan", "status", "why", "changes", "close", "empty"}
    assert found == set(command_names())


def test_a_command_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    package = tmp_path / "more_commands"
    package.mkdir()
    (package / "say_hello.py").write_text(
        '"""Says hello."""\n\ndef command(name: str) -> None:\n    print("hello", name)\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("partwise.cli.app.COMMANDS", (*COMMANDS, "more_commands"))
    assert "say-hello Says hello" in " ".join(run("--help").out.split())
    assert run("say-hello", "Ann").out == "hello Ann\n"


@pytest.mark.parametrize(
    "typed, found",
    [("partwise st", "status"), ("partwise status mea", "measurements"), ("partwise plan tot", "total_loss"),
     ("partwise close ", "measurements"), ("partwise explain --wor", "--workspace")],
)  # fmt: skip
def test_the_shell_completes(
    folder: Path, cache: Path, typed: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_PARTWISE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split(" ")) - 1))
    assert call(folder, cache, "-m", "partwise.cli").stdout.split() == [found]


def test_the_reference_is_current() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert page == pages(), "python -m partwise.cli.reference > docs/commands.md"


def test_every_command_takes_a_workspace_and_says_what_to_do() -> None:
    sections = {text.partition("\n")[0]: text for text in pages().split("\n## partwise ")[1:]}
    assert {name for name, text in sections.items() if "--workspace" not in text} == {"init"}, (
        "init makes the workspace"
    )
    for name, text in sections.items():
        first = re.findall(r"^  ([A-Z]\w+)", text, re.MULTILINE)[0]
        assert re.fullmatch(r".*(ss|[^s])", first), f"{name}: help texts are imperative, not '{first}'"


def test_a_session_that_starts_late_leaves_ctrl_c_to_the_command() -> None:
    """PySpark puts a handler of its own in place when it starts a driver."""
    from spark_jobs.session.late import late

    class Session:
        version = "4"

    def start() -> Session:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return Session()

    before = signal.getsignal(signal.SIGINT)
    try:
        assert late(start).version == "4"  # type: ignore[arg-type]
        assert signal.getsignal(signal.SIGINT) is before
    finally:
        signal.signal(signal.SIGINT, before)
