"""Who may look and who may start something. Airflow answers in `airflow_gate`, tests answer for themselves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from fastapi import HTTPException, Request

#: The DAG that carries out backfills.
BACKFILL_DAG = "partwise_backfill"


@dataclass(frozen=True)
class Gate:
    """`user` is a FastAPI dependency that gives the user or refuses; every route asks it.

    `may_trigger` tells whether a user may start runs of a DAG. `trigger` starts one, on behalf of whoever sent the
    request, and returns its id. `origin` is how browsers address the site, if the server cannot tell by itself.
    """

    user: Callable[..., Any]
    may_trigger: Callable[[Any, str], bool]
    trigger: Callable[[Request, str, dict[str, Any]], Awaitable[str]]
    login: str = "/api/v2/auth/login"
    origin: str | None = None


def path_of(base: str | None) -> str:
    """The path below which Airflow is served, without a slash at its end."""
    return urlsplit(base or "").path.rstrip("/")


def from_our_page(request: Request, origin: str | None) -> None:
    """Refuse what another site made the browser send.

    Airflow's cookie comes along with any request, and Airflow looks at no origin. Browsers say where a request
    comes from; a program that says nothing must show a token, which no other site can have.
    """
    site = request.headers.get("sec-fetch-site")
    sender = request.headers.get("origin")
    if site is not None and site != "same-origin":
        raise HTTPException(403, "This request came from another site, so nothing was started.")
    if sender is not None:
        known = {request.headers.get("host", "").lower(), urlsplit(origin or "").netloc.lower()} - {""}
        if urlsplit(sender).netloc.lower() not in known:
            raise HTTPException(403, f"This request came from {sender}, so nothing was started.")
    elif site is None and not request.headers.get("authorization", "").lower().startswith("bearer "):
        raise HTTPException(
            403, "Send an Authorization header: a cookie alone does not show that the request is yours."
        )
