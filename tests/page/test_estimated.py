"""Parts that a sample tells of before they are refreshed."""

from __future__ import annotations

from dataclasses import replace

from partwise.page.heat import heat
from partwise.page.part import details
from partwise.tables import Graph, Input, Table
from tests.page.test_cells import unpack
from tests.page.warehouse import MINUTE, SAME, TEN, Warehouse


def test_a_part_that_only_the_sample_has_is_marked() -> None:
    minutes = Input("orders", SAME)
    view = Table("v", "view", 60, "f", (minutes,), (minutes,), repair="manual")
    made = Warehouse.of(
        Graph.of(
            [
                Table("orders", "source", 60, "f"),
                view,
                replace(view, name="v__sample", repair="automatic", helper_of="v"),
            ]
        )
    )
    made.deliver("orders", {MINUTE + n: 10 for n in range(5)})
    made.build("v")
    made.build("v__sample")
    made.deliver("orders", {MINUTE + 3: 11})

    def marks() -> str:
        with made.snapshot() as snapshot:
            found = heat(snapshot, TEN, TEN + 300, 5)
            assert details(snapshot, snapshot.graph["v"], MINUTE).sampled
            assert not details(snapshot, snapshot.graph["orders"], MINUTE).sampled
        (row,) = [row for row in found.rows if row.table == "v"]
        assert {row.estimated for row in found.rows if row.table != "v"} == {""}
        return unpack(row.estimated)

    assert marks() == "-----"
    made.build("v__sample")
    assert marks() == "---e-"
    made.deliver("orders", {MINUTE + 4: 11})
    assert marks() == "---e-"
