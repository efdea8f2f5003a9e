"""The description of the endpoints, as OpenAPI and as a page for people. FastAPI's own page loads from a CDN."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from partwise_page.files import HEADERS


def add_description(app: FastAPI) -> None:
    @app.get("/openapi.json", include_in_schema=False)
    def openapi() -> dict[str, Any]:
        return app.openapi()

    @app.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        return HTMLResponse(_page(app.openapi()), headers=HEADERS)


def _page(described: dict[str, Any]) -> str:
    head = f"<h1>{escape(described['info']['title'])}</h1><p>{escape(described['info']['description'])}"
    body = "".join(
        _route(method, path, route) for path, methods in described["paths"].items() for method, route in methods.items()
    )
    schemas = "".join(
        f'<h3 id="{escape(name)}">{escape(name)}</h3><p>{escape(schema.get("description", ""))}</p>{_fields(schema)}'
        for name, schema in described["components"]["schemas"].items()
    )
    return (
        '<!doctype html><meta charset="utf-8"><title>Parts page: endpoints</title>'
        '<link rel="stylesheet" href="static/style.css"><body class="described">'
        f'{head} As <a href="openapi.json">OpenAPI</a>.</p>{body}<h2>Answers</h2>{schemas}'
    )


def _route(method: str, path: str, route: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(item['name'])}</code><td>{_type(item['schema'])}"
        f"<td>{'required' if item.get('required') else ''}<td>{escape(item.get('description', ''))}"
        for item in route.get("parameters", ())
    )
    body = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    answer = route["responses"]["200"]["content"]["application/json"]["schema"]
    sent = f"<p>Body: {_type(body)}</p>" if body else ""
    return (
        f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(route.get('summary', ''))}</p>"
        f"<table>{rows}</table>{sent}<p>Answer: {_type(answer)}</p>"
    )


def _fields(schema: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code><td>{_type(field)}<td>{escape(field.get('description', ''))}"
        for name, field in schema.get("properties", {}).items()
    )
    return f"<table>{rows}</table>"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = escape(schema["$ref"].rsplit("/", 1)[1])
        return f'<a href="#{name}">{name}</a>'
    if choices := schema.get("anyOf"):
        return " or ".join(_type(choice) for choice in choices)
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if "enum" in schema:
        return escape(" | ".join(map(str, schema["enum"])))
    return escape(str(schema.get("type", "any")))
