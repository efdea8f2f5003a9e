"""The page in a real Airflow: nobody, somebody who may look, somebody who may run; and its place in Airflow's pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.page.airflow_server import PASSWORDS, running
from tests.page.test_app import FILES, QUESTIONS
from tests.page.warehouse import TEN

pytestmark = pytest.mark.airflow
WANTED = {"table": "by_minute", "range": "2026-10-03T10:20"}


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory, model: tuple[Path, float]) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("airflow")
    shutil.copytree(model[0], folder / "workspace")
    with running(folder) as address:
        yield address


def token(airflow: str, name: str) -> str:
    answer = httpx.post(f"{airflow}/auth/token", json={"username": name, "password": PASSWORDS[name]}, timeout=30)
    return str(answer.json()["access_token"])


def test_without_a_login_nothing_is_shown(airflow: str) -> None:
    with httpx.Client(base_url=f"{airflow}/partwise", timeout=30) as nobody:
        for path in QUESTIONS + FILES:
            assert nobody.get(path).status_code == 401, path
        assert nobody.post("/backfill", json=WANTED).status_code == 401
        assert nobody.get("/heat", headers={"authorization": "Bearer made.up.token"}).status_code == 403


def test_a_viewer_sees_everything_and_starts_nothing(airflow: str) -> None:
    cookie = {"cookie": f"_token={token(airflow, 'looker')}"}
    with httpx.Client(base_url=f"{airflow}/partwise", timeout=30, headers=cookie) as viewer:
        for path in QUESTIONS + FILES:
            assert viewer.get(path).status_code == 200, path
        assert viewer.get("/rights?table=by_minute").json() == {"backfill": False}
        found = viewer.post("/backfill", json=WANTED, headers={"origin": airflow})
        assert found.status_code == 403
        assert "read-only access" in found.json()["detail"]


def test_an_operator_starts_a_backfill_but_no_other_site_does_in_their_name(airflow: str) -> None:
    cookie = {"cookie": f"_token={token(airflow, 'oper')}"}
    with httpx.Client(base_url=airflow, timeout=60, headers=cookie) as operator:
        assert operator.get("/partwise/rights?table=by_minute").json() == {"backfill": True}
        for headers in ({}, {"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
            assert operator.post("/partwise/backfill", json=WANTED, headers=headers).status_code == 403
        refused = operator.post(
            "/partwise/backfill", json={**WANTED, "table": "worst_helper"}, headers={"origin": airflow}
        )
        assert refused.status_code == 422, "a helper has no DAG, and the form of backfills does not know it"
        assert "worst_helper is a helper of worst: backfill worst" in refused.json()["detail"]
        assert operator.get("/api/v2/dags/partwise_backfill/dagRuns").json()["total_entries"] == 0
        found = operator.post("/partwise/backfill", json=WANTED, headers={"origin": airflow})
        assert found.status_code == 200, found.text
        run = operator.get(f"/api/v2/dags/partwise_backfill/dagRuns/{found.json()['run']}").json()
        assert run["conf"] == {**WANTED, "upstream": False, "downstream": True}
        assert run["triggering_user_name"] == "oper"
        assert "by_minute 2026-10-03T10:20" in run["note"]


def test_a_link_survives_the_login_and_the_page_lives_in_airflows_frame(airflow: str, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1400, "height": 800}, color_scheme="dark")
    page = context.new_page()
    page.set_default_timeout(60_000)
    expect.set_options(timeout=30_000)
    try:
        page.goto(f"{airflow}/plugin/parts/partwise/#table=by_minute&part=2026-10-03T10:42")
        page.fill("input[name=username]", "oper")
        page.fill("input[name=password]", PASSWORDS["oper"])
        page.keyboard.press("Enter")
        inside = page.frame_locator("iframe")
        expect(inside.locator("#panel h2")).to_contain_text("by_minute 2026-10-03T10:42")
        expect(inside.locator("html")).to_have_attribute("data-theme", "dark")
        frame = next(frame for frame in page.frames if frame.parent_frame is not None)
        box = frame.evaluate("at => partsPage.boxOf('final', at)", TEN + 60 * 43 + 30)
        around = page.locator("iframe").bounding_box()
        assert around is not None
        page.mouse.click(around["x"] + (box["left"] + box["right"]) / 2, around["y"] + box["y"])
        expect(inside.locator("#panel h2")).to_contain_text("final 2026-10-03T10:43")
        assert page.url.endswith("#table=final&part=2026-10-03T10:43")  # Airflow's own address can be copied
        inside.get_by_role("button", name="Show the plan").click()
        inside.locator(".plan .primary").click()
        inside.locator(".started a").click()
        page.wait_for_url("**/dags/partwise_backfill/runs/**")  # out of the frame, into Airflow
        # As people find it: by Airflow's navigation, and as a tab of a view's DAG.
        page.get_by_role("link", name="Parts", exact=True).first.click()
        expect(page.frame_locator("iframe").locator(".label[data-table=final]")).to_be_visible()
        page.goto(f"{airflow}/dags/by_minute")
        page.locator("a[href$='/dags/by_minute/plugin/dag_parts']").click()
        expect(page.frame_locator("iframe").locator("#table h2")).to_contain_text("by_minute")
    finally:
        expect.set_options(timeout=5_000)
        context.close()
