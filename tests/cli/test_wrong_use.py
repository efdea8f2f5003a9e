"""Whatever goes wrong is said in a sentence or two, with a code: 2 = wrong use, 1 = problems found."""

import sqlite3
from pathlib import Path

import pytest

from partwise.cli import app
from tests.cli.conftest import Run


@pytest.mark.parametrize(
    "command, words",
    [
        ("plan totalloss", "There is no view totalloss; did you mean total_loss?"),
        ("plan measurements", "measurements is a source, not a view"),
        ("status measurments", "There is no table measurments; did you mean measurements?"),
        ("why xyz 2026-10-03T10:05", "There is no table xyz; there are high_loss, "),
        ("explain nodes", "nodes is a dimension, not a view or source"),
        ("close total_loss 2026-10-03T10:05", "total_loss is a view, not a source; there is measurements."),
        ("close measurements 10:05", "'10:05' is not a time; write for example 2026-10-03"),
        ("close measurements 2026-10-03T10:05:30", "the part that holds it is 2026-10-03T10:05"),
        ("why loss_by_region 2026-10-03T10:03", "not the start of a part of 5 minutes"),
        ("empty measurements 2026-10-03T10:09..2026-10-03T10:05", "written backwards; did you mean"),
        ("changes measurements --since soon", "'soon' is not a time"),
        ("changes measurements", "Missing option '--since'"),
        ("status --range 2026-10-03", "--range is for one table"),
        ("why total_loss", "Which part?"),
        ("stats", "Did you mean 'status'"),
        ("plan --nonsense", "No such option"),
        ("status --workspace nowhere", "there is no folder nowhere"),
        ("validate nothing.yaml", "There is no file or folder nothing.yaml"),
    ],
)
def test_wrong_use(run: Run, workspace: Path, command: str, words: str) -> None:
    done = run(*command.split())
    assert done.code == 2, done
    assert words in done.err
    assert done.out == ""
    assert "Traceback" not in done.err


def test_no_workspace(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("status")
    assert done.code == 2
    assert "This is not a workspace" in done.err
    assert "`partwise init DIR`" in done.err


def test_a_folder_below_belongs_to_the_workspace(run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(workspace / "a" / "b")
    assert run("status").code == 0


@pytest.mark.parametrize("command", ["status", "plan", "validate", "close measurements 2026-10-03T10:05"])
def test_no_definitions(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    (tmp_path / "partwise.yaml").write_text("")
    monkeypatch.chdir(tmp_path)
    done = run(*command.split())
    assert (done.code, "There are no definitions" in done.err) == (1, True)


@pytest.mark.parametrize(
    "url, words",
    [
        ("sqlite:///no/such/folder/ledger.db", "There is no folder"),
        ("mysql://host/db", "SQLite or PostgreSQL, not in mysql"),
        ("postgresql+psycopg2://x:secret@127.0.0.1:1/db", "cannot be opened"),
        ("nonsense", "cannot be understood"),
    ],
)
def test_a_ledger_that_cannot_be_opened(
    run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch, url: str, words: str
) -> None:
    monkeypatch.setenv("PARTWISE_LEDGER", url)
    done = run("close", "measurements", "2026-10-03T10:05")
    assert (done.code, words in done.err) == (1, True), done.err
    assert "secret" not in done.err


def test_a_ledger_that_is_no_database(run: Run, workspace: Path) -> None:
    (workspace / "ledger.db").write_text("this is not a database, but it is long enough to look like a file of one" * 9)
    done = run("status")
    assert (done.code, "Traceback" in done.err) == (1, False)
    assert "ledger" in done.err


def test_someone_else_writes(run: Run, workspace: Path) -> None:
    run("empty", "measurements", "2026-10-03T10:00")
    with sqlite3.connect(workspace / "ledger.db") as database:
        database.execute("UPDATE lease SET holder = 'ann@host', expires = 9e12 WHERE \"table\" = 'measurements'")
    done = run("close", "measurements", "2026-10-03T10:05")
    assert (done.code, "measurements is being written by ann@host; try again" in done.err) == (1, True)


def test_a_fault_of_ours_is_short_unless_asked_for(run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the moon is full")

    monkeypatch.setattr("partwise.cli.commands.status.workspace_of", broken)
    done = run("status")
    assert (done.code, "Traceback" in done.err) == (1, False)
    assert "the moon is full" in done.err
    assert "PARTWISE_DEBUG=1" in done.err
    monkeypatch.setenv("PARTWISE_DEBUG", "1")
    assert "Traceback" in run("status").err


def test_every_command_has_help_with_an_example_and_takes_json_and_a_workspace(run: Run) -> None:
    for name in app.command_names():
        shown = run(name, "--help").out
        assert f"partwise {name}" in shown.partition("Example:")[2], name
        assert "--json" in shown or name == "serve", name  # it answers nothing, it runs
        assert "--workspace" in shown or name in ("init", "driver"), name  # drivers serve all workspaces of a user
