"""The page in a real browser: what people see, and that clicking and typing does what it says."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from partwise.backfill import ask
from partwise.ledger import backfills
from partwise.parts import Parts, Range
from tests.page.conftest import Open, Site
from tests.page.warehouse import MINUTE, TEN

pytestmark = pytest.mark.xdist_group("browser")


def box(page: Page, table: str, minute: int) -> dict[str, float | str]:
    found: dict[str, float | str] = page.evaluate(
        "([table, at]) => partsPage.boxOf(table, at)", [table, TEN + 60 * minute + 30]
    )
    return found


def colour(page: Page, table: str, minute: int) -> str:
    """What is really painted in the upper part of a cell, beside its mark."""
    at = box(page, table, minute)
    return page.evaluate(
        """([x, y]) => {
            const canvas = document.getElementById("cells"), box = canvas.getBoundingClientRect();
            const ratio = canvas.width / box.width;
            const pixel = canvas.getContext("2d").getImageData((x - box.left) * ratio, (y - box.top - 7) * ratio, 1, 1).data;
            return "#" + [...pixel.slice(0, 3)].map((v) => v.toString(16).padStart(2, "0")).join("");
        }""",
        [(float(at["left"]) + float(at["right"])) / 2, at["y"]],
    )


def click(page: Page, table: str, minute: int, to: int | None = None) -> None:
    start, end = box(page, table, minute), box(page, table, minute if to is None else to)
    page.mouse.move((float(start["left"]) + float(start["right"])) / 2, float(start["y"]))
    page.mouse.down()
    page.mouse.move((float(end["left"]) + float(end["right"])) / 2, float(end["y"]), steps=3)
    page.mouse.up()


def style(page: Page, name: str) -> str:
    return page.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")


STATES = [
    ("by_minute", 5, "fresh"),
    ("by_minute", 22, "repaired"),
    ("by_minute", 42, "failed"),
    ("by_minute", 41, "stale"),
    ("final", 43, "blocked"),
    ("report", 22, "manual"),
    ("worst", 45, "building"),
    ("measurements", 60, "missing"),
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_state_has_its_colour_and_its_word(open_page: Open, scheme: str) -> None:
    page = open_page(scheme=scheme)
    expect(page.locator("html")).to_have_attribute("data-theme", scheme)
    for table, minute, word in STATES:
        assert box(page, table, minute)["word"] == word
        if word != "building":  # it pulses
            assert colour(page, table, minute) == style(page, word), (table, minute, word)
    for word in ("empty", "open", *(word for _, _, word in STATES)):
        expect(page.locator(".legend .chip", has_text=word)).to_be_visible()
    expect(page.locator("[data-table=by_minute] .count")).to_have_text("1 failed")


def test_a_click_tells_why_and_leads_on_through_the_lineage(open_page: Open) -> None:
    page = open_page()
    click(page, "by_minute", 42)
    panel = page.locator("#panel")
    expect(panel.locator(".why")).to_contain_text("failed its checks")
    expect(panel).to_contain_text("2 of 3 rows have no src")
    expect(panel.locator(".checks pre")).to_contain_text('{"loss": 7}')
    expect(panel.locator(".facts")).to_contain_text("late rows in measurements")
    assert page.url.endswith("#table=by_minute&part=2026-10-03T10:42")
    panel.get_by_label("Feeds").get_by_role("button", name="10:42").first.click()
    expect(panel.locator("h2")).to_contain_text("final")
    expect(panel.locator(".why")).to_contain_text("It waits")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()


def test_only_what_changed_since_the_chosen_moment_stays_in_the_light(open_page: Open, site: Site) -> None:
    site.made.deliver("measurements", {MINUTE + 22: 9})  # repaired before, stale now
    site.app.state.place.now += 7200
    page = open_page()
    assert [box(page, "by_minute", m)["changed"] for m in (5, 21, 22)] == [False, True, True]
    page.locator("#only").check()
    assert colour(page, "by_minute", 21) == style(page, "repaired")
    assert colour(page, "by_minute", 22) == style(page, "stale")
    assert colour(page, "by_minute", 5) != style(page, "fresh")
    page.locator("#since").select_option("3600")
    page.wait_for_function("([t, m]) => !partsPage.boxOf(t, m).changed", arg=["by_minute", TEN + 60 * 22])
    assert box(page, "by_minute", 21)["word"] == "fresh"
    assert colour(page, "by_minute", 22) != style(page, "stale")
    assert "since=3600" in page.url
    page.locator("#only").uncheck()
    assert colour(page, "by_minute", 22) == style(page, "stale")


def test_a_tables_tab_lists_what_changed(open_page: Open) -> None:
    page = open_page("#view=table&table=final")
    changes = page.locator("#table .changes")
    expect(changes).to_contain_text("2026-10-03T10:24")
    expect(changes).to_contain_text("by_minute[2026-10-03T10:20..2026-10-03T10:24] changed")
    changes.get_by_role("button", name="2026-10-03T10:24").click()
    expect(page.locator("#panel h2")).to_contain_text("final 2026-10-03T10:24")


def test_a_hover_shows_rows_revision_and_when_in_the_viewers_zone_with_utc(open_page: Open) -> None:
    page = open_page(zone="Asia/Tokyo")
    at = box(page, "final", 22)
    page.mouse.move(float(at["left"]) + 3, float(at["y"]))
    tip = page.locator("#tip")
    expect(tip).to_contain_text("3 rows, revision 2")
    expect(tip).to_contain_text("19:22")
    expect(tip).to_contain_text("2026-10-03 10:22:00 UTC")
    expect(tip).to_contain_text("last updated")
    expect(tip).to_contain_text("repaired")


def test_a_backfill_is_planned_started_and_seen_to_finish(open_page: Open, site: Site) -> None:
    page = open_page()
    click(page, "by_minute", 5, to=9)
    panel = page.locator("#panel")
    expect(panel.locator("h2")).to_contain_text("2026-10-03T10:05..2026-10-03T10:09")
    panel.get_by_role("button", name="Show the plan").click()
    expect(panel.locator(".plan")).to_contain_text("final")
    panel.get_by_role("button", name="Backfill 5 parts").click()
    expect(panel.locator(".started")).to_contain_text("running manual__1")
    dag, values = site.runs.started[0]
    assert (dag, values["table"], values["range"]) == (
        "partwise_backfill",
        "by_minute",
        "2026-10-03T10:05..2026-10-03T10:09",
    )
    # What the DAG does: ask the ledger for the parts, and compute them. The page follows by itself.
    site.made.ledger.request("by_minute", Parts.of((MINUTE + 5, MINUTE + 9)), site.made.now)
    page.wait_for_function("([t, m]) => partsPage.boxOf(t, m).word === 'stale'", arg=["by_minute", TEN + 330])
    site.made.build("by_minute")
    page.evaluate("partsPage.refresh()")  # which it would do by itself a few seconds later
    page.wait_for_function("([t, m]) => partsPage.boxOf(t, m).word === 'repaired'", arg=["by_minute", TEN + 330])
    site.runs.state = "success"
    expect(panel.locator(".started")).to_contain_text("finished manual__1")


def test_a_backfill_that_others_have_started_is_shown_while_it_lasts(open_page: Open, site: Site) -> None:
    ledger, now = site.made.ledger, site.made.now
    with site.made.snapshot() as snapshot:
        asked = ask(backfills.world_of(snapshot), "by_minute", Range(MINUTE + 5, MINUTE + 9))
    with ledger.database.writing(now) as w:
        number = backfills.begin(w, ledger.graph(), asked, True, "airflow:manual__7", lambda _: False).number
    page = open_page()
    shown = page.locator("#working a")
    expect(shown).to_have_text("backfill of by_minute 2026-10-03T10:05..2026-10-03T10:09")
    assert str(shown.get_attribute("href")).endswith("/dags/partwise_backfill/runs/manual__7")
    with ledger.database.writing(now) as w:
        backfills.finish(w, number, done=True)
    page.evaluate("partsPage.refresh()")
    expect(shown).to_have_count(0)


def test_who_may_only_look_sees_the_plan_and_no_button(open_page: Open, site: Site) -> None:
    site.runs.allowed = False
    page = open_page("#table=by_minute&part=2026-10-03T10:05")
    page.get_by_role("button", name="Show the plan").click()
    expect(page.locator(".plan")).to_contain_text("You may look")
    expect(page.locator(".plan .primary")).to_have_count(0)


def test_links_lead_to_a_part_a_range_and_a_view(open_page: Open) -> None:
    page = open_page("#table=final&part=2026-10-03T10:43")
    expect(page.locator("#panel h2")).to_contain_text("final 2026-10-03T10:43")
    page = open_page("#table=final&range=2026-10-03T10:20..2026-10-03T10:29")
    expect(page.locator("#panel .why")).to_contain_text("10 parts")
    page = open_page("#view=lineage")
    expect(page.locator("#lineage [data-table=final]")).to_be_visible()
    page = open_page(query="?dag=worst")
    expect(page.locator("#table h2")).to_contain_text("worst")
    expect(page.locator("#table .delays")).to_contain_text("before its end")
    assert page.locator(".label").evaluate_all("all => all.map((each) => each.dataset.table)") == [
        "measurements",
        "worst",
    ]
    page = open_page(query="?dag=partwise_backfill")
    expect(page.locator("[data-table=final]")).to_be_visible()


def test_it_can_be_used_by_keyboard_alone(open_page: Open) -> None:
    page = open_page()
    page.keyboard.press("/")
    page.keyboard.type("fin")
    expect(page.locator(".label")).to_have_count(1)
    page.keyboard.press("Tab")
    page.locator("#heat").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#spoken")).to_contain_text("fresh")
    page.keyboard.press("Enter")
    expect(page.locator("#panel h2")).to_contain_text("final 2026-10-03T10:02")
    page.keyboard.press("Shift+ArrowRight")
    expect(page.locator("#panel h2")).to_contain_text("2026-10-03T10:02..2026-10-03T10:03")


def test_zoom_goes_from_minutes_to_months_and_back(open_page: Open) -> None:
    page = open_page()
    page.locator("#span").select_option("2592000")
    page.wait_for_function(
        "([t, m]) => { const b = partsPage.boxOf(t, m); return b.right - b.left > 0 && b.word === 'failed' && b.right - b.left < 15; }",
        arg=["by_minute", TEN + 2500],
    )
    page.wait_for_function("([t, m]) => partsPage.boxOf(t, m).word === 'fresh'", arg=["orders", TEN - 86400 * 2])
    page.get_by_role("button", name="Newest").click()
    page.wait_for_function("([t, m]) => partsPage.boxOf(t, m).word === 'fresh'", arg=["by_minute", TEN + 330])


def test_helpers_are_folded_under_their_view(open_page: Open) -> None:
    page = open_page()
    expect(page.locator("[data-table=worst_helper]")).to_have_count(0)
    page.locator("[data-table=worst] .fold").click()
    expect(page.locator("[data-table=worst_helper]")).to_be_visible()


def test_the_theme_follows_airflows_choice(open_page: Open) -> None:
    page = open_page(scheme="light")
    page.evaluate("localStorage.setItem('theme', 'dark')")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
