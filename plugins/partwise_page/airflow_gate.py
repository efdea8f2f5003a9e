"""Airflow's own users and permissions, and its REST interface for starting a run."""

from __future__ import annotations

import os
from typing import Any

import httpx
from airflow.api_fastapi.app import cached_app, get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import get_user
from airflow.configuration import conf
from fastapi import HTTPException, Request

from partwise_page.gate import Gate, path_of


def airflow_gate() -> Gate:
    base = conf.get("api", "base_url", fallback="") or ""
    return Gate(
        user=get_user,
        may_trigger=may_trigger,
        trigger=trigger,
        login=f"{path_of(base)}/api/v2/auth/login",
        origin=base or None,
    )


def may_trigger(user: Any, dag: str) -> bool:
    return get_auth_manager().is_authorized_dag(
        method="POST", access_entity=DagAccessEntity.RUN, details=DagDetails(id=dag), user=user
    )


async def trigger(request: Request, dag: str, values: dict[str, Any]) -> str:
    """Through the public interface of this very server, with the credentials that came: Airflow decides once more."""
    # The same arguments as in airflow.api_fastapi.main, or the cache would make a second application.
    airflow = cached_app(apps=os.environ.get("AIRFLOW_API_APPS", "all"))
    given = {name: request.headers[name] for name in ("authorization", "cookie") if name in request.headers}
    transport = httpx.ASGITransport(app=airflow, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://airflow") as client:
        answer = await client.post(
            f"/api/v2/dags/{dag}/dagRuns",
            json={"logical_date": None, "conf": values, "note": f"{values['table']} {values['range']}, from the page"},
            headers=given,
        )
    if answer.status_code >= 400:
        raise HTTPException(answer.status_code if answer.status_code < 500 else 502, _told(dag, answer))
    return str(answer.json()["dag_run_id"])


def _told(dag: str, answer: httpx.Response) -> str:
    try:
        detail = answer.json().get("detail")
    except ValueError:
        detail = None
    shown = detail if isinstance(detail, str) else f"status {answer.status_code}"
    return f"Airflow did not start {dag}: {shown}"
