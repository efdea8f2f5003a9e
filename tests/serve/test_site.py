"""Ports, keys and the lock of a served workspace."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from partwise.serve.example import example
from partwise.serve.postgres import folder_of
from partwise.serve.screen import Screen
from partwise.serve.site.environment import environment
from partwise.serve.site.keys import keys_of
from partwise.serve.site.ports import Taken, is_free, taken, twice
from partwise.serve.site.prepare import open_site, own_ledger, take_over, tell_commands
from partwise.serve.site.site import CannotServe, Ports, Site
from partwise.serve.supervise import leftovers
from partwise.serve.supervise.child import free_port
from partwise.settings import SERVED, BadSetting, read_settings
from partwise.workspace import Workspace, open_workspace
from tests.airflow.product import mentioning


def test_a_port_in_use_is_named_with_what_to_change() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert not is_free(port)
        [found] = taken(Ports(airflow=port, spark=free_port(), spark_ui=free_port()))
        assert found == Taken("airflow", port)
        assert f"make run PORT={port + 1}" in str(found)
        assert f"partwise serve --port {port + 1}" in str(found)
    assert is_free(port)


def test_serving_on_a_port_in_use_starts_nothing_and_says_what_to_change(tmp_path: Path) -> None:
    (tmp_path / "partwise.yaml").touch()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        words = ["serve", "--workspace", str(tmp_path), f"--port={port}"]
        words += [f"--spark-port={free_port()}", f"--spark-ui-port={free_port()}"]
        done = subprocess.run([sys.executable, "-m", "partwise.cli", *words], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"Port {port}, needed for Airflow, is in use by another program." in done.stderr
    assert f"make run PORT={port + 1}" in done.stderr
    assert [file.name for file in (tmp_path / ".partwise").iterdir()] == ["lock"]


def test_a_port_given_twice_is_seen() -> None:
    assert twice(Ports(1, 2, 3)) == []
    assert twice(Ports(1, 2, 1)) == ["Port 1 is given to both Airflow and the pages of the Spark driver."]


def test_keys_are_made_once_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    first = keys_of(tmp_path)
    assert keys_of(tmp_path) == first
    assert len({first.fernet, first.jwt, first.session, first.password}) == 4
    assert keys_of(tmp_path / "other").password != first.password
    assert {file.stat().st_mode & 0o777 for file in tmp_path.glob("*.json")} == {0o600}


def test_a_password_that_people_chose_stays(tmp_path: Path) -> None:
    keys_of(tmp_path)
    (tmp_path / "passwords.json").write_text(json.dumps({"admin": "chosen", "other": "x"}))
    assert keys_of(tmp_path).password == "chosen"
    assert json.loads((tmp_path / "passwords.json").read_text())["other"] == "x"


@pytest.mark.parametrize(
    "text, said",
    [
        ('{"admin": "chosen",\n "other" "x"}', "passwords.json:2:10: not valid JSON: Expecting ':' delimiter"),
        ('["admin"]', "passwords.json: not a map of names to texts"),
        ('{"admin": 1}', "passwords.json: not a map of names to texts"),
        (b"\xff", "passwords.json cannot be read"),
    ],
)
def test_a_typing_error_in_the_passwords_is_told_with_its_place(tmp_path: Path, text: str | bytes, said: str) -> None:
    (tmp_path / "passwords.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CannotServe) as found:
        keys_of(tmp_path)
    assert said in str(found.value)
    assert 'such as {"admin": "a password"}' in str(found.value)


def test_serving_with_such_an_error_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "partwise.yaml").touch()
    (tmp_path / ".partwise").mkdir()
    (tmp_path / ".partwise/passwords.json").write_text('{"admin": "chosen"')
    words = [f"--{name}={free_port()}" for name in ("port", "spark-port", "spark-ui-port")]
    command = [sys.executable, "-m", "partwise.cli", "serve", "--workspace", str(tmp_path), *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "passwords.json:1:19: not valid JSON" in done.stderr
    assert mentioning(str(tmp_path)) == []
    assert not folder_of(tmp_path).exists()


def test_a_site_that_cannot_be_opened_leaves_no_database_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []

    class Server:
        def databases(self, *names: str) -> None:
            raise RuntimeError("no room left")

        def stop(self) -> None:
            told.append("stopped")

    monkeypatch.setattr("partwise.serve.postgres.start", lambda folder: Server())
    with pytest.raises(RuntimeError, match="no room left"):
        open_site(Site(tmp_path))
    assert told == ["stopped"]


def test_two_do_not_serve_one_workspace(tmp_path: Path) -> None:
    with (
        leftovers.alone(tmp_path),
        pytest.raises(leftovers.Occupied, match="served already"),
        leftovers.alone(tmp_path),
    ):
        pass
    with leftovers.alone(tmp_path):
        pass


def test_what_a_killed_supervisor_left_is_ended_and_nobody_else(tmp_path: Path) -> None:
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    ours, others = subprocess.Popen(sleep), subprocess.Popen(sleep)
    try:
        leftovers.note(tmp_path, {"ours": ours.pid, "others": others.pid})
        noted = json.loads((tmp_path / leftovers.FILE).read_text())
        noted["others"][1] -= 5  # the number belongs to another process by now
        (tmp_path / leftovers.FILE).write_text(json.dumps(noted))
        assert leftovers.end_leftovers(tmp_path) == ["ours"]
        time.sleep(0.1)
        assert not psutil.pid_exists(ours.pid) or ours.poll() is not None
        assert others.poll() is None
        assert leftovers.end_leftovers(tmp_path) == []
    finally:
        for process in (ours, others):
            process.kill()
            process.wait()


def test_the_example_reads_the_definitions_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / "view_defs").mkdir()
    folder = example(tmp_path)
    found = Workspace(folder, read_settings(folder / "partwise.yaml", {}))
    assert found.definitions_folder.resolve() == tmp_path / "view_defs"
    (folder / "partwise.yaml").write_text("timezone: Europe/Berlin")
    assert example(tmp_path) == folder
    assert (folder / "partwise.yaml").read_text() == "timezone: Europe/Berlin"


def test_a_socket_gets_a_short_and_plain_path(tmp_path: Path) -> None:
    for name in ("with space", "long" * 30):
        (tmp_path / name).mkdir()
        found = folder_of(tmp_path / name)
        assert tmp_path not in found.parents
        assert len(str(found)) < 90
        assert found == folder_of(tmp_path / name) != folder_of(tmp_path / f"{name}2")


class TestLedger:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "partwise.yaml").touch()
        return tmp_path

    def test_a_new_workspace_has_none(self, folder: Path) -> None:
        assert own_ledger(folder) is None

    def test_one_that_holds_something_is_kept(self, folder: Path) -> None:
        (folder / "ledger.db").touch()
        assert own_ledger(folder) == f"sqlite:///{folder}/ledger.db"

    def test_everybody_is_told_of_it(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A workspace that was used from the shell and is served now: components and commands go on with its ledger."""
        (folder / "view_defs").mkdir()
        (folder / "view_defs/m.yaml").write_text(
            "source: m\npart: 1 minute\ntime: t\ncolumns: {t: timestamp}\nfiles: landing/*.csv\n"
        )
        open_workspace(str(folder), {}).open_ledger(time.time()).database.close()

        class Server:
            def databases(self, *names: str) -> None:
                pass

            def url(self, database: str) -> str:
                return f"postgresql://embedded/{database}"

        monkeypatch.setattr("partwise.serve.postgres.start", lambda folder: Server())
        site, keys, _ = open_site(Site(folder))
        url = f"sqlite:///{folder}/ledger.db"
        assert (site.ledger_url, site.airflow_url) == (url, "postgresql://embedded/airflow")
        assert environment(site, keys, {})["PARTWISE_LEDGER"] == url
        assert take_over(site) == []
        tell_commands(site, keys)
        told = open_workspace(str(folder), {})
        assert (told.ledger_url, told.settings.airflow.password) == (url, keys.password)
        with Screen(site) as screen:
            assert [line.table for line in screen._look() or []] == ["m"]

    def test_a_database_of_the_user_is_kept(self, folder: Path) -> None:
        (folder / "partwise.yaml").write_text("ledger: postgresql://host/ledger")
        assert own_ledger(folder) == "postgresql://host/ledger"

    def test_our_own_is_not_taken_for_the_users(self, folder: Path) -> None:
        url = f"postgresql://postgres:@/ledger?host={folder}/.partwise/postgres"
        (folder / ".partwise").mkdir()
        (folder / SERVED).write_text(json.dumps({"PARTWISE_LEDGER": url}))
        assert open_workspace(str(folder), {}).ledger_url == url
        assert own_ledger(folder) is None

    def test_what_another_user_was_told_is_not_needed_where_the_ledger_is_given(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A workspace that was served here and is mounted into containers, where the user is another one."""
        read = Path.read_text

        def refuse(file: Path, encoding: str | None = None) -> str:
            if file.name == "served.json":
                raise PermissionError(13, "Permission denied", str(file))
            return read(file, encoding=encoding)

        monkeypatch.setattr(Path, "read_text", refuse)  # root could read it, whatever its mode
        given = {"PARTWISE_LEDGER": "postgresql://there/ledger"}
        assert open_workspace(str(folder), given).ledger_url == "postgresql://there/ledger"
        with pytest.raises(BadSetting, match="other users name the ledger by PARTWISE_LEDGER"):
            open_workspace(str(folder), {})

    def test_variables_win_over_what_was_told(self, folder: Path) -> None:
        (folder / ".partwise").mkdir()
        (folder / SERVED).write_text(json.dumps({"PARTWISE_LEDGER": "a", "PARTWISE_AIRFLOW_URL": "http://x"}))
        found = open_workspace(str(folder), {"PARTWISE_LEDGER": "sqlite:///b.db"}).settings
        assert (found.ledger, found.airflow.url) == ("sqlite:///b.db", "http://x")
