"""Makes the pictures of the Parts page in docs/pictures: the example's definitions, contents made up, in Chromium.

python tools/pictures.py
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools/setup")]

import browser as browsers  # noqa: E402
from playwright.sync_api import Browser, sync_playwright  # noqa: E402

from partwise.workspace import open_workspace  # noqa: E402
from tests.page.serve import Runs, application, serving  # noqa: E402
from tests.page.warehouse import MINUTE, TEN, Warehouse  # noqa: E402

FOLDER = ROOT / "docs/pictures"
PICTURES = (
    ("parts", "light", "", 600),
    ("part", "dark", "#table=high_loss&part=2026-10-03T11:13", 720),
    ("lineage", "light", "#view=lineage", 470),
    ("view", "light", "#view=table&table=worst_ten_minutes", 900),
)


def fill(folder: Path) -> Warehouse:
    """Two and a half hours in which most of what can happen happens."""
    shutil.copytree(ROOT / "view_defs", folder / "view_defs")
    shutil.copy(ROOT / "partwise.yaml", folder)
    workspace = open_workspace(str(folder), {})
    made = Warehouse.of(workspace.load().graph(), workspace.ledger_url)
    made.now = TEN - 86400.0 * 2
    made.load("nodes", 12)
    for at in range(0, 150, 10):
        made.now += 60
        made.deliver("measurements", {MINUTE + p: 40 + (p * 7) % 13 for p in range(at, at + 10)})
        made.build(rows=_rows)
    made.now = TEN + 9000.0
    made.deliver("measurements", {MINUTE + p: 61 for p in range(33, 39)})
    made.build(rows=_rows)
    made.deliver("measurements", {MINUTE + p: 70 for p in range(70, 75)}, {MINUTE + 150: 11})
    views = [name for name in made.ledger.graph().order if made.ledger.graph()[name].kind == "view"]
    made.build(*(name for name in views if name.startswith("high_loss_")), rows=_rows)
    made.fail("high_loss", MINUTE + 73, "check failed: expect_column_values_to_not_be_null: src is null in 2 of 9 rows")
    made.ledger.take("loss_by_region", "airflow:asset_triggered__2026-10-03T12:30", 6000, made.now)
    made.now += 60
    return made


def _rows(name: str, p: int) -> int:
    return 0 if name == "high_loss" and p % 5 == 0 else 6 + (p * 11) % 7


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as play:
        folder = Path(scratch) / "example"
        folder.mkdir()
        made = fill(folder)
        found = play.chromium.launch(executable_path=browsers.ensure(ROOT), args=["--no-sandbox"])
        with serving(application(folder, made.now, Runs())) as address:
            for name, scheme, link, height in PICTURES:
                _take(found, f"{address}/partwise/{link}", FOLDER / f"{name}.png", scheme, height)
        found.close()


def _take(found: Browser, address: str, file: Path, scheme: str, height: int) -> None:
    page = found.new_page(
        viewport={"width": 1240, "height": height}, color_scheme=scheme, timezone_id="UTC", locale="en-GB"
    )
    page.clock.set_fixed_time(datetime.fromtimestamp(TEN + 9060, UTC))
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    page.wait_for_timeout(1500)
    page.screenshot(path=str(file))
    page.close()
    print(f"{file.relative_to(ROOT)}: {file.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
