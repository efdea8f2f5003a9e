"""What people do with the running product: data come late or a thousand at once, definitions change, parts are requested
from the shell, from the page and by DAGs of their own, and something is missing.

One product for all of them, about six minutes in all on two cores; `pytest -m slow tests/airflow -s` shows the times.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from partwise.parts import parse_part
from partwise.reading import read
from tests.airflow.product import Product
from tests.page.conftest import browser  # noqa: F401  # the fixture

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.timeout(1800)]

#: Seconds within which a change of a definition shows.
SHOWN = 30

#: A DAG of one's own: parts that never come are waited for for a few seconds.
IN_VAIN = """
from airflow.sdk import DAG
from partwise_airflow import PartsSensor

with DAG("in_vain", schedule=None):
    PartsSensor(task_id="wait", table="a", parts="2030-01-01T00:00", timeout=5, retries=3)
"""


def test_late_rows_are_repaired_and_the_run_says_why(product: Product) -> None:
    before = product.total("b", "00")
    product.land("late", ("00", "z", 100))
    product.wait("late rows in b", lambda: product.total("b", "00") == before + 100)
    notes = [run["note"] for run in product.runs("a")]
    assert any(note and "late rows in m[2026-10-03T10:00]" in note for note in notes), notes


def test_a_part_names_the_run_that_wrote_it_and_its_log(product: Product) -> None:
    for table, dag in (("a", "a"), ("m", "m")):
        found = product.api._call("GET", f"/partwise/part?table={table}&part=2026-10-03T10:00", None)
        writer = found["revisions"][0]["writer"]
        assert (writer["dag"], writer["map_index"]) == (dag, -1)
        path = f"/dags/{dag}/dagRuns/{writer['run']}/taskInstances/{writer['task']}"
        assert product.api.get(path)["state"] == "success"
        assert product.api.get(f"{path}/logs/1?full_content=true")["content"], "its log can be read"


def test_a_changed_file_is_a_new_version_and_a_bad_one_an_import_error(product: Product) -> None:
    """Each of these shows within half a minute, however rarely files that do not change are parsed."""

    def shows(what: str, done: Callable[[], Any]) -> None:
        product.wait(what, done, SHOWN)

    def errors() -> str:
        return json.dumps(product.api.get("/importErrors")["import_errors"])

    def shown() -> set[str]:
        return {dag["dag_id"] for dag in product.api.get("/dags?limit=100")["dags"]}

    file, bad = product.workspace / "view_defs" / "more.yaml", product.workspace / "view_defs" / "bad.yaml"
    file.write_text("view: c\npart: 1 minute\nupdate: SELECT total FROM b[j]\n")
    shows("the new view's DAG", lambda: product.api.get("/dags/c")["dag_id"] == "c")
    product.wait("parts of the new view", lambda: product.has("c", "01"))
    versions = product.api.get("/dags/c/dagVersions")["total_entries"]
    file.write_text("view: c\npart: 1 minute\nupdate: SELECT total + 1 AS total FROM b[j]\n")
    shows("a new version", lambda: product.api.get("/dags/c/dagVersions")["total_entries"] > versions)
    bad.write_text("view: d\npart: 1 minute\nupdate: SELECT x FROM b[k]\n")
    shows("the import error", lambda: "view_defs/bad.yaml:3:" in errors())
    bad.unlink()
    shows("no import error", lambda: "bad.yaml" not in errors())
    file.unlink()
    shows("the removed view's DAG is gone", lambda: "c" not in shown())
    assert {"a", "b", "pair"} <= shown()


SEVERAL = """
view: near
part: 1 minute
output: pairs
query: |
  SELECT a.src, a.loss, b.loss AS before FROM m [WINDOW 2 minutes] a
  JOIN m [WINDOW 2 minutes] b ON b.src = a.src AND b.loss < a.loss
---
view: present
part: 1 minute
output: rolling
query: SELECT src, loss FROM m [WINDOW 2 minutes] WHERE loss > 0
---
view: largest
part: 1 minute
partial: true
query: |
  SELECT a.src, COUNT(*) AS n FROM m [WINDOW 2 minutes] a JOIN m [WINDOW 2 minutes] b ON b.src = a.src
  GROUP BY a.src ORDER BY n DESC LIMIT 1
"""


def test_views_over_several_windows_follow_and_late_rows_repair_them(product: Product) -> None:
    """Pairs, a rolling table, and the largest groups of windows that are not complete yet."""

    def total(sql: str) -> Any:
        return read(sql, str(product.workspace)).rows[0][0]

    names, file = ("near", "present", "largest"), product.workspace / "view_defs" / "several.yaml"
    file.write_text(SEVERAL)
    product.wait("views over windows", lambda: all(product.has(name, "01") for name in names))
    before = total("SELECT COUNT(*) FROM near")
    product.land("near", ("01", "pairs", 7), ("00", "pairs", 5))
    product.wait("late pairs", lambda: total("SELECT COUNT(*) FROM near WHERE src = 'pairs'") == 1)
    assert total("SELECT COUNT(*) FROM near") == before + 1
    product.wait(
        "late rows that are shown now", lambda: total("SELECT SUM(loss) FROM present WHERE src = 'pairs'") == 12
    )
    product.is_right()
    for name in names:
        assert {run["state"] for run in product.runs(name)} == {"success"}
    file.unlink()
    product.wait("they are gone", lambda: "near" not in json.dumps(product.api.get("/dags?limit=100")["dags"]), SHOWN)


def test_a_run_by_hand_takes_a_range_or_what_is_due(product: Product) -> None:
    """As Airflow's form sends them."""
    asked = product.trigger("a", {"part": "2026-10-03T10:00..2026-10-03T10:01"})
    due = product.trigger("a", {"part": None})
    # Nothing came out other than it was, so there is nothing to announce.
    product.wait("a range that was requested", lambda: product.state("a", asked, "announce") == "skipped")
    assert product.api.get(f"/dags/a/dagRuns/{asked}")["state"] == "success"
    report = product.api.get(f"/dags/a/dagRuns/{asked}/taskInstances/a/xcomEntries/return_value?deserialize=true")[
        "value"
    ]
    assert [(step["parts"], step["reason"]) for step in report["steps"]] == [
        (["2026-10-03T10:00..2026-10-03T10:01"], "requested")
    ]
    product.wait("nothing is due", lambda: product.state("a", due, "required_parts_exist") == "skipped")


def test_a_backfill_from_the_shell_is_carried_out_by_airflow(product: Product) -> None:
    done = product.partwise("backfill", "a", "2026-10-03T10:00..2026-10-03T10:01", "--yes", "--json")
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["state"] == "success", done.stdout + done.stderr
    assert last["report"]["a"] == {"recomputed": 2, "changed": 0, "unchanged": 2, "left": []}


def test_a_backfill_from_the_page_is_seen_to_finish(product: Product, browser: Browser) -> None:  # noqa: F811
    """In a real browser, within Airflow's own page, computed by Spark."""
    user, password = next(iter(json.loads((product.workspace / ".partwise/passwords.json").read_text()).items()))
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60_000)
    try:
        link = "#table=a&range=2026-10-03T10:00..2026-10-03T10:01"
        page.goto(f"http://127.0.0.1:{product.ports[0]}/plugin/parts/partwise/{link}")
        page.fill("input[name=username]", user)
        page.fill("input[name=password]", password)
        page.keyboard.press("Enter")
        inside = page.frame_locator("iframe")
        inside.get_by_role("button", name="Show the plan").click()
        inside.get_by_role("button", name="Backfill 2 parts").click()
        expect(inside.locator(".started")).to_contain_text("finished", timeout=180_000)
        run = inside.locator(".started a").inner_text()
    finally:
        context.close()
    found = product.api.get(f"/dags/partwise_backfill/dagRuns/{run}")
    assert (found["state"], found["conf"]["table"]) == ("success", "a")
    path = f"/dags/partwise_backfill/dagRuns/{run}/taskInstances/report/xcomEntries/return_value?deserialize=true"
    assert product.api.get(path)["value"][0] == {
        "table": "a",
        "recomputed": "2",
        "changed": "0",
        "unchanged": "2",
        "left": "0",
    }


def test_a_sensor_that_waits_in_vain_fails_once_and_for_all(product: Product) -> None:
    folder = product.workspace / "dags"
    (folder / "in_vain.py").write_text(IN_VAIN)
    product.wait("a DAG of one's own", lambda: product.api.get("/dags/in_vain")["dag_id"] == "in_vain")
    run = product.trigger("in_vain", {})
    product.wait("the sensor gives up", lambda: product.state("in_vain", run, "wait") == "failed")
    log = json.dumps(product.api.get(f"/dags/in_vain/dagRuns/{run}/taskInstances/wait/logs/1"))
    assert "gave up after 5 seconds: a[2030-01-01T00:00] waits: a 0/1, missing 00:00" in log


def test_without_its_pool_a_step_waits_and_goes_on_with_it(product: Product) -> None:
    pool = product.api.get("/pools/spark")
    product.api._call("DELETE", "/api/v2/pools/spark", None)
    product.land("m30", ("30", "y", 30), ("31", "x", 1))
    product.wait(
        "a step without a pool", lambda: product.state("a", product.runs("a")[0]["dag_run_id"], "a") == "scheduled"
    )
    assert not product.has("a", "30")
    product.api.post("/pools", {"name": "spark", "slots": pool["slots"], "include_deferred": False})
    product.wait("b after its pool came back", lambda: product.has("b", "30"))


def test_the_nightly_audit_fails_with_the_list(product: Product) -> None:
    def audited() -> tuple[str, str]:
        """The state of a run of the nightly DAG, and what its audit wrote."""
        run = product.trigger("partwise_upkeep", {})
        found = f"/dags/partwise_upkeep/dagRuns/{run}"
        product.wait("the nightly upkeep", lambda: product.api.get(found)["state"] in ("success", "failed"))
        log = product.api.get(f"{found}/taskInstances/audit/logs/1?full_content=true")["content"]
        return product.api.get(found)["state"], json.dumps(log)

    def shift(seconds: int) -> None:
        ledger = product.ledger()
        with ledger.database.changing_schema() as on:
            on.exec_driver_sql(f"UPDATE revision SET at = at + {seconds} WHERE \"table\" = 'b'")
        ledger.database.close()

    state, said = audited()
    assert (state, "The ledger is in order." in said) == ("success", True), said
    shift(1)
    state, said = audited()
    assert (state, "b: a revision and its version, recorded at " in said) == ("failed", True), said
    shift(-1)


def test_nothing_is_wrong_in_the_end(product: Product) -> None:
    product.is_right()


def test_a_thousand_missing_parts_are_a_few_runs(product: Product) -> None:
    """The last one: to recompute each of them for a comparison would take minutes."""
    names = ("a", "b", "pair")
    before = {view: len(product.runs(view)) for view in names}
    times = [(hour, minute) for hour in range(11, 24) for minute in range(60)]
    times += [(hour, minute) for hour in range(4) for minute in range(60)]
    rows = [f"2026-10-{3 + (hour < 11):02d}T{hour:02d}:{minute:02d}:10,x,1" for hour, minute in times[:1001]]
    draft = product.workspace / ".thousand"
    draft.write_text("t,src,loss\n" + "\n".join(rows))
    draft.replace(product.workspace / "landing/m/thousand.csv")
    first = parse_part("2026-10-03T11:00", 60)
    for view in ("b", "pair"):
        product.wait(f"a thousand parts of {view}", lambda view=view: product.parts(view).covers(first, first + 999))
    sql = "SELECT COUNT(*), SUM(total) FROM b WHERE part_timestamp >= '2026-10-03T11:00'"
    assert read(sql, str(product.workspace)).rows == [(1000, 1000.0)]
    more = {view: len(product.runs(view)) - before[view] for view in names}
    print(f"runs for a thousand parts: {more}")
    assert max(more.values()) <= 5
