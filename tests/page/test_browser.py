"""The page in a real browser: what people see, and that clicking and typing does what it says."""

from __future__ import annotations

from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from partwise.backfill import ask
from partwise.ledger.records import backfills
from partwise.ledger.records.running import Running, note
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
    expect(panel.locator(".why")).to_contain_text(
        "by_minute[2026-10-03T10:42] failed and is read at its earlier revision"
    )
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()


def test_a_part_leads_to_the_run_that_wrote_it_and_to_its_log(open_page: Open, site: Site) -> None:
    site.made.written_by("by_minute", "asset_triggered__1")
    site.made.deliver("measurements", dict.fromkeys(range(MINUTE + 30, MINUTE + 33), 9))
    site.made.build("by_minute")
    site.made.written_by("partwise_backfill", "manual__1", "compute_1", 2)
    site.made.deliver("measurements", {MINUTE + 31: 10})
    site.made.fail("by_minute", MINUTE + 31)
    page = open_page("#table=by_minute&part=2026-10-03T10:31")
    runs = page.locator("#panel .runs li")
    expect(runs).to_have_text(["manual__1 failed · log", "asset_triggered__1 revision 2 · log"])
    links = [link.get_attribute("href") for link in page.locator("#panel .runs a").all()]
    assert links == [
        "/dags/partwise_backfill/runs/manual__1",
        "/dags/partwise_backfill/runs/manual__1/tasks/compute_1/mapped/2",
        "/dags/by_minute/runs/asset_triggered__1",
        "/dags/by_minute/runs/asset_triggered__1/tasks/by_minute",
    ]


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


def test_a_step_that_takes_long_shows_how_far_it_is(open_page: Open, site: Site) -> None:
    ledger, now = site.made.ledger, site.made.now
    held = ledger.take("by_minute", "somebody", 60, now)
    note(ledger.database, held, Running("by_minute", Range(MINUTE, MINUTE + 1999), 1200, 2000, now - 20))
    page = open_page()
    shown = page.locator("#working .chip")
    expect(shown).to_have_text("by_minute 2026-10-03T10:00..2026-10-04T19:19: 1,200 of 2,000 parts")


def test_who_may_only_look_sees_the_plan_and_no_button(open_page: Open, site: Site) -> None:
    site.runs.allowed = False
    page = open_page("#table=by_minute&part=2026-10-03T10:05")
    page.get_by_role("button", name="Show the plan").click()
    expect(page.locator(".plan")).to_contain_text("You have read-only access")
    expect(page.locator(".plan .primary")).to_have_count(0)


def test_of_a_helper_the_view_is_offered_instead_of_a_backfill(open_page: Open) -> None:
    page = open_page("#table=worst_helper&part=2026-10-03T10:20")
    panel = page.locator("#panel")
    expect(panel.locator(".helper")).to_contain_text("a backfill of worst computes it again")
    expect(panel.locator("form.backfill")).to_have_count(0)
    panel.locator(".helper").get_by_role("button", name="worst").click()
    expect(page.locator("#table h2")).to_contain_text("worst")


def test_links_lead_to_a_part_a_range_and_a_view(open_page: Open) -> None:
    page = open_page("#table=final&part=2026-10-03T10:43")
    expect(page.locator("#panel h2")).to_contain_text("final 2026-10-03T10:43")
    page = open_page("#table=final&range=2026-10-03T10:20..2026-10-03T10:29")
    expect(page.locator("#panel .why")).to_contain_text("10 parts")
    page = open_page("#view=lineage")
    expect(page.locator("#lineage [data-table=final]")).to_be_visible()
    page = open_page(query="?dag=worst")
    expect(page.locator("#table h2")).to_contain_text("worst")
    expect(page.locator("#table .delays")).to_contain_text("on time")
    assert page.locator(".label").evaluate_all("all => all.map((each) => each.dataset.table)") == [
        "measurements",
        "worst",
    ]
    page = open_page(query="?dag=partwise_backfill")
    expect(page.locator("[data-table=final]")).to_be_visible()


def test_a_link_to_a_helper_unfolds_it_and_what_a_link_names_wrongly_is_said(open_page: Open) -> None:
    page = open_page("#table=WORST_helper&part=%2329850370")
    expect(page.locator(".label[data-table=worst_helper]")).to_be_visible()
    expect(page.locator("#panel h2")).to_contain_text("worst_helper 2026-10-03T10:10")
    expect(page.locator("#notice")).to_be_hidden()
    for link, words in (
        ("#table=by_minit", "There is no table 'by_minit'. Did you mean by_minute?"),
        ("#view=table&table=nope", "There is no table 'nope'."),
        ("#table=by_minute&range=yesterday", "range: 'yesterday' cannot be read"),
        ("#table=by_minute&part=yesterday", "not a time"),
    ):
        page = open_page(link, wrong=True)
        expect(page.locator("#notice")).to_contain_text(words)
        expect(page.locator(".label[data-table=final]")).to_be_visible()


def test_a_link_brings_its_row_into_sight(open_page: Open) -> None:
    page = open_page("#table=revenue&part=2026-10-02", height=300)
    page.wait_for_function("() => document.getElementById('scroll').scrollTop > 0")
    label = page.locator(".label[data-table=revenue]").bounding_box()
    assert label is not None
    assert label["y"] + label["height"] <= 300


def test_the_lineage_of_all_tables_can_be_searched_and_fits(open_page: Open) -> None:
    page = open_page("#view=lineage")
    expect(page.locator("#lineage [data-table=final]")).to_be_visible()
    for unused in ("#since", "#only", "#span"):
        expect(page.locator(unused)).to_be_hidden()
    page.locator("#search").fill("fin")
    expect(page.locator("#lineage .node:not(.far)")).to_have_count(1)
    page.set_viewport_size({"width": 600, "height": 700})
    page.locator("#search").fill("")
    expect(page.locator("#lineage .node.far")).to_have_count(0)
    drawn = page.locator("#lineage .flow").bounding_box()
    assert drawn is not None
    assert drawn["width"] < 600
    page.get_by_label("in full size").check()
    page.wait_for_function("() => document.querySelector('#lineage .flow').getBoundingClientRect().width > 600")


def test_the_lineage_of_a_part_is_drawn_and_many_parts_are_one_link(open_page: Open) -> None:
    page = open_page("#table=worst&part=2026-10-03T10:20")
    flow = page.locator("#panel .partflow")
    expect(flow.locator("path.edge")).to_have_count(1)
    expect(flow.get_by_label("Computed from").locator("b")).to_have_attribute(
        "title", "measurements, through worst_helper"
    )
    page.evaluate(
        """() => import("./static/flow.js").then(({ partFlow }) => {
            const item = { table: "measurements", parts: ["2026-10-03T10:00..2026-10-03T11:40"], count: 101, links: [], changed: [], through: [] };
            const wanted = { range: (table, range) => { document.title = `${table} ${range}`; } };
            document.querySelector("#panel").append(partFlow({ table: "x", upstream: [item], downstream: [], state: "fresh", part: "2026-10-03" }, wanted));
        })"""
    )
    page.get_by_role("button", name="101 parts").click()
    expect(page).to_have_title("measurements 2026-10-03T10:00..2026-10-03T11:40")


def test_charts_say_when(open_page: Open) -> None:
    page = open_page("#view=table&table=final", zone="Asia/Tokyo")
    expect(page.locator("#table")).to_contain_text("Seconds of computing per part")
    labels = page.locator("#table .bars").first.locator(".when")
    expect(labels.first).to_have_text("3 Oct, 19:00")
    assert labels.count() >= 2


def test_back_leads_to_what_was_shown_before(open_page: Open) -> None:
    page = open_page()
    click(page, "by_minute", 42)
    expect(page.locator("#panel h2")).to_contain_text("by_minute 2026-10-03T10:42")
    page.locator("#panel").get_by_role("button", name="Definition and charts").click()
    expect(page.locator("#table h2")).to_contain_text("by_minute")
    page.go_back()
    expect(page.locator("#table")).to_be_hidden()
    expect(page.locator("#panel h2")).to_contain_text("by_minute 2026-10-03T10:42")
    page.go_back()
    expect(page.locator("#panel")).to_be_hidden()


def test_what_stays_the_same_is_left_alone_when_the_page_refreshes(open_page: Open, site: Site) -> None:
    page = open_page("#view=table&table=final&part=2026-10-03T10:43")
    expect(page.locator("#table h2")).to_contain_text("final")
    expect(page.locator("#panel .why")).to_be_visible()
    page.evaluate("for (const id of ['table', 'panel']) document.querySelector(`#${id} h2`).dataset.same = 'yes'")
    site.made.deliver("orders", {TEN // 86400: 5})  # nothing to do with it
    page.evaluate("partsPage.refresh()")
    expect(page.locator(".label[data-table=final]")).to_be_visible()
    page.wait_for_timeout(500)
    for place in ("#table h2", "#panel h2"):
        expect(page.locator(place)).to_have_attribute("data-same", "yes")


#: The days on which clocks are put forward and back in Berlin, and a zone whose clocks move by half an hour.
SPRING, AUTUMN, SOUTH = 1774656000, 1792800000, 1775311200


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "UTC", "Asia/Kathmandu"])
def test_the_axis_is_in_round_local_times_also_when_clocks_change(open_page: Open, zone: str) -> None:
    page = open_page(zone=zone)
    ticks = """([begin, end]) => import("./static/time.js").then(({ ticks }) => ticks(begin, end, 900).map((tick) => {
        const shown = new Date(tick.at * 1000);
        return [tick.at, shown.getHours() * 60 + shown.getMinutes(), tick.text, tick.strong];
    }))"""
    for begin in (SPRING, AUTUMN, SOUTH):
        for span, step in ((3 * 3600, 30), (2 * 86400, 360), (6 * 86400, 1440), (300 * 86400, 1440)):
            found = page.evaluate(ticks, [begin, begin + span])
            assert len(found) >= 4
            assert all(minutes % step == 0 for _, minutes, _, _ in found), (zone, begin, span, found)
            assert all(a[0] < b[0] for a, b in pairwise(found))


def test_the_zone_follows_airflows_choice(open_page: Open) -> None:
    page = open_page(zone="UTC")
    expect(page.locator("#stretch")).to_have_text("UTC")
    page.evaluate("localStorage.setItem('timezone', JSON.stringify('Asia/Tokyo'))")
    page.reload()
    expect(page.locator("#stretch")).to_have_text("Asia/Tokyo")
    page.wait_for_selector("body[data-ready]")
    at = box(page, "final", 22)
    page.mouse.move(float(at["left"]) + 3, float(at["y"]))
    expect(page.locator("#tip")).to_contain_text("19:22")
    page.evaluate("localStorage.setItem('timezone', 'nonsense')")
    page.reload()
    expect(page.locator("#stretch")).to_have_text("UTC")


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
