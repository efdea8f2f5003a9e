"""The page itself and its files, served by us: nothing is fetched from elsewhere."""

from __future__ import annotations

import hashlib
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from partwise_page.gate import Gate

FOLDER = Path(__file__).with_name("static")
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'self'; base-uri 'self'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
}


def add_files(app: FastAPI, gate: Gate) -> None:
    files = {path.name: path for path in FOLDER.iterdir() if path.suffix in TYPES}

    @app.get("/", include_in_schema=False)
    def page(request: Request) -> Response:
        return _answer(request, files["index.html"])

    @app.get("/static/{name}", include_in_schema=False)
    def static(name: str, request: Request) -> Response:
        if name not in files:
            raise HTTPException(404, f"There is no file {name[:80]!r}.")
        return _answer(request, files[name])

    @app.exception_handler(401)
    def ask_to_log_in(request: Request, why: Any) -> Response:
        if request.method != "GET" or "text/html" not in request.headers.get("accept", ""):
            return JSONResponse({"detail": getattr(why, "detail", "Not authenticated")}, 401)
        link = f"{gate.login}?next={quote(str(request.url), safe='')}"
        text = f'<!doctype html><title>Parts</title><p>You are not logged in. <a href="{escape(link)}">Log in</a></p>'
        return HTMLResponse(text, 401, HEADERS)


def _answer(request: Request, path: Path) -> Response:
    content = path.read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = HEADERS | {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=f"{TYPES[path.suffix]}; charset=utf-8", headers=headers)
