"""The page of a made-up warehouse, asked directly or through a real browser."""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from playwright.sync_api import Browser, Page, sync_playwright

from partwise.ledger.open import open_ledger
from tests.page.serve import ROOT, Runs, application, serving, workspace
from tests.page.warehouse import Warehouse, every_state


@dataclass
class Site:
    """A warehouse, what was started from its page, and the application."""

    made: Warehouse
    runs: Runs
    app: FastAPI
    folder: Path


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """The warehouse, made once and copied for each test."""
    folder = tmp_path_factory.mktemp("model")
    made = every_state(workspace(folder))
    made.ledger.database.close()
    return folder, made.now


@pytest.fixture
def site(tmp_path: Path, model: tuple[Path, float]) -> Site:
    folder = tmp_path / "workspace"
    shutil.copytree(model[0], folder)
    made = Warehouse(open_ledger(workspace(folder), 0.0), model[1])
    runs = Runs()
    return Site(made, runs, application(folder, made.now, runs), folder)


class Client:
    """Asks the application as a program does."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app

    def request(self, method: str, path: str, **more: object) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://airflow.example") as client:
                return await client.request(method, f"/partwise{path}", **more)  # type: ignore[arg-type]

        # In a thread of its own: while a browser is open, Playwright's event loop runs in this one.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(lambda: asyncio.run(ask())).result()

    def get(self, path: str, **more: object) -> httpx.Response:
        return self.request("GET", path, **more)

    def post(self, path: str, **more: object) -> httpx.Response:
        return self.request("POST", path, **more)


@pytest.fixture
def client(site: Site) -> Client:
    return Client(site.app)


@pytest.fixture(scope="module")  # closed again when its tests are done: other tests need the memory
def browser() -> Iterator[Browser]:
    spec = importlib.util.spec_from_file_location("browser", ROOT / "tools/setup/browser.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    try:
        path = tool.ensure(ROOT)
    except tool.Trouble as why:
        pytest.skip(f"the browser tests need Chromium: {why}")
    with sync_playwright() as play:
        # As root in a container there is no sandbox to be had; what is loaded is our own page.
        found = play.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield found
        found.close()


Open = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, site: Site) -> Iterator[Open]:
    """Opens the page; an error in the console fails the test."""
    problems: list[str] = []
    contexts = []
    with serving(site.app) as address:

        def open_at(
            link: str = "",
            scheme: str = "light",
            zone: str = "UTC",
            query: str = "",
            height: int = 800,
            wrong: bool = False,
        ) -> Page:
            """`wrong`: the link asks for what does not exist, so the server refuses and the console says so."""
            context = browser.new_context(
                viewport={"width": 1300, "height": height}, color_scheme=scheme, timezone_id=zone, locale="en-GB"
            )
            contexts.append(context)
            page = context.new_page()
            page.set_default_timeout(20_000)
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("console", lambda said: problems.append(said.text) if _is_trouble(said) and not wrong else None)
            page.goto(f"{address}/partwise/{query}{link}")
            page.wait_for_selector("body[data-ready]")
            return page

        yield open_at
        for context in contexts:
            context.close()
    assert problems == []


def _is_trouble(said: object) -> bool:
    # Airflow's own interface is not there in these tests; its absence is part of what is tested.
    return said.type == "error" and "/api/v2/" not in said.location.get("url", "")  # type: ignore[attr-defined]
