"""A store that loses answers, drops and repeats requests, fails, or refuses old keys: nothing is lost or doubled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from partwise import storage
from partwise.storage.damage import damage
from partwise.storage.query import PinnedTable, arrow, query
from tests.object_store.store import Lake
from tests.object_store.tables import SCHEMA, rows, stage, write

ROOT = Path(__file__).parents[2]
COMMIT = r"^PUT .*/_delta_log/0{19}1\.json"


@pytest.fixture
def path(lake: Lake) -> str:
    return storage.create(f"{lake.url}/warehouse/t", SCHEMA).path


@pytest.mark.parametrize("do", ["lose", "repeat", "drop", "fail"])
def test_a_commit_whose_answer_is_lost_is_made_once(lake: Lake, path: str, do: str) -> None:
    """Seen by the client as an error or as somebody else's commit; the log says whose it was."""
    handle = storage.open_at(path)
    files = stage(handle, "a", [(1, "a", 1.0)])
    lake.server.faults({"match": COMMIT, "do": do, "times": 1})
    assert storage.commit(handle, files, (), {"step": "a"}) == 1
    assert [found.version for found in storage.entries(path, -1)] == [0, 1]
    assert rows(path) == [(1, "a", 1.0)]


@pytest.mark.parametrize("do", ["lose", "repeat", "drop", "fail"])
def test_a_staged_file_whose_answer_is_lost_is_taken_for_ours(lake: Lake, path: str, do: str, tmp_path: Path) -> None:
    """The same for the note that a step leaves. Another file under its name is never overwritten."""
    from partwise.storage.staging import write as put
    from tests.storage import tables as local

    scratch = storage.create(str(tmp_path / "t"), SCHEMA)
    contents = [
        (tmp_path / "t" / f.path).read_bytes() for f in local.stage(scratch, "x", [(1, "a", 1.0)], [(1, "b", 2.0)])
    ]
    handle = storage.open_at(path)
    lake.server.faults(
        {"match": "^PUT .*/_staged/a", "do": do, "times": 1}, {"match": "^PUT .*/s-a/", "do": do, "times": 1}
    )
    storage.begin(handle, "a")
    file = put(handle, "a", "part-0.parquet", contents[0])
    with pytest.raises(storage.CommitRefused, match="is there already"):
        put(handle, "a", "part-0.parquet", contents[1])
    assert storage.commit(handle, [file], (), {"step": "a"}) == 1
    storage.finish(path, "a")
    assert rows(path) == [(1, "a", 1.0)]
    assert not [name for name in lake.names() if "_staged" in name]


def test_a_lost_race_is_not_taken_for_a_lost_answer(lake: Lake, path: str) -> None:
    mine, other = storage.open_at(path), storage.open_at(path)
    files = stage(mine, "a", [(1, "a", 1.0)])
    storage.commit(other, stage(other, "b", [(1, "b", 2.0)]), (), {})
    lake.server.faults({"match": COMMIT, "do": "lose", "times": 1})
    with pytest.raises(storage.Conflict):
        storage.commit(mine, files, (), {})
    assert rows(path) == [(1, "b", 2.0)]


def test_a_table_is_made_once_when_the_answer_is_lost(lake: Lake) -> None:
    lake.server.faults({"match": r"^PUT .*/_delta_log/0{20}\.json", "do": "lose", "times": 1})
    assert storage.create(f"{lake.url}/t", SCHEMA).version == 0


def test_random_faults_change_nothing(lake: Lake, path: str) -> None:
    """Two requests of every step go wrong in one way or another."""
    chosen, expected = random.Random(7), []
    for number in range(12):
        faults = [
            {"match": chosen.choice(["^GET", "^PUT", "^POST", "^HEAD", COMMIT.replace("1", ".")]), "do": do, "times": 1}
            for do in chosen.sample(["lose", "repeat", "drop", "fail"], 2)
        ]
        lake.server.faults(*faults)
        write(path, f"step-{number}", (number, "a", float(number)))
        expected.append((number, "a", float(number)))
        lake.server.faults()
        assert rows(path) == expected
    assert not [name for name in lake.names() if "_staged" in name]


def test_a_slow_store_is_waited_for(lake: Lake, path: str) -> None:
    lake.server.faults({"match": COMMIT, "do": "delay", "seconds": 1.5, "times": 1})
    assert write(path, "a", (1, "a", 1.0)) == 1


def test_expired_keys_are_named_and_renewed_ones_go_on(
    lake: Lake, path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By a profile: its file is read again, so that a process that runs goes on."""
    profile = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(profile))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)

    def renew() -> str:
        """Keys that a role gives for a while."""
        given = lake.server.temporary_keys()
        profile.write_text("[default]\n" + "".join(f"{name} = {value}\n" for name, value in given.items()))
        return given["aws_access_key_id"]

    old = renew()
    write(path, "first", (0, "z", 1.0))
    handle = storage.open_at(path)
    files = stage(handle, "a", [(1, "a", 1.0)])
    lake.server.faults({"match": ".", "do": "expire", "key": old})
    for refused in (
        lambda: storage.commit(handle, files, (), {}),
        lambda: storage.open_at(path),
        lambda: storage.exists(path),
        lambda: storage.create(path, SCHEMA),
        lambda: storage.staged(path, "a"),
        lambda: storage.entries(path, -1),
        lambda: storage.unknown(path, 1),
        lambda: lake.bucket().head("any"),
        lambda: damage(path, 1),  # it is not destroyed: nobody knows
        lambda: query("SELECT * FROM t", {"t": PinnedTable(path, 1)}),
        lambda: arrow("SELECT * FROM t", {"t": PinnedTable(path, 1)}),
    ):
        with pytest.raises(storage.StoreProblem, match="the keys have expired; renew them"):
            refused()
    renew()
    again = storage.open_at(path)
    assert again.version == 1
    assert storage.commit(again, storage.staged(path, "a"), (), {}) == 2
    assert rows(path) == [(0, "z", 1.0), (1, "a", 1.0)]


def test_what_is_wrong_is_said_in_one_sentence(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    from partwise import object_store

    with pytest.raises(storage.StoreProblem, match=r"^s3://nowhere/t: there is no bucket nowhere; make it first\.$"):
        storage.exists("s3://nowhere/t")
    with pytest.raises(storage.StoreProblem, match="there is no bucket nowhere"):
        storage.create("s3://nowhere/t", SCHEMA)
    object_store.remember(object_store.Store("http://127.0.0.1:9"), "s3://gone/x")
    monkeypatch.setattr("partwise.storage.remote._RETRY", {"max_retries": 0})
    with pytest.raises(storage.StoreProblem, match=r"the store does not answer at http://127\.0\.0\.1:9; check"):
        storage.exists("s3://gone/x")


RACE = """
    import sys
    from partwise import object_store, storage
    from tests.object_store.tables import stage
    endpoint, path, name = sys.argv[1:]
    object_store.remember(object_store.Store(endpoint), path)
    handle = storage.open_at(path, 0)
    files = stage(handle, name, [(1, name, 1.0)])
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        storage.commit(handle, files, (), {"by": name})
        print("won", flush=True)
    except storage.Conflict:
        print("lost", flush=True)
"""


def started(lake: Lake, path: str, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(RACE), lake.server.url, path, name]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ)


def test_of_racing_processes_one_wins(lake: Lake, path: str) -> None:
    racers = [started(lake, path, f"racer-{number}") for number in range(4)]
    try:
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        ended = [racer.communicate(timeout=60)[0] for racer in racers]
    finally:
        for racer in racers:
            racer.kill()
    assert sorted(ended) == ["lost\n"] * 3 + ["won\n"]
    assert [found.version for found in storage.entries(path, -1)] == [0, 1]
    assert len(rows(path)) == 1


def test_a_killed_writer_leaves_the_table_as_it_was(lake: Lake, path: str) -> None:
    """Its request reaches the store late, when somebody else has committed: it must not count any more."""
    lake.server.faults({"match": COMMIT, "do": "delay", "seconds": 3, "times": 1})
    zombie = started(lake, path, "zombie")
    try:
        assert zombie.stdout is not None
        assert zombie.stdin is not None
        assert zombie.stdout.readline() == "ready\n"
        zombie.stdin.write("go\n")
        zombie.stdin.flush()
        while not any("00001.json" in line and line.startswith("PUT") for line in lake.server.requests()):
            assert zombie.poll() is None
        zombie.send_signal(signal.SIGKILL)
        zombie.wait(timeout=30)
    finally:
        zombie.kill()
    assert write(path, "next", (1, "next", 2.0)) == 1
    assert rows(path) == [(1, "next", 2.0)]
