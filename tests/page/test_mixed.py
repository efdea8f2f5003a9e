"""Parts that were computed while inputs were not up to date, on the page: marked until they are repaired."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from partwise.ledger.records.mixtures import mixed_parts
from partwise.page.heat import heat
from partwise.tables import Graph, Input, Table
from tests.page.conftest import Open, Site
from tests.page.test_browser import box, click
from tests.page.test_cells import unpack
from tests.page.warehouse import MINUTE, SAME, TEN, Warehouse


def test_a_cell_with_a_mixed_part_is_marked() -> None:
    s, a, b = (Input(name, SAME) for name in "sab")
    tables = [Table(name, "view", 60, "f", (s,), (s,)) for name in "ab"]
    made = Warehouse.of(
        Graph.of([Table("s", "source", 60, "f"), *tables, Table("c", "view", 60, "f", (a, b), (a, b), patience=3600)])
    )
    made.deliver("s", {MINUTE + n: 10 for n in range(5)})
    made.build()

    def marks(cells: int = 5) -> dict[str, str]:
        with made.snapshot() as snapshot:
            return {row.table: unpack(row.mixed) for row in heat(snapshot, TEN, TEN + 300, cells).rows if row.mixed}

    made.deliver("s", {MINUTE + 3: 11})
    made.build("b")
    assert marks() == {}
    made.now += 2 * 3600  # c is out of patience
    made.build("c")
    assert marks() == {"c": "---m-"}
    assert "m" in marks(2)["c"]
    made.build()
    assert marks() == {}


@pytest.mark.xdist_group("browser")
def test_its_mark_and_its_word_are_seen(open_page: Open, site: Site) -> None:
    site.made.now += 2 * 3600
    site.made.build("final")
    with site.made.snapshot() as snapshot:
        minute = mixed_parts(snapshot.r)["final"].first - MINUTE
    page = open_page()
    expect(page.locator(".legend .chip", has_text="mixed")).to_be_visible()
    at = box(page, "final", minute)
    corner = page.evaluate(
        """([x, y]) => {
            const hex = (data) => "#" + [...data.slice(0, 3)].map((v) => v.toString(16).padStart(2, "0")).join("");
            const one = document.createElement("canvas").getContext("2d");
            one.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--text").trim();
            one.fillRect(0, 0, 1, 1);
            const canvas = document.getElementById("cells"), box = canvas.getBoundingClientRect();
            const ratio = canvas.width / box.width;
            const pixel = canvas.getContext("2d").getImageData((x - box.left) * ratio, (y - box.top) * ratio, 1, 1).data;
            return [hex(pixel), hex(one.getImageData(0, 0, 1, 1).data)];
        }""",
        [float(at["left"]) + 2, float(at["y"]) - 8],
    )
    assert corner[0] == corner[1]
    click(page, "final", minute)
    expect(page.locator("#panel .why .chip", has_text="mixed")).to_be_visible()
    expect(page.locator("#panel .why")).to_contain_text("It is mixed: computed as of sequence")
