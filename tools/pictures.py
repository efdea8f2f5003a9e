"""Makes the pictures of the Parts page in docs/pictures: the demo workspace, computed by Spark, in Chromium.

    make pictures

Two and a half hours of the example's feed arrive and are computed. Then some of it comes late and is repaired, a wrong
measurement fails a check, and one more late row is loaded but not yet computed. One picture is taken within Airflow.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools/setup")]

import browser as browsers  # noqa: E402
from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402

from partwise.demo import LOG, driver, wait_for  # noqa: E402
from partwise.serve.feed import HEADER, FeedFile, deliver, nodes, rows  # noqa: E402
from tests.page.airflow_server import PASSWORDS, running  # noqa: E402
from tests.page.serve import Runs, application, serving  # noqa: E402

FOLDER = ROOT / "docs/pictures"
FIRST = int(datetime(2026, 10, 3, 10, tzinfo=UTC).timestamp()) // 60
MINUTES = 150
#: Minutes after the first one: their rows come late and are computed; a measurement that cannot be; late, and still due.
LATE, WRONG, NEWS = range(33, 39), 72, 143


def fill(folder: Path) -> None:
    shutil.copytree(ROOT / "view_defs", folder / "view_defs")
    shutil.copy(ROOT / "partwise.yaml", folder)
    landing = folder / "landing/measurements"
    deliver(folder / "landing", nodes())
    held = {FIRST + at for at in (*LATE, NEWS)}
    for minute in range(FIRST, FIRST + MINUTES):
        found = rows(minute)
        deliver(landing, FeedFile(f"{minute}.csv", HEADER + "".join(found[1:] if minute in held else found)))
    with driver(folder.parent / LOG) as remote:
        if not wait_for(remote):
            raise SystemExit((folder.parent / LOG).read_text(errors="replace")[-3000:])
        partwise(folder, remote, "run")
        deliver(landing, FeedFile("late.csv", HEADER + "".join(rows(FIRST + at)[0] for at in LATE)))
        at = datetime.fromtimestamp(60 * (FIRST + WRONG), UTC)
        deliver(landing, FeedFile("wrong.csv", f"{HEADER}{at:%Y-%m-%dT%H:%M:%S},ams,rom,-4000\n"))
        partwise(folder, remote, "run")  # a check fails, and it says so
        deliver(landing, FeedFile("news.csv", HEADER + rows(FIRST + NEWS)[0]))
        partwise(folder, remote, "ingest")


def partwise(folder: Path, remote: str, *words: str) -> None:
    known = {key: value for key, value in os.environ.items() if not key.startswith("PARTWISE_")}
    command = [sys.executable, "-m", "partwise.cli", *words, "--workspace", str(folder)]
    print(f"partwise {' '.join(words)}", flush=True)
    subprocess.run(command, env={**known, "PARTWISE_SPARK_REMOTE": remote, "COLUMNS": "130"}, check=False)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as play:
        folder = Path(scratch) / "workspace"
        folder.mkdir()
        fill(folder)
        found = play.chromium.launch(executable_path=browsers.ensure(ROOT), args=["--no-sandbox"])
        with serving(application(folder, None, Runs())) as address:
            page = opened(found, f"{address}/partwise/#table=loss_by_region&part=2026-10-03T11:10", "dark", 980)
            page.get_by_role("button", name="Show the plan").click()
            page.locator(".plan table").wait_for()
            taken(page, "part")
            taken(opened(found, f"{address}/partwise/#view=lineage", "light", 430), "lineage")
            page = opened(found, f"{address}/partwise/#view=table&table=worst_ten_minutes", "light", 960)
            page.locator("#table .bars").first.wait_for()
            taken(page, "view")
        with running(Path(scratch)) as address:
            page = found.new_page(**shape("light", 620, 1360))
            page.set_default_timeout(60_000)
            page.goto(f"{address}/plugin/parts/partwise/")
            page.fill("input[name=username]", "admin")
            page.fill("input[name=password]", PASSWORDS["admin"])
            page.keyboard.press("Enter")
            page.frame_locator("iframe").locator("body[data-ready]").wait_for()
            taken(page, "parts")
        found.close()


def shape(scheme: str, height: int, width: int = 1280) -> dict[str, object]:
    return {
        "viewport": {"width": width, "height": height},
        "color_scheme": scheme,
        "timezone_id": "UTC",
        "locale": "en-GB",
    }


def opened(found: Browser, address: str, scheme: str, height: int) -> Page:
    page = found.new_page(**shape(scheme, height))
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    return page


def taken(page: Page, name: str, wait: float = 1500) -> None:
    page.wait_for_timeout(wait)
    file = FOLDER / f"{name}.png"
    page.screenshot(path=str(file))
    page.close()
    print(f"{file.relative_to(ROOT)}: {file.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
