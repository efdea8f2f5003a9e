"""`partwise backfill` where Airflow carries it out: the same bar and the same report as here, from the ledger."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from partwise.airflow_api import AirflowProblem, Api, Unreachable, follow
from partwise.backfill import ask
from partwise.ledger.read.snapshot import as_defined
from partwise.ledger.records import backfills
from partwise.parts import parse_range
from partwise.settings import Airflow as Settings
from partwise.workspace import open_workspace
from tests.cli.conftest import Run
from tests.cli.stand_in import build_what_is_ready
from tests.cli.test_backfill import DAY, begun
from tests.cli.test_backfill import built as built  # the fixture


class Airflow:
    """Stands in for Airflow's API: a run begins its backfill, builds what is ready, and ends."""

    folder: Path
    conf: dict[str, Any]
    looks: int
    fails = False
    away: tuple[int, ...] = ()  # at which of the looks it cannot be reached

    def __init__(self, settings: Any) -> None:
        pass

    def post(self, path: str, body: dict[str, Any]) -> Any:
        Airflow.conf, Airflow.looks = body["conf"], 0
        return {"dag_run_id": "run 1"}

    def get(self, path: str) -> Any:
        if "taskInstances/" in path:
            return {"content": [{"error_detail": [{"exc_value": "not recomputed: total_loss"}]}]}
        if "taskInstances" in path:
            row = {"task_id": "compute_1", "rendered_map_index": "total_loss", "try_number": 1, "map_index": 0}
            return {"task_instances": [{**row, "state": self._state() if self.looks > 2 else "running"}]}
        Airflow.looks += 1
        if self.looks in self.away:
            raise Unreachable("Airflow cannot be reached.")
        if self.looks == 2:
            self._begin()
        if self.looks == 3 and not self.fails:
            build_what_is_ready(self.folder)
        return {"state": "running" if self.looks < 4 else self._state()}

    def _state(self) -> str:
        return "failed" if self.fails else "success"

    def _begin(self) -> None:
        where = open_workspace(str(self.folder), {})
        ledger, graph = where.open_ledger(time.time()), where.load().graph()
        with ledger.database.writing(time.time()) as w:
            if self.conf["resume"] is not None:
                backfills.go_on(w, graph, self.conf["resume"], "airflow:run 1", lambda _: False)
        if self.conf["resume"] is None:
            with as_defined(ledger, graph, time.time()) as snapshot:
                span = parse_range(self.conf["range"], 60)
                asked = ask(backfills.world_of(snapshot), self.conf["table"], span, self.conf["upstream"])
            with ledger.database.writing(time.time()) as w:
                backfills.begin(w, graph, asked, self.conf["downstream"], "airflow:run 1", lambda _: False)
        ledger.database.close()


@pytest.fixture
def airflow(built: Path, monkeypatch: pytest.MonkeyPatch) -> type[Airflow]:
    Airflow.folder = built
    monkeypatch.setenv("PARTWISE_AIRFLOW_URL", "http://there")
    monkeypatch.setattr("partwise.cli.through_airflow.Api", Airflow)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr(Airflow, "fails", False)
    monkeypatch.setattr(Airflow, "away", ())
    return Airflow


def test_the_report_is_that_of_a_backfill_here(run: Run, airflow: type[Airflow]) -> None:
    done = run("backfill", "total_loss", f"{DAY}10:06..{DAY}10:07", "--yes", "--json")
    assert done.code == 0, done.err
    plan, report = (json.loads(line) for line in done.out.splitlines())
    assert plan["plan"]["steps"][0]["kind"] == "requested"
    assert report["report"]["total_loss"]["recomputed"] == 2
    assert set(report["report"]["total_loss"]) == {"recomputed", "changed", "unchanged", "left"}
    assert (report["run"], report["state"]) == ("run 1", "success")
    assert airflow.conf == {
        "table": "total_loss",
        "range": f"{DAY}10:06..{DAY}10:07",
        "upstream": False,
        "downstream": True,
        "resume": None,
        "dry_run": False,
    }


def test_the_bar_is_drawn_on_a_terminal(run: Run, airflow: type[Airflow], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    done = run("backfill", "total_loss", f"{DAY}10:06..{DAY}10:07", "--yes")
    assert "[........................] 0 of 2 parts, 2 left" in done.err
    assert "2 of " in done.err
    assert "total_loss: done" in done.out
    assert "unchanged" in done.out
    assert "http://there/dags/partwise_backfill/runs/run 1" in done.out


def test_what_failed_is_told_and_can_go_on_there(
    run: Run, airflow: type[Airflow], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(airflow, "fails", True)
    done = run("backfill", "total_loss", f"{DAY}10:06", "--yes")
    assert done.code == 1
    assert "Not finished: `partwise backfill total_loss --resume` continues it." in done.out
    assert "The backfill failed: compute_1: not recomputed: total_loss" in done.err


def test_an_api_server_that_is_started_again_is_waited_for(
    run: Run, airflow: type[Airflow], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(airflow, "away", (1, 4, 5))
    done = run("backfill", "total_loss", f"{DAY}10:06..{DAY}10:07", "--yes", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out.splitlines()[-1])["state"] == "success"


def test_an_airflow_that_stays_away_is_given_up_after_a_minute(
    run: Run, airflow: type[Airflow], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(airflow, "away", range(1000))
    passed = [0.0]
    api: Any = airflow(None)
    api.post("", {"conf": {}})
    with pytest.raises(Unreachable):
        list(follow(api, "run 1", lambda: passed.append(passed[-1] + 2), clock=lambda: passed[-1]))
    assert passed[-1] == 60
    monkeypatch.setattr("partwise.airflow_api.PATIENCE", 0)
    done = run("backfill", "total_loss", f"{DAY}10:06", "--yes")
    assert (done.code, "cannot be reached. It continues in Airflow." in done.err) == (1, True)


class TestThisMachine:
    """A real server on the loopback address, with a proxy in the shell that does not exist."""

    @pytest.fixture
    def address(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
        for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                code = 503 if self.path.endswith("/busy") else 404 if self.path.endswith("/nothing") else 200
                self.send_response(code)
                self.end_headers()
                self.wfile.write(b'{"access_token": "t"}')

            do_POST = do_GET

            def log_message(self, *words: Any) -> None:
                pass

        with HTTPServer(("127.0.0.1", 0), Answers) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_port}"
            server.shutdown()

    def test_it_is_asked_directly(self, address: str) -> None:
        assert Api(Settings(address)).get("/here") == {"access_token": "t"}
        with pytest.raises(Unreachable, match="refused"):
            Api(Settings("http://airflow.invalid")).get("/here")  # the proxy refuses

    def test_what_may_pass_is_told_from_what_will_not(self, address: str) -> None:
        with pytest.raises(Unreachable, match="answers 503"):
            Api(Settings(address)).get("/busy")
        with pytest.raises(AirflowProblem, match="answers 404") as found:
            Api(Settings(address)).get("/nothing")
        assert not isinstance(found.value, Unreachable)


def test_going_on_is_airflows_as_well(run: Run, airflow: type[Airflow]) -> None:
    number = begun(airflow.folder, f"{DAY}10:06..{DAY}10:09", "elsewhere:1:a", "stopped")
    done = run("backfill", "--resume", "--yes", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out.splitlines()[-1])["report"]["total_loss"]["recomputed"] >= 4
    assert (airflow.conf["resume"], airflow.conf["table"]) == (number, "total_loss")


def test_waiting_comes_before_airflow_is_asked(
    run: Run, airflow: type[Airflow], monkeypatch: pytest.MonkeyPatch
) -> None:
    number = begun(airflow.folder, f"{DAY}10:06..{DAY}10:09", "elsewhere:1:a")
    refused = run("backfill", "total_loss", f"{DAY}10:06", "--yes")
    assert (refused.code, "(elsewhere:1:a) is working on some of these parts; use --wait" in refused.err) == (1, True)
    looks = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            ledger = open_workspace(str(airflow.folder), {}).open_ledger(time.time())
            with ledger.database.writing(time.time()) as w:
                backfills.finish(w, number, True)
            ledger.database.close()

    monkeypatch.setattr("time.sleep", sleep)
    done = run("backfill", "total_loss", f"{DAY}10:06", "--yes", "--wait")
    assert done.code == 0, done.err
    assert done.err.count("waiting for backfill") == 1  # told once, not every two seconds
