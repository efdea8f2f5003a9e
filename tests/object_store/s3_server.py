"""`python s3_server.py [PORT] [URL]`: an S3 server behind a layer that writes down every request and can spoil some.

The server is moto's, in this process, or the one at the URL. It prints its port. A process of its own: delta-rs keeps Python's lock in some calls, which would stop a server in the
same process. Under `/-/` it takes orders: GET /-/log, DELETE /-/log, PUT /-/faults with a list of

    {"match": regular expression for "METHOD /bucket/key?query", "do": ..., "times": 1}

    drop     the connection is closed before the request is carried out
    lose     it is carried out, but the answer never arrives
    repeat   it is carried out twice, as by a proxy that tries again, and the second answer arrives
    delay    it is carried out after `seconds`
    fail     503 instead
    refuse   403: the key may not do that
    expire   as if the key had expired; for all keys, or for the one named by `key`
"""

from __future__ import annotations

import http.client
import io
import json
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
ERROR = '<?xml version="1.0"?><Error><Code>{code}</Code><Message>{text}</Message></Error>'


class Spoiling:
    """The layer. Requests are counted with what became of them."""

    def __init__(self, app: App) -> None:
        self.app, self.lock = app, threading.Lock()
        self.log: list[str] = []
        self.faults: list[dict[str, Any]] = []

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"].startswith("/-/"):
            return self._order(environ, start)
        query = environ.get("QUERY_STRING", "")
        line = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}{'?' if query else ''}{query}"
        with self.lock:
            self.log.append(line)
            fault = next((f for f in self.faults if self._meant(f, line, environ)), None)
            if fault is not None and "times" in fault:
                fault["times"] -= 1
        return self._answer(fault or {"do": ""}, environ, start)

    @staticmethod
    def _meant(fault: dict[str, Any], line: str, environ: dict[str, Any]) -> bool:
        key = fault.get("key")
        signed = environ.get("HTTP_AUTHORIZATION", "")
        return fault.get("times", 1) > 0 and bool(re.search(fault["match"], line)) and (not key or f"={key}/" in signed)

    def _answer(self, fault: dict[str, Any], environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        do = fault["do"]
        if do == "drop":
            return _cut(environ)
        if do == "fail":
            return _refused(start, "503 Service Unavailable", "ServiceUnavailable", "Please try again.")
        if do == "refuse":
            return _refused(start, "403 Forbidden", "AccessDenied", "Access Denied")
        if do == "expire":
            return _refused(start, "400 Bad Request", "ExpiredToken", "The provided token has expired.")
        if do == "delay":
            time.sleep(fault["seconds"])
        if do in ("lose", "repeat"):
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            first = {**environ, "wsgi.input": io.BytesIO(body)}
            list(self.app(first, lambda *told: None))
            environ = {**environ, "wsgi.input": io.BytesIO(body)}
        return _cut(environ) if do == "lose" else self.app(environ, start)

    def _order(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        with self.lock:
            if environ["REQUEST_METHOD"] == "PUT":
                self.faults = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
            elif environ["REQUEST_METHOD"] == "DELETE":
                self.log = []
            start("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(self.log).encode()]


def _refused(start: Callable[..., Any], status: str, code: str, text: str) -> Iterable[bytes]:
    start(status, [("Content-Type", "application/xml")])
    return [ERROR.format(code=code, text=text).encode()]


def _cut(environ: dict[str, Any]) -> Iterable[bytes]:
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    raise ConnectionAbortedError


class Forwarding:
    """Passes requests on as they came, so that their signatures stay right."""

    def __init__(self, url: str) -> None:
        self.host, self.local = urlsplit(url).netloc, threading.local()

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        method, target = environ["REQUEST_METHOD"], environ["REQUEST_URI"]
        headers = {n[5:].replace("_", "-"): v for n, v in environ.items() if n.startswith("HTTP_")} | {
            name.replace("_", "-"): environ[name] for name in ("CONTENT_TYPE", "CONTENT_LENGTH") if environ.get(name)
        }
        kept = {n: v for n, v in headers.items() if n.lower() not in ("connection", "expect", "te", "upgrade")}
        found = self._asked(method, target, body, kept)
        content = found.read()
        told = [(n, v) for n, v in found.getheaders() if n.lower() not in ("connection", "transfer-encoding", "date")]
        start(f"{found.status} {found.reason}", told)
        return [content] if content else []

    def _asked(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> http.client.HTTPResponse:
        """Over the connection of this thread, which the server may have closed."""
        for fresh in (False, True):
            if fresh or not hasattr(self.local, "connection"):
                self.local.connection = http.client.HTTPConnection(self.host, timeout=60)
            try:
                self.local.connection.request(method, target, body, headers)
                answer: http.client.HTTPResponse = self.local.connection.getresponse()
                return answer
            except (http.client.HTTPException, ConnectionError):
                if fresh:
                    raise
        raise AssertionError


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept, as those of real stores

    def log(self, type: str, message: str, *args: Any) -> None:
        pass


if __name__ == "__main__":
    port, there = [*sys.argv[1:], "0", ""][:2] if len(sys.argv) > 1 else ["0", ""]
    layer = Spoiling(Forwarding(there) if there else DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", int(port), layer, True, request_handler=Quiet)
    print(server.server_port, flush=True)
    server.serve_forever()
