"""The whole product as a user starts it: data arrive, views follow, a late row is repaired, nothing is left behind.

Real PostgreSQL, Spark and Airflow. What is looked at is what users see: files, commands, processes.
"""

from __future__ import annotations

import json
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from partwise.serve.supervise.child import free_port
from tests.airflow.product import mentioning

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[2]
#: A view that reads itself, one of another length with a dimension, one that is translated.
VIEWS = ("total_loss", "loss_by_region", "high_loss")
#: Seconds, on a machine that is busy with other things; it is 60, and three minutes from the start, on a quiet one.
ANSWERS, FIRST_PARTS = 120, 300


class Product:
    """`partwise serve` on a workspace, and commands beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.said = folder / "said"
        (self.workspace / "view_defs").mkdir(parents=True)
        (self.workspace / "partwise.yaml").touch()
        for name in ("network", *VIEWS):
            text = (ROOT / f"view_defs/{name}.yaml").read_text()
            (self.workspace / f"view_defs/{name}.yaml").write_text(
                text.replace("part: 1 minute\ntime", "part: 1 minute\npoll: 5 seconds\ntime")
            )
        self.ports = [free_port() for _ in range(3)]

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        ports = [
            w
            for n, p in zip(("--port", "--spark-port", "--spark-ui-port"), self.ports, strict=True)
            for w in (n, str(p))
        ]
        command = [sys.executable, "-m", "partwise.cli", "serve", "--workspace", str(self.workspace), *ports, *words]
        with open(self.said, "ab") as output:
            return subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def partwise(self, *words: str, code: int = 0) -> Any:
        command = [sys.executable, "-m", "partwise.cli", *words, "--workspace", str(self.workspace), "--json"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)

    def parts(self) -> dict[str, int]:
        return {table["table"]: table["parts"] for table in self.partwise("status")["tables"]}

    def total(self, part: str, src: str) -> float | None:
        """What a reader of the running total sees."""
        rows = self.partwise("query", f"SELECT total FROM total_loss WHERE part_timestamp = '{part}' AND src = '{src}'")
        return float(rows[0]["total"]) if rows else None

    def fresh(self, view: str) -> list[str]:
        """Parts that are there and up to date, newest first."""
        return [part["part"] for part in self.partwise("status", view)["parts"] if part["state"] == "fresh"]

    def logs(self) -> str:
        found = [self.said, *sorted((self.workspace / ".partwise/logs").glob("*.log"))]
        return "\n".join(f"== {f.name}\n{f.read_text(errors='replace')[-1500:]}" for f in found if f.exists())

    def wait(self, what: Callable[[], bool], seconds: float, process: subprocess.Popen[bytes]) -> float:
        began = time.monotonic()
        while not what():
            assert process.poll() is None, f"it ended with code {process.returncode}\n{self.logs()}"
            assert time.monotonic() - began < seconds, f"it did not happen within {seconds:.0f} s\n{self.logs()}"
            time.sleep(1)
        return time.monotonic() - began


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Product]:
    found = Product(tmp_path)
    yield found
    shutil.rmtree(tmp_path, ignore_errors=True)


def test_data_arrive_views_follow_late_rows_are_repaired_and_nothing_is_left(product: Product) -> None:
    process = product.start("--feed", "--every", "4")
    try:
        product.wait(lambda: b"Airflow answers" in product.said.read_bytes(), ANSWERS, process)
        greeting = next(line for line in product.said.read_text().splitlines() if "Airflow answers" in line)
        print(greeting)
        waited = product.wait(lambda: all(product.parts()[view] for view in VIEWS), FIRST_PARTS, process)
        print(f"parts of every view {waited:.0f} s later")

        product.wait(lambda: bool(product.fresh("total_loss")), 240, process)
        part = product.fresh("total_loss")[0]
        before = product.total(part, "ams")
        assert before is not None
        late = product.workspace / "landing/measurements/by-hand.csv"
        late.write_text(f"event_time,src,dest,loss\n{part}:30,ams,rom,1000\n")
        waited = product.wait(lambda: (product.total(part, "ams") or 0) >= before + 1000, 240, process)
        print(f"late row repaired after {waited:.0f} s")

        everything = psutil.Process(process.pid).children(recursive=True)
        assert len(everything) > 10
        assert listening(everything) <= {"127.0.0.1", "::1"}
        private = [product.workspace / ".partwise" / name for name in ("keys.json", "passwords.json", "served.json")]
        assert {stat.S_IMODE(file.stat().st_mode) for file in private} == {0o600}
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(150)
        finally:
            process.kill()
    assert process.returncode == 0, product.logs()
    assert [p for p in everything if p.is_running() and p.status() != psutil.STATUS_ZOMBIE] == []
    assert not mentioning(str(product.workspace))

    # Started again, it goes on where it was.
    views = {name: count for name, count in product.parts().items() if name in VIEWS}
    more = sum(views.values()) + len(VIEWS)
    again = product.start("--feed", "--every", "4", "--until-parts", str(more), "--seconds", "300")
    assert again.wait(400) == 0, product.logs()
    now = product.parts()
    assert all(now[name] >= count for name, count in views.items())
    assert not mentioning(str(product.workspace))

    found = product.partwise("verify")
    assert found["different"] == []
    assert found["checked"] > 10


def listening(found: list[psutil.Process]) -> set[str]:
    """Addresses on which these processes take connections."""
    addresses = set()
    for process in found:
        try:
            connections = process.net_connections(kind="inet")
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        addresses |= {c.laddr.ip.removeprefix("::ffff:") for c in connections if c.status == psutil.CONN_LISTEN}
    return addresses
