"""How far a change reaches through a view's references to itself: exactly, however long the chain is."""

from hypothesis import given
from hypothesis import strategies as st

from partwise.parts import FOREVER, Parts, Range, Reference
from partwise.plan.reach import self_closure, with_predecessors
from partwise.tables import Input, Table

BACK = st.tuples(st.integers(1, 12), st.integers(0, 6)).map(lambda t: Reference.window(-t[0] - t[1], -t[0]))


def itself(*references: Reference) -> Table:
    return Table("v", "view", 60, "f", tuple(Input("v", r) for r in references), ())


def one_by_one(view: Table, parts: Parts, last: int) -> Parts:
    found: set[int] = set()
    for j in range(parts.first, last + 1):
        spans = [r.requires(j) for r in view.self_references]
        if any(p in parts or p in found for span in spans for p in range(span.lo, span.hi + 1)):
            found.add(j)
    return Parts.single(*found)


@given(st.lists(BACK, min_size=1, max_size=3), st.sets(st.integers(0, 60), min_size=1, max_size=8), st.integers(0, 120))
def test_what_follows_is_what_a_walk_part_by_part_finds(
    references: list[Reference], parts: set[int], last: int
) -> None:
    view, changed = itself(*references), Parts.single(*parts)
    assert self_closure(view, changed, last) == one_by_one(view, changed, last)


def test_a_sparse_chain_of_many_links_stays_sparse() -> None:
    weekly = itself(Reference.same(-7))
    assert self_closure(weekly, Parts.single(3), 10_000) == Parts.single(*range(10, 10_001, 7))
    assert self_closure(weekly, Parts.single(3) | Parts.of((90, 96)), 10_000) == Parts.single(
        *range(10, 97, 7)
    ) | Parts.of((97, 10_000))


def test_dense_chains_are_one_range_whatever_their_length() -> None:
    assert self_closure(itself(Reference.same(-1)), Parts.single(5), FOREVER) == Parts.of((6, FOREVER))
    assert self_closure(itself(Reference.same(-2), Reference.same(-3)), Parts.single(0), FOREVER) == Parts.of(
        (2, FOREVER)
    )
    assert self_closure(itself(Reference.window(-9, -5)), Parts.of((0, 1)), FOREVER) == Parts.of((5, FOREVER))


def test_only_the_chain_behind_a_hole_waits() -> None:
    view = itself(Reference.same(-7))
    wanted = Parts.of((0, 9)) | Parts.of((11, 5_000))
    ready = with_predecessors(view, 0, wanted, Parts())
    assert wanted - ready == Parts.single(*range(17, 5_001, 7))
    assert ready.last == 5_000


def test_nothing_follows_without_references_to_itself() -> None:
    assert self_closure(itself(), Parts.of(Range(0, 9)), 100) == Parts()
