"""The endpoints: who may ask, what is refused and how, and that no question makes them stumble."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import schemathesis
from fastapi import FastAPI, HTTPException
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance

from partwise.ledger.records.running import Running, note
from partwise.parts import Range
from tests.page.conftest import Client, Site
from tests.page.serve import ROOT, PlaceAt, Runs, create_app, workspace
from tests.page.warehouse import TEN, every_state

QUESTIONS = [
    "/heat",
    "/cell?table=worst&from=1791021600&to=1791025200",
    "/part?table=by_minute&part=2026-10-03T10:42",
    "/lineage",
    "/table?table=worst",
    "/changes?table=final",
    "/backfill?table=by_minute&range=2026-10-03T10:20",
    "/rights?table=final",
]
NO_SAMPLE = "/estimate?table=by_minute&part=2026-10-03T10:42"
FILES = ["/", "/static/main.js", "/static/style.css", "/docs", "/openapi.json"]


@pytest.mark.parametrize("path", QUESTIONS + FILES)
def test_it_answers(client: Client, path: str) -> None:
    found = client.get(path)
    assert found.status_code == 200, found.text
    if path in QUESTIONS:
        assert found.json()


def test_a_view_without_a_sample_has_no_estimate(client: Client) -> None:
    found = client.get(NO_SAMPLE)
    assert (found.status_code, found.json()["detail"]) == (422, "by_minute has no sample.")


def test_no_route_answers_without_a_user(tmp_path: Path) -> None:
    def nobody() -> None:
        raise HTTPException(401, "Not authenticated")

    url = workspace(tmp_path)
    made = every_state(url)
    gate = Runs().gate()
    app = FastAPI()
    page = create_app(PlaceAt(str(tmp_path), made.now), type(gate)(nobody, gate.may_trigger, gate.trigger))
    app.mount("/partwise", page)
    client = Client(app)
    paths = {route.path for route in page.routes}
    asked = [*QUESTIONS, NO_SAMPLE]
    assert {p.partition("?")[0] for p in asked} | {"/", "/docs", "/openapi.json", "/static/{name}"} == paths
    for path in asked + FILES:
        assert client.get(path).status_code == 401, path
    assert client.post("/backfill", json={}).status_code == 401
    shown = client.get("/", headers={"accept": "text/html"})
    assert shown.status_code == 401
    assert "/api/v2/auth/login?next=" in shown.text


WANTED = {"table": "by_minute", "range": "2026-10-03T10:20..2026-10-03T10:22"}
OURS = {"origin": "http://airflow.example", "sec-fetch-site": "same-origin", "cookie": "_token=x"}


@pytest.mark.parametrize(
    "headers",
    [
        {"cookie": "_token=x"},
        {"cookie": "_token=x", "origin": "https://evil.example"},
        {"cookie": "_token=x", "origin": "null"},
        {"cookie": "_token=x", "origin": "http://airflow.example.evil.example"},
        {"cookie": "_token=x", "sec-fetch-site": "cross-site"},
        {"cookie": "_token=x", "sec-fetch-site": "same-site", "origin": "http://airflow.example"},
        {"authorization": "Basic eA==", "cookie": "_token=x"},
        {"authorization": "Bearer x", "origin": "https://evil.example"},
    ],
)
def test_what_another_site_sends_starts_nothing(client: Client, site: Site, headers: dict[str, str]) -> None:
    found = client.post("/backfill", json=WANTED, headers=headers)
    assert found.status_code == 403
    assert "." in found.json()["detail"]
    assert site.runs.started == []


@pytest.mark.parametrize("headers", [OURS, {"origin": "http://airflow.example"}, {"authorization": "Bearer x"}])
def test_a_backfill_is_started_with_the_form_filled_in(client: Client, site: Site, headers: dict[str, str]) -> None:
    found = client.post("/backfill", json=WANTED | {"upstream": True}, headers=headers)
    assert found.json() == {"dag": "partwise_backfill", "run": "manual__1"}
    values = {"table": "by_minute", "range": "2026-10-03T10:20..2026-10-03T10:22", "upstream": True, "downstream": True}
    assert site.runs.started == [("partwise_backfill", values)]


def test_a_helper_is_refused_with_the_view_to_ask_for(client: Client, site: Site) -> None:
    asked: list[str] = []
    site.runs.asked = asked.append
    found = client.post("/backfill", json=WANTED | {"table": "worst_helper"}, headers=OURS)
    assert found.status_code == 422
    assert "worst_helper is a helper of worst" in found.json()["detail"]
    assert set(asked) == {"worst", "partwise_backfill"}, "there is no DAG worst_helper"
    assert site.runs.started == []


def test_who_may_only_look_starts_nothing(client: Client, site: Site) -> None:
    site.runs.allowed = False
    assert client.get("/rights?table=final").json() == {"backfill": False}
    found = client.post("/backfill", json=WANTED, headers=OURS)
    assert found.status_code == 403
    assert site.runs.started == []


@pytest.mark.parametrize(
    "path, words",
    [
        ("/heat?from=5", "belong together"),
        ("/heat?from=10&to=5", "before"),
        ("/heat?cells=0", "cells: input should be greater"),
        ("/heat?from=9999999999999&to=99999999999999", "less than or equal"),
        ("/heat?cells=many", "valid integer"),
        ("/part?table=by_minute", "Which part"),
        ("/part?table=by_minute&part=10:05", "not a time"),
        ("/part?table=by_hour&part=2026-10-03T10:05", "not the start of a part"),
        ("/part?table=nothing&part=2026", "no table"),
        ("/part?table=by_minute&part=%23123456789012345678901234567890", "outside of the years"),
        ("/cell?table=by_minute&from=5&to=5", "before"),
        ("/cell?table=by_minute", "from: field required"),
        ("/changes?table=final&within=nan", "within: input should be a valid integer"),
        ("/backfill?table=measurements&range=2026-10-03T10:20", "come from outside"),
        ("/backfill?table=by_minute&range=%20", "RANGE is empty"),
        ("/backfill?table=worst_helper&range=2026-10-03T10:20", "helper of worst: backfill worst"),
        ("/table?table=%00", "no table"),
    ],
)
def test_a_bad_parameter_is_refused_with_a_sentence(client: Client, path: str, words: str) -> None:
    found = client.get(path)
    assert found.status_code == 422, found.text
    detail = found.json()["detail"]
    assert words in detail
    assert detail.endswith((".", "?"))
    assert "Traceback" not in found.text


def test_a_post_without_sense_is_refused_with_a_sentence(client: Client) -> None:
    for body in ({}, {"table": "by_minute", "range": 5}, [1]):
        found = client.post("/backfill", json=body, headers=OURS)
        assert found.status_code == 422
        assert isinstance(found.json()["detail"], str)


def test_as_long_as_nothing_changes_nothing_is_sent_again(client: Client, site: Site) -> None:
    first = client.get("/heat")
    again = client.get("/heat", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.text) == (304, "")
    site.made.deliver("orders", {TEN // 86400: 5})
    third = client.get("/heat", headers={"if-none-match": first.headers["etag"]})
    assert third.status_code == 200
    assert third.json()["sequence"] > first.json()["sequence"]


def test_steps_that_take_long_are_shown_as_they_go_on(client: Client, site: Site) -> None:
    """They take no sequence, and are sent again nevertheless."""
    ledger, now = site.made.ledger, site.made.now
    before = client.get("/heat")
    assert before.json()["steps"] == []
    held = ledger.take("by_minute", "somebody", 60, now)
    step = Running("by_minute", Range(TEN // 60, TEN // 60 + 9), 4, 10, now - 20)
    tags = [client.get("/heat").headers["etag"]]
    for done in (4, 5):
        note(ledger.database, held, replace(step, done=done))
        found = client.get("/heat", headers={"if-none-match": tags[-1]})
        (shown,) = found.json()["steps"]
        assert (shown["table"], shown["done"], shown["of"]) == ("by_minute", done, 10)
        assert (shown["first"], shown["last"]) == ("2026-10-03T10:00", "2026-10-03T10:09")
        tags.append(found.headers["etag"])
    assert client.get("/heat", headers={"if-none-match": tags[-1]}).status_code == 304


def test_nothing_is_loaded_from_elsewhere(client: Client, site: Site) -> None:
    folder = Path(__file__).resolve().parents[2] / "plugins/partwise_page/static"
    for file in folder.iterdir():
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text, file
        assert "https://" not in text, file
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'self'" in policy


def test_every_module_that_the_page_begins_with_is_fetched_at_once() -> None:
    """One that only another one names would be requested when that has come: a round trip more until the first cells."""
    folder = ROOT / "plugins/partwise_page/static"
    todo, needed = ["main.js"], set()
    while todo:
        found = re.findall(r'^import .* from "\./(.+)";', (folder / todo.pop()).read_text(), re.MULTILINE)
        todo += set(found) - needed
        needed |= set(found)
    named = set(re.findall(r'modulepreload" href="static/(.+?)"', (folder / "index.html").read_text()))
    assert named == needed


def test_without_a_ledger_it_says_so(tmp_path: Path) -> None:
    workspace(tmp_path)
    app = FastAPI()
    app.mount("/partwise", create_app(PlaceAt(str(tmp_path), None), Runs().gate()))
    found = Client(app).get("/heat")
    assert found.status_code == 503
    assert "no ledger yet" in found.json()["detail"]


def test_questions_by_the_hundred_never_make_it_stumble(site: Site) -> None:
    """Whatever the description of the endpoints allows, and what it forbids: an answer or a sentence."""
    page = next(route.app for route in site.app.routes if getattr(route, "path", "") == "/partwise")
    described = schemathesis.openapi.from_asgi("/openapi.json", page)
    names = st.sampled_from([None, "by_minute", "by_hour", "nodes", "measurements", "worst_helper"])
    ranges = st.sampled_from([None, "2026-10-03T10:20", "2026-10-03T10:00..", "..2026-10-03T11:00", "2026-10-03T10:00"])
    answered: dict[str, set[int]] = {}

    def ask(case: schemathesis.Case, table: str | None, span: str | None) -> None:
        for place in (case.query, case.body):  # else hardly any question would get past the name
            if isinstance(place, dict):
                given = {"table": table, "range": span, "part": span}
                place.update({key: text for key, text in given.items() if text is not None and key in place})
        case.headers = {**(case.headers or {}), "authorization": "Bearer x"}  # else no body would be looked at
        answer = case.call_and_validate(checks=[not_a_server_error, response_schema_conformance])
        answered.setdefault(f"{case.method} {case.path}", set()).add(answer.status_code)
        if answer.status_code == 422:
            assert isinstance(answer.json()["detail"], str)

    for operation in described.get_all_operations():
        case = operation.ok().as_strategy()
        settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)(
            given(case=case, table=names, span=ranges)(ask)
        )()
    assert set(answered) == {f"GET {path.partition('?')[0]}" for path in [*QUESTIONS, NO_SAMPLE]} | {"POST /backfill"}
    for asked, codes in answered.items():
        assert codes <= {200, 422}, (asked, codes)
    assert {200, 422} <= answered["POST /backfill"]
