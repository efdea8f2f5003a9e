"""The little of Airflow's REST API that commands need: start a DAG, follow it, read what it says.

A call takes milliseconds; `airflow` on the command line would take seconds.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from partwise.settings import Airflow

BACKFILL = "partwise_backfill"
_TIMEOUT = 30.0
#: Seconds for which an Airflow that does not answer is asked again: longer than a restart of its api-server takes.
PATIENCE = 60.0
_OVER = ("success", "failed")


class AirflowProblem(Exception):
    """Airflow cannot be asked, or refuses; the message is meant for people."""


class Unreachable(AirflowProblem):
    """Airflow cannot be asked at this time; it may be different in a minute."""


@dataclass
class Api:
    """Calls with a token of the user's, fetched with the first one."""

    settings: Airflow
    _token: str | None = None

    def get(self, path: str) -> Any:
        return self._call("GET", f"/api/v2{path}", None)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._call("POST", f"/api/v2{path}", body)

    def _call(self, method: str, path: str, body: dict[str, Any] | None, signed: bool = True) -> Any:
        headers = {"Content-Type": "application/json"}
        if signed:
            headers["Authorization"] = f"Bearer {self._signed_in()}"
        content = None if body is None else json.dumps(body).encode()
        url = f"{(self.settings.url or '').rstrip('/')}{path}"
        request = urllib.request.Request(url, content, headers, method=method)
        try:
            with _opener(url).open(request, timeout=_TIMEOUT) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as why:
            kind = Unreachable if why.code >= 500 else AirflowProblem  # what is before it, or its database, may be away
            raise kind(_refused(self.settings, path, why)) from None
        except (urllib.error.URLError, OSError, ValueError, http.client.HTTPException) as why:
            reason = getattr(why, "reason", why)
            raise Unreachable(
                f"Airflow at {self.settings.url} cannot be reached: {reason}. Is it running? Its address is the "
                "setting airflow.url (PARTWISE_AIRFLOW_URL)."
            ) from None

    def _signed_in(self) -> str:
        if self._token is None:
            login = {"username": self.settings.username or "admin", "password": self.settings.password or ""}
            self._token = str(self._call("POST", "/auth/token", login, signed=False)["access_token"])
        return self._token


def _opener(url: str) -> urllib.request.OpenerDirector:
    """This machine is asked directly, whatever proxy the shell has for others."""
    return urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if _is_this_machine(url) else []))


def _is_this_machine(url: str) -> bool:
    host = urllib.parse.urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refused(settings: Airflow, path: str, why: urllib.error.HTTPError) -> str:
    if why.code in (401, 403):
        return (
            f"Airflow at {settings.url} refuses {settings.username or 'admin'} (code {why.code}). Name and password are "
            "the settings airflow.username and airflow.password (PARTWISE_AIRFLOW_USERNAME, PARTWISE_AIRFLOW_PASSWORD)."
        )
    if why.code == 404 and BACKFILL in path:
        return f"Airflow at {settings.url} has no DAG {BACKFILL}: does it serve this workspace?"
    said = why.read().decode(errors="replace")[:300]
    return f"Airflow at {settings.url} answers {why.code} to {path}: {said}"


@dataclass(frozen=True, slots=True)
class TaskState:
    task: str
    name: str  # of a mapped task: what it computes
    state: str


@dataclass(frozen=True)
class Progress:
    """A run at one time."""

    run: str
    state: str
    tasks: tuple[TaskState, ...]

    @property
    def over(self) -> bool:
        return self.state in _OVER


@dataclass(frozen=True)
class Form:
    """The form of the backfill DAG. `resume`: the number of one to go on with; the rest is what that one requested."""

    table: str
    range: str
    upstream: bool = False
    downstream: bool = True
    resume: int | None = None


def start_backfill(api: Api, form: Form) -> str:
    """Fill in the form of the backfill DAG; returns the run."""
    note = f"partwise backfill {form.table} {form.range if form.resume is None else '--resume'}"
    body = {"logical_date": None, "conf": {**asdict(form), "dry_run": False}, "note": note}
    return str(api.post(f"/dags/{BACKFILL}/dagRuns", body)["dag_run_id"])


def follow(
    api: Api, run: str, sleep: Callable[[], None], clock: Callable[[], float] = time.monotonic
) -> Iterator[Progress]:
    """The run again and again until it is over. An api-server that is started again meanwhile is waited for."""
    path = f"/dags/{BACKFILL}/dagRuns/{urllib.parse.quote(run)}"

    def get(asked: str) -> Any:
        began = clock()
        while True:
            try:
                return api.get(asked)
            except Unreachable:
                if clock() - began >= PATIENCE:
                    raise
                sleep()

    while True:
        state = str(get(path)["state"])
        rows = get(f"{path}/taskInstances?limit=200")["task_instances"]
        tasks = tuple(
            TaskState(row["task_id"], row.get("rendered_map_index") or "", row["state"] or "waiting") for row in rows
        )
        if state in _OVER:
            yield Progress(run, state, tasks)
            return
        yield Progress(run, state, tasks)
        sleep()


def failure_text(api: Api, run: str, tasks: tuple[TaskState, ...]) -> str:
    """What the first failed task said last."""
    path = f"/dags/{BACKFILL}/dagRuns/{urllib.parse.quote(run)}"
    for row in api.get(f"{path}/taskInstances?limit=200")["task_instances"]:
        if row["state"] == "failed":
            where = f"{path}/taskInstances/{row['task_id']}/logs/{row['try_number']}?map_index={row['map_index']}"
            lines = api.get(where).get("content", [])
            told = [str(d["exc_value"]) for line in lines for d in line.get("error_detail") or () if d.get("exc_value")]
            return f"{row['task_id']}: {told[-1]}" if told else f"{row['task_id']} failed; see its log in Airflow."
    return "see the run in Airflow."
