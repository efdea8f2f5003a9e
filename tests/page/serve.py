"""The page without Airflow, for tests, screenshots and measurements: whoever asks is the user that was given.

python -m tests.page.serve FOLDER PORT [NOW]
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request

from partwise.ledger.read.snapshot import Snapshot
from partwise.page.place import PageWorkspace

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "plugins"))  # as Airflow does

from partwise_page.app import create_app  # noqa: E402
from partwise_page.gate import Gate  # noqa: E402


class PlaceAt(PageWorkspace):
    """A place whose clock stands still."""

    def __init__(self, workspace: str, now: float | None) -> None:
        super().__init__(workspace)
        self.now = now

    @contextmanager
    def snapshot(self, now: float | None = None) -> Iterator[Snapshot]:
        with super().snapshot(self.now if now is None else now) as found:
            yield found


@dataclass
class Runs:
    """Stands for Airflow: who may start what, and what was started."""

    allowed: bool = True
    started: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    state: str = "running"  # of whatever was started
    asked: Callable[[str], object] = lambda dag: None  # with every DAG that somebody's permission is requested

    async def trigger(self, request: Request, dag: str, values: dict[str, Any]) -> str:
        self.started.append((dag, values))
        return f"manual__{len(self.started)}"

    def gate(self) -> Gate:
        return Gate(user=lambda: "somebody", may_trigger=self.may_trigger, trigger=self.trigger)

    def may_trigger(self, user: object, dag: str) -> bool:
        self.asked(dag)
        return self.allowed


def application(folder: Path, now: float | None, runs: Runs) -> FastAPI:
    """Mounted as in Airflow."""
    app = FastAPI()
    app.state.place = PlaceAt(str(folder), now)
    app.mount("/partwise", create_app(app.state.place, runs.gate()))

    @app.get("/api/v2/dags/partwise_backfill/dagRuns/{run}")
    def state_of(run: str) -> dict[str, str]:
        return {"dag_run_id": run, "state": runs.state}

    return app


@contextmanager
def serving(app: FastAPI, port: int = 0) -> Iterator[str]:
    """The application on the loopback address, in a thread."""
    listening = socket.create_server(("127.0.0.1", port))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()


def workspace(folder: Path) -> str:
    """An empty workspace; returns the URL of its ledger."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "partwise.yaml").write_text("")
    (folder / "view_defs").mkdir(exist_ok=True)
    return f"sqlite:///{folder / 'ledger.db'}"


if __name__ == "__main__":
    at = float(sys.argv[3]) if len(sys.argv) > 3 else None
    with serving(application(Path(sys.argv[1]), at, Runs()), int(sys.argv[2])) as address:
        print(f"{address}/partwise/", flush=True)
        threading.Event().wait()
