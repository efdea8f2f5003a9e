"""NEXT and its bitmap, as ViewDF's maintainer sees them."""

from collections.abc import Mapping
from dataclasses import replace

from partwise.parts import FOREVER, Parts, Reference, parse_part
from partwise.parts.references import Bound
from partwise.plan.next import look_ahead, needs_of, next_part, next_text
from partwise.tables import Graph, Input, Table

TEN = parse_part("2026-10-03T10:00", 60)


def view(
    name: str, *inputs: Input, length: int = 60, initial: tuple[Input, ...] | None = None, helper_of: str | None = None
) -> Table:
    return Table(name, "view", length, "f", inputs, inputs if initial is None else initial, helper_of=helper_of)


M = Table("measurements", "source", 60, "f")
N = Table("nodes", "dimension", 1, "f")
WINDOW = view("high_loss", Input("measurements", Reference.window(-3, 0)))
REGION = view("by_region", Input("measurements", Reference(Bound(5, 0), Bound(5, 4))), Input("nodes", None), length=300)
TOTAL = view(
    "total",
    Input("measurements", Reference.same()),
    Input("total", Reference.same(-1)),
    initial=(Input("measurements", Reference.same()),),
)
HELPER = view("h", Input("measurements", Reference.same()), Input("h", Reference.same(-1)), helper_of="final")
FINAL = view("final", Input("h", Reference.window(-3, 0)))
GRAPH = Graph.of((M, N, WINDOW, REGION, TOTAL, HELPER, FINAL))


class World:
    """Tables begin with their first part."""

    def __init__(self, **there: Parts) -> None:
        self.there = there

    def lost(self, name: str) -> Parts:
        return Parts()

    def existing(self, name: str, lo: int, hi: int) -> Parts:
        return self.there.get(name, Parts()).within(lo, hi)

    def start(self, name: str) -> int | None:
        return self.there[name].first if self.there.get(name) else None


def minutes(first: int, last: int) -> Parts:
    return Parts.of((TEN + first, TEN + last))


def test_the_sentence_of_the_paper() -> None:
    there = World(measurements=minutes(0, 4), high_loss=minutes(3, 4))
    found = next_part(GRAPH, there, "high_loss", TEN + 3)
    assert found.part == TEN + 5
    assert [need.bitmap() for need in found.needs] == ["1110"]
    assert next_text(GRAPH, found) == "high_loss[2026-10-03T10:05] waits: measurements 3/4, missing 10:05"


def test_other_lengths_and_dimensions() -> None:
    found = next_part(GRAPH, World(measurements=minutes(0, 3)), "by_region", None)
    assert next_text(GRAPH, found) == (
        "by_region[2026-10-03T10:00] waits: measurements 4/5, missing 10:04; nodes is not loaded"
    )


def test_nothing_says_where_it_begins() -> None:
    assert next_text(GRAPH, next_part(GRAPH, World(), "high_loss", None)) == (
        "high_loss waits: measurements has no parts yet"
    )


def test_own_parts_count_as_there_for_next_and_are_clipped_at_the_start() -> None:
    there = World(measurements=minutes(0, 2), total=minutes(0, 0))
    found = next_part(GRAPH, there, "total", TEN, skip=minutes(1, 2))
    assert (found.part, [n.table for n in found.needs], found.waits) == (TEN + 3, ["measurements"], True)
    assert [n.table for n in needs_of(there, TOTAL, TEN, TEN)] == ["measurements"]
    honest = {n.table: n.bitmap() for n in needs_of(there, TOTAL, TEN, TEN + 2)}
    assert honest == {"measurements": "1", "total": "0"}


def test_a_hole_comes_first_and_frozen_parts_never_do() -> None:
    there = World(measurements=minutes(0, 9), high_loss=minutes(3, 4) | minutes(6, 9))
    assert next_part(GRAPH, there, "high_loss", TEN + 3).part == TEN + 5
    assert next_part(GRAPH, there, "high_loss", TEN + 3, lowest=TEN + 6).part == TEN + 10


def test_generated_helpers_are_looked_through() -> None:
    there = World(measurements=minutes(0, 4), h=minutes(0, 4), final=minutes(3, 4))
    assert next_text(GRAPH, next_part(GRAPH, there, "final", TEN + 3)) == (
        "final[2026-10-03T10:05] waits: measurements 3/4, missing 10:05"
    )


def test_a_long_window_is_cut_in_the_bitmap() -> None:
    wide = view("wide", Input("measurements", Reference.window(-1439, 0)))
    need = needs_of(World(measurements=minutes(-2000, 0)), wide, -FOREVER, TEN)[0]
    assert (need.bitmap(), need.bitmap(3)) == ("1" * 1440, "111...")


def test_of_an_optional_input_nothing_before_its_start_is_needed() -> None:
    partial = replace(view("partial", Input("measurements", Reference.window(-3, 0))), optional=("measurements",))
    graph, there = Graph.of((M, partial)), World(measurements=minutes(0, 1), partial=minutes(0, 1))
    found = next_part(graph, there, "partial", TEN)
    assert (found.part, [need.bitmap() for need in found.needs]) == (TEN + 2, ["110"])
    assert next_text(graph, found) == "partial[2026-10-03T10:02] waits: measurements 2/3, missing 10:02"
    assert [need.bitmap() for need in needs_of(there, partial, TEN - 1, TEN - 1)] == ["0"]  # it must read something
    assert next_part(graph, World(measurements=minutes(0, 1)), "partial", None).part == TEN


class TestLookAhead:
    def ahead(self, ready: Mapping[str, Parts], held: Mapping[str, Parts] | None = None, **there: Parts):  # type: ignore[no-untyped-def]
        return look_ahead(GRAPH, World(**there), ready, held or {})

    def test_a_chain_becomes_possible(self) -> None:
        after = self.ahead({"h": minutes(0, 5)}, measurements=minutes(0, 5))
        assert after.follows == {"final": minutes(3, 5)}
        assert after.existing("final", -FOREVER, FOREVER) == minutes(3, 5)

    def test_what_cannot_be_built_holds_up_what_reads_it(self) -> None:
        after = self.ahead({"total": minutes(0, 1)}, {"total": minutes(2, 2)}, measurements=minutes(0, 5))
        assert "total" not in after.follows

    def test_nothing_ready_nothing_follows(self) -> None:
        assert self.ahead({}, measurements=minutes(0, 5)).follows == {}
