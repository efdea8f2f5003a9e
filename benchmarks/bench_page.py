"""How long the Parts page takes until it shows something: 200 views with 1,440 parts each, all states among them.

Server: the answer of `/heat` at several zooms, on SQLite. Browser: from the request for the page to the first cells,
in headless Chromium, if there is one.

    python benchmarks/bench_page.py [--views 200] [--parts 1440]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools/setup")]

import browser as browsers  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

from tests.page.conftest import Client  # noqa: E402
from tests.page.serve import Runs, application, serving, workspace  # noqa: E402
from tests.page.warehouse import TEN, Warehouse, chain  # noqa: E402

REPEATS = 7


def build(folder: Path, views: int, parts: int) -> float:
    """Everything built a while ago; then late rows for a tenth of a source, half of what follows rebuilt."""
    made = Warehouse.of(chain(views), workspace(folder))
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
    asked = given.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        now = build(Path(folder), asked.views, asked.parts)
        print(f"{asked.views} views x {asked.parts} parts, made in {time.perf_counter() - began:.0f} s")
        app = application(Path(folder), now, Runs())
        client = Client(app)
        end = TEN + asked.parts * 60
        for what, query in (
            ("newest, 140 cells a row", "?cells=140"),
            ("every part, 1,440 cells a row", f"?cells=1440&from={TEN}&to={end}"),
            ("a month", f"?cells=140&from={end - 30 * 86400}&to={end}"),
        ):
            times, busy, size = [], [], 0
            for _ in range(REPEATS):
                start, spent = time.perf_counter(), time.process_time()
                answer = client.get(f"/heat{query}")
                times.append(time.perf_counter() - start)
                busy.append(time.process_time() - spent)
                size = len(answer.content)
            print(
                f"  server, {what:30} {1000 * median(times):6.0f} ms, of which {1000 * median(busy):4.0f} ms "
                f"at work   {size / 1024:4.0f} KB"
            )
        in_browser(app)


def in_browser(app: object) -> None:
    path = browsers.find()
    if path is None:
        print("  no Chromium: the first paint is not measured")
        return
    with serving(app) as address, sync_playwright() as play:  # type: ignore[arg-type]
        found = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        times = []
        for _ in range(REPEATS):
            page = found.new_page(viewport={"width": 1400, "height": 900})
            page.goto(f"{address}/partwise/")
            page.wait_for_selector("body[data-ready]")
            # From the start of the navigation to the first cells on the canvas.
            times.append(page.evaluate("performance.getEntriesByName('cells')[0].startTime"))
            page.close()
        found.close()
    print(f"  browser, first cells on the screen     {median(times):6.0f} ms   (slowest {max(times):.0f} ms)")


if __name__ == "__main__":
    main()
