"""How long the Parts page takes until it shows something: 200 views with 1,440 parts each, all states among them.

Server: the answer of `/heat` at several zooms, on SQLite and on PostgreSQL. Browser: from the request for the page to the
first cells on the canvas, in headless Chromium, each time in a new context, so that nothing is cached. Medians.

    python benchmarks/bench_page.py [--views 200] [--parts 1440] [--database sqlite or postgres or both]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools/setup")]

import browser as browsers  # noqa: E402
from fastapi import FastAPI  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

from tests.page.conftest import Client  # noqa: E402
from tests.page.serve import Runs, application, serving, workspace  # noqa: E402
from tests.page.warehouse import TEN, Warehouse, chain  # noqa: E402

REPEATS = 7


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """A workspace in a folder, its ledger in this kind of database; gives the URL of the ledger."""
    url = workspace(folder)
    if kind == "sqlite":
        yield url
        return
    from partwise.serve import postgres

    server = postgres.start(folder / "postgres", stops_with_us=True)
    try:
        url = server.url("postgres")
        (folder / "partwise.yaml").write_text(f"ledger: {url}\n")
        yield url
    finally:
        server.stop()


def build(url: str, views: int, parts: int) -> float:
    """Everything built a while ago; then late rows for a tenth of a source, half of what follows rebuilt."""
    made = Warehouse.of(chain(views), url)
    first = TEN // 60
    made.now = (first + parts) * 60 - 3 * 86400.0
    for n in range(4):
        made.deliver(f"source_{n}", dict.fromkeys(range(first, first + parts), 10))
    made.build(rows=lambda name, p: 0 if (p + len(name)) % 9 == 0 else 5, limit=parts)
    made.now = (first + parts) * 60.0
    for at in range(0, parts, 20):
        made.deliver("source_0", {first + at: 11})
    made.build(*(f"view_{n:03}" for n in range(0, views, 8)), limit=parts)
    made.ledger.database.close()
    return made.now


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--views", type=int, default=200)
    given.add_argument("--parts", type=int, default=1440)
    given.add_argument("--database", choices=("sqlite", "postgres", "both"), default="both")
    asked = given.parse_args()
    for kind in ("sqlite", "postgres") if asked.database == "both" else (asked.database,):
        with tempfile.TemporaryDirectory() as name, database(kind, Path(name)) as url:
            began = time.perf_counter()
            now = build(url, asked.views, asked.parts)
            took = time.perf_counter() - began
            print(f"{asked.views} views x {asked.parts} parts on {kind}, made in {took:.0f} s", flush=True)
            app = application(Path(name), now, Runs())
            on_server(app, TEN + asked.parts * 60)
            in_browser(app)
            app.state.place.close()


def on_server(app: FastAPI, end: int) -> None:
    client = Client(app)
    for what, query in (
        ("newest, 140 cells a row", "?cells=140"),
        ("every part, 1,440 cells a row", f"?cells=1440&from={TEN}&to={end}"),
        ("a month", f"?cells=140&from={end - 30 * 86400}&to={end}"),
    ):
        times, busy, size = [], [], 0
        client.get(f"/heat{query}")  # the first one opens the ledger
        for _ in range(REPEATS):
            start, spent = time.perf_counter(), time.process_time()
            answer = client.get(f"/heat{query}")
            times.append(time.perf_counter() - start)
            busy.append(time.process_time() - spent)
            size = len(answer.content)
        print(
            f"  server, {what:30} {1000 * median(times):6.0f} ms, of which {1000 * median(busy):4.0f} ms "
            f"at work   {size / 1024:4.0f} KB",
            flush=True,
        )


def in_browser(app: FastAPI) -> None:
    try:
        path = browsers.ensure(ROOT)
    except browsers.Trouble as why:
        print(f"  the first paint is not measured: {why}")
        return
    with serving(app) as address, sync_playwright() as play:
        found = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        times = []
        for _ in range(REPEATS + 1):
            page = found.new_context(viewport={"width": 1400, "height": 900}).new_page()
            page.goto(f"{address}/partwise/")
            page.wait_for_selector("body[data-ready]")
            # From the start of the navigation to the first cells on the canvas.
            times.append(page.evaluate("performance.getEntriesByName('cells')[0].startTime"))
            page.context.close()
        found.close()
    times = times[1:]  # the first one warms the browser up
    print(
        f"  browser, first cells on the screen     {median(times):6.0f} ms, median of {len(times)} loads "
        f"(slowest {max(times):.0f} ms)",
        flush=True,
    )


if __name__ == "__main__":
    main()
