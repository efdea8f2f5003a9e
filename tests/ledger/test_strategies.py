"""How windows are kept is ledger state: settled once, the same for everyone, and never at the cost of parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from partwise.choose.settled import FOUND, settled
from partwise.compile import Choice
from partwise.compile.load import load
from partwise.compile.program import Program
from partwise.ledger.catalog import settled as settled_facts
from partwise.ledger.ledger import Ledger
from partwise.ledger.read.pin import DefinitionChanged
from partwise.ledger.records.strategies import (
    SettledMeanwhile,
    Settlement,
    is_built,
    kept_as,
    tables_between,
    tables_of,
)
from partwise.ledger.runs import existing
from partwise.ledger.write.commit import Content, Entry
from partwise.ledger.write.leases import Busy
from partwise.parts import Parts
from partwise.settings import Settings
from partwise.workspace import Workspace
from tests.ledger.test_steps import T, arrive, build, steps

SOURCE = """\
source: s
part: 1 minute
time: t
columns: {t: timestamp, g: string, x: bigint}
files: a.csv
---
"""
WINDOW = """\
view: w
part: 1 minute
share: false
query: |
  SELECT g, SUM(x) AS a FROM s [WINDOW 2 minutes] GROUP BY g
"""


class Place:
    """A workspace whose files are these, and a process that works in it."""

    def __init__(self, folder: Path, ledger: Ledger) -> None:
        self.ledger, self.workspace = ledger, Workspace(folder, Settings())
        (folder / "view_defs").mkdir(exist_ok=True)

    def write(self, text: str) -> None:
        (self.workspace.definitions_folder / "a.yaml").write_text(SOURCE + text)

    def load(self) -> Program:
        return load(self.workspace.definitions_folder)

    def take_over(self) -> Program:
        return self.workspace.take_over(self.ledger, self.load(), T)

    def settle(self, definitions: Program, strategy: str, rows: int | None = 10) -> Program | None:
        mark = definitions.views["w"].mark
        after = definitions.choosing({"w": Choice(strategy, "counted")})  # type: ignore[arg-type]
        item = Settlement("w", strategy, mark, "counted", rows, 1)
        tables = tables_between(definitions.graph(), after.graph(), "w")
        return after if self.ledger.settle(item, *tables, T) else None

    def tables(self) -> set[str]:
        return set(self.ledger.graph().tables)


@pytest.fixture
def place(ledger: Ledger, tmp_path: Path) -> Place:
    found = Place(tmp_path, ledger)
    found.write(WINDOW)
    return found


def test_what_is_settled_is_used_by_everyone(place: Place) -> None:
    first = place.take_over()
    assert place.tables() == {"s", "w", "w__panes"}
    other = place.load()  # another process, before anything is settled
    assert place.settle(first, "recompute") is not None
    assert place.tables() == {"s", "w"}
    known = place.ledger.strategies()["w"]
    assert (known.strategy, known.rows, known.groups, known.why) == ("recompute", 10, 1, "counted")
    assert known.at == pytest.approx(T, abs=0.001)  # the ledger's time grows with each transaction
    taken = place.workspace.take_over(place.ledger, other, T)
    assert taken.graph() == place.ledger.graph()
    assert place.workspace.definitions(place.ledger).graph() == place.ledger.graph()
    assert place.settle(taken, "subtract") is not None
    assert place.tables() == {"s", "w", "w__panes", "w__rolling"}


def test_definitions_made_with_other_strategies_are_refused(place: Place) -> None:
    """Else a process that has read the ledger before would bring its variant back, and two could alternate for ever."""
    old = place.take_over()
    known = place.ledger.strategies()
    place.settle(old, "recompute")
    with pytest.raises(SettledMeanwhile):
        place.ledger.define(old.graph(), T, made_with=known)
    assert place.tables() == {"s", "w"}
    now = place.ledger.strategies()
    assert not place.ledger.define(settled(old, now).graph(), T, made_with=now)


def test_a_process_with_other_files_settles_nothing(place: Place) -> None:
    old = place.take_over()
    place.write(WINDOW.replace("SUM(x)", "SUM(x + 1)"))
    new = place.take_over()
    with pytest.raises(DefinitionChanged):
        place.settle(old, "recompute")
    assert place.ledger.strategies() == {}
    place.write(WINDOW.replace("SUM(x)", "SUM(x + 1)") + "---\n" + WINDOW.replace("view: w", "view: more"))
    place.take_over()
    assert place.settle(new, "recompute") is not None, "of other tables it need not know"
    assert place.tables() == {"s", "w", "more", "more__panes"}


def test_nothing_is_settled_while_somebody_writes_one_of_the_tables(place: Place) -> None:
    definitions = place.take_over()
    held = place.ledger.take("w__panes", "somebody", 60, T)
    with pytest.raises(Busy):
        place.settle(definitions, "recompute")
    assert place.ledger.strategies() == {}
    tables = tables_of(definitions.graph(), "w")
    item = Settlement("w", "merge", "m", "as it is")
    assert place.ledger.settle(item, tables, tables, T), "nothing changes by this one"
    place.ledger.release(held, T)
    held = place.ledger.take("w__panes", "a dead one", 60, T)
    after = definitions.choosing({"w": Choice("recompute", "")})
    assert place.ledger.settle(
        item, tables, tables_of(after.graph(), "w"), T, dead=lambda holder: holder == "a dead one"
    )
    late = Entry("w__panes", 0, "x", 1, 0, {0: Content(1, "a")})
    assert place.ledger.commit(held, late, 0, T).changed == Parts(), "a zombie finds its table gone"


def test_what_speaks_against_it_is_looked_at_in_the_same_transaction(place: Place) -> None:
    definitions = place.take_over()
    tables = tables_of(definitions.graph(), "w")
    assert not place.ledger.settle(Settlement("w", "merge", "m", ""), tables, tables, T, still=lambda r: False)
    assert place.ledger.strategies() == {}


def test_parts_that_could_not_be_built_again_are_not_given_up(place: Place) -> None:
    """Panes outlive their source: a window that reads the rows themselves would begin again."""
    definitions = place.take_over()
    arrive(place.ledger, {0: "a", 1: "b", 2: "c"})
    build(place.ledger, "w__panes")
    build(place.ledger, "w")
    held = place.ledger.take("s", "retention", 60, T)
    place.ledger.commit(held, Entry("s", 0, "s1", None, floor=2), None, T)
    assert place.settle(definitions, "recompute") is None
    assert place.settle(definitions, "subtract") is None, "its panes have other columns"


READER = "---\nview: r\npart: 1 minute\nupdate: SELECT g, a FROM w[j]\n"


def test_another_strategy_leaves_what_was_built_until_it_is_built_again(place: Place) -> None:
    """Readers see it all the time; and what reads it does nothing, since the content is the same."""
    place.write(WINDOW + READER)
    definitions, ledger = place.take_over(), place.ledger
    arrive(ledger, {p: f"s{p}" for p in range(5)})
    while found := ledger.plan(T).steps:
        build(ledger, found[0].table)
    for strategy, helpers in {
        "subtract": ("w__panes", "w__rolling"),
        "recompute": (),
        "merge": ("w__panes",),
    }.items():
        changed = place.settle(definitions, strategy)
        assert changed is not None
        definitions = changed
        with ledger.database.reading() as r:
            assert existing(r, "w") == existing(r, "r") == Parts.of((1, 4)), strategy
            assert settled_facts(r, "w").generation == 0
        assert not ledger.audit()
        done = []
        while found := ledger.plan(T).steps:
            done.append(found[0].table)
            build(ledger, found[0].table)
        assert done == [*helpers, "w"], strategy
        assert not ledger.audit()


def test_a_helper_that_comes_back_is_not_believed_what_it_could_not_compute_again(place: Place) -> None:
    """Rows came late while it was away, and their part has expired since: it never heard of them."""
    definitions, ledger = place.take_over(), place.ledger
    arrive(ledger, {0: "a", 1: "b", 2: "c"})
    build(ledger, "w__panes")
    build(ledger, "w")
    away = place.settle(definitions, "recompute")
    assert away is not None
    build(ledger, "w")
    arrive(ledger, {0: "late"})
    assert build(ledger, "w", digest="late") == Parts.single(1)
    held = ledger.take("s", "retention", 60, T)
    ledger.commit(held, Entry("s", 0, "s1", None, floor=1), None, T)
    assert place.settle(away, "merge") is None
    asked = WINDOW.replace("query:", "strategy: merge\nquery:")
    place.write(asked)
    place.take_over()
    with ledger.database.reading() as r:
        assert not existing(r, "w__panes")


def test_only_content_counts_as_built(place: Place) -> None:
    place.take_over()
    ledger = place.ledger

    def built() -> bool:
        with ledger.database.reading() as r:
            return is_built(r, ledger.graph(), "w")

    assert not built()
    arrive(ledger, {0: "a", 1: "b"})
    held = ledger.take("w__panes", "step", 60, T)
    pin = ledger.pin(held, T)
    assert pin is not None
    ledger.commit(held, pin.entry({j: Content(0, "none") for j in pin.walk()}), None, T)
    assert not built(), "parts without rows"
    arrive(ledger, {0: "c"})
    build(ledger, "w__panes")
    assert built()
    place.write(WINDOW.replace("SUM(x)", "SUM(x + 1)"))
    place.take_over()
    assert not built(), "all of it is due, and built again anyway"


def test_what_is_asked_for_is_obeyed_and_stays_without_the_line(place: Place) -> None:
    place.write(WINDOW.replace("query:", "strategy: subtract\nquery:"))
    place.take_over()
    assert place.ledger.strategies()["w"].strategy == "subtract"
    arrive(place.ledger, {0: "a", 1: "b"})
    for name in ("w__panes", "w__rolling", "w"):
        assert build(place.ledger, name)
    seq = place.ledger.strategies()["w"]
    place.take_over()
    assert place.ledger.strategies()["w"] == seq, "recorded once"
    place.write(WINDOW)
    place.take_over()
    assert place.tables() == {"s", "w", "w__panes", "w__rolling"}
    assert steps(place.ledger.plan(T)) == {}


def test_a_view_that_was_built_before_stays_as_it_is(place: Place) -> None:
    """A ledger of a version that did not settle strategies: nothing is built again because of the upgrade."""
    asked = WINDOW.replace("query:", "strategy: subtract\nquery:")
    place.write(asked)
    place.ledger.define(place.load().graph(), T)
    assert kept_as(place.ledger.graph(), "w") == "subtract"
    arrive(place.ledger, {0: "a", 1: "b"})
    for name in ("w__panes", "w__rolling", "w"):
        build(place.ledger, name)
    place.write(WINDOW)
    place.take_over()
    assert place.tables() == {"s", "w", "w__panes", "w__rolling"}
    assert steps(place.ledger.plan(T)) == {}
    assert (place.ledger.strategies()["w"].strategy, place.ledger.strategies()["w"].why) == ("subtract", FOUND)


def test_a_view_without_parts_is_kept_as_the_query_says_until_there_are_rows(place: Place) -> None:
    place.write(WINDOW.replace("query:", "strategy: subtract\nquery:"))
    place.ledger.define(place.load().graph(), T)
    place.write(WINDOW)
    place.take_over()
    assert place.tables() == {"s", "w", "w__panes"}
    assert place.ledger.strategies() == {}


def test_another_query_keeps_the_strategy_until_it_is_settled_anew(place: Place) -> None:
    place.settle(place.take_over(), "recompute")
    place.write(WINDOW.replace("SUM(x)", "SUM(x + 1)"))
    definitions = place.take_over()
    assert place.tables() == {"s", "w"}
    assert definitions.views["w"].mark != place.ledger.strategies()["w"].mark
    place.write(WINDOW.replace("SUM(x)", "AVG(CAST(x AS DOUBLE))"))
    place.settle(place.take_over(), "merge")
    place.write(WINDOW.replace("SUM(x)", "MAX(x)"))
    assert place.tables() == {"s", "w", "w__panes"}


def test_helpers_of_a_broken_view_stay_but_not_those_of_another_strategy(place: Place) -> None:
    broken = "---\nview: b\nshare: false\npart: 1 minute\nquery: SELECT g, SUM(x) AS a FROM s [WINDOW 3 minutes] GROUP BY g\n"
    place.write(WINDOW + broken)
    place.take_over()
    place.write(WINDOW.replace("query:", "strategy: recompute\nquery:") + broken.replace("SUM(x)", "SUM(nope)"))
    place.take_over()
    assert place.tables() == {"s", "w", "b", "b__panes"}
