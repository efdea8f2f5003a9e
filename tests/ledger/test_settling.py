"""What a step does before it begins, without Spark: groups are told instead of counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from partwise.choose import window
from partwise.choose.settled import ASKED, FOUND
from partwise.ledger.open import in_memory
from partwise.ledger.read.pin import DefinitionChanged
from partwise.ledger.records.strategies import count_again
from partwise.ledger.runs import existing
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Parts
from spark_jobs.engine import Engine
from spark_jobs.step import settle as settling
from spark_jobs.step.settle import settle
from tests.ledger.test_steps import T, build
from tests.ledger.test_strategies import WINDOW, Place

LONG = WINDOW.replace("2 minutes", "20 minutes")


class Counted:
    """A workspace, and how many groups its panes have; `asked` is how often that was counted."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place, self.groups, self.asked = Place(folder, in_memory()), 10, 0
        self.ledger = self.place.ledger
        monkeypatch.setattr(settling, "_groups", self._groups)

    def _groups(self, *_: object) -> int:
        self.asked += 1
        return self.groups

    def engine(self, text: str | None = None) -> Engine:
        """Of a process that begins now."""
        if text is not None:
            self.place.write(text)
        return Engine(None, self.ledger, self.place.take_over(), "nowhere", now=lambda: T)  # type: ignore[arg-type]

    def arrive(self, parts: range, rows: int) -> None:
        held = self.ledger.take("s", "ingest", 60, T)
        contents = {p: Content(rows, f"{p}:{rows}") for p in parts}
        self.ledger.commit(held, Entry("s", 0, "s1", None, parts=contents), None, T)

    def build(self) -> list[str]:
        """Everything that is ready; returns the tables in order."""
        done = []
        while found := self.ledger.plan(T).steps:
            done.append(found[0].table)
            build(self.ledger, found[0].table)
        return done

    @property
    def now(self) -> tuple[str, int | None, int | None, bool]:
        item = self.ledger.strategies()["w"]
        return item.strategy, item.rows, item.groups, item.again


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    found = Counted(tmp_path, monkeypatch)
    yield found
    found.ledger.database.close()


def test_counted_once_before_the_first_part(counted: Counted) -> None:
    engine = counted.engine(LONG)
    settle(engine, "w__panes")
    assert (counted.asked, counted.ledger.strategies()) == (0, {}), "there are no rows yet"
    counted.arrive(range(25), 5_000_000)
    other = counted.engine()
    settle(engine, "w__panes")
    assert counted.now == ("merge", 5_000_000, 10, False)
    settle(engine, "w")
    settle(other, "w")
    settle(counted.engine(), "w")
    assert counted.asked == 1
    assert counted.build() == ["w__panes", "w"]


def test_the_engine_goes_on_with_what_was_settled(counted: Counted) -> None:
    engine = counted.engine(LONG)
    counted.arrive(range(25), 100)
    settle(engine, "w__panes")
    assert set(engine.definitions.usable) == {"s", "w"}
    assert engine.definitions.graph() == counted.ledger.graph()
    settle(engine, "w__panes")  # a table that is gone
    assert counted.asked == 1


def test_what_is_asked_for_or_has_only_one_way_is_not_counted(counted: Counted) -> None:
    asked = LONG.replace("query:", "strategy: subtract\nquery:")
    engine = counted.engine(asked + "---\n" + LONG.replace("view: w", "view: x").replace("20 minutes", "1 minute"))
    counted.arrive(range(25), 100)
    for name in ("w", "w__panes", "x", "s"):
        settle(engine, name)
    assert counted.asked == 0
    assert counted.now == ("subtract", None, None, False)
    engine = counted.engine(LONG)
    settle(engine, "w")
    assert counted.now == ("recompute", 100, 10, False), "nothing had been built: the line decides no longer"


def test_built_without_counting(counted: Counted) -> None:
    counted.engine(LONG.replace("query:", "strategy: subtract\nquery:"))
    counted.arrive(range(25), 100)
    counted.build()
    engine = counted.engine(LONG)
    settle(engine, "w")
    assert (counted.now, counted.asked) == (("subtract", None, None, False), 0)
    assert counted.ledger.strategies()["w"].why == ASKED


def test_built_before_anything_was_settled(counted: Counted) -> None:
    engine = counted.engine(LONG)
    counted.arrive(range(25), 100)
    counted.build()
    settle(engine, "w")
    assert (counted.now, counted.asked) == (("merge", None, None, False), 0)
    assert counted.ledger.strategies()["w"].why == FOUND


def test_looked_at_again_changed_only_where_it_pays(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = counted.engine(LONG)
    counted.arrive(range(25), 100)
    settle(engine, "w")
    counted.build()
    assert counted.now == ("recompute", 100, 10, False)

    def again(groups: int) -> list[str]:
        counted.groups = groups
        with counted.ledger.database.writing(T) as w:
            count_again(w, "w")
        settle(counted.engine(), "w")
        return counted.build()

    counted.arrive(range(25, 125), 600_000)
    counted.build()
    assert again(10) == []
    assert counted.now == ("recompute", 600_000, 10, False), "merge costs less, but not a third"
    counted.arrive(range(125, 225), 5_000_000)
    counted.build()
    assert again(10) == ["w__panes", "w"]
    assert counted.now == ("merge", 5_000_000, 10, False)
    monkeypatch.setattr(window, "WORTH_IT", 0.99)
    held = counted.ledger.take("w", "somebody", 60, T)
    assert again(4_900_000) == []
    assert counted.now == ("merge", 5_000_000, 10, True), "somebody writes it: later"
    counted.ledger.release(held, T)
    held = counted.ledger.take("s", "retention", 60, T)
    counted.ledger.commit(held, Entry("s", 0, "s1", None, floor=10), None, T)
    assert again(4_900_000) == []
    assert counted.now == ("merge", 5_000_000, 4_900_000, False), "its first windows could not be built again: it stays"
    with counted.ledger.database.reading() as r:
        assert existing(r, "w") == Parts.of((19, 224))


def test_a_process_with_other_files_is_told(counted: Counted) -> None:
    engine = counted.engine(LONG)
    counted.arrive(range(25), 100)
    counted.engine(LONG.replace("SUM(x)", "SUM(x + 1)"))
    with pytest.raises(DefinitionChanged):
        settle(engine, "w")


def test_tests_of_views_settle_nothing(counted: Counted) -> None:
    engine = counted.engine(LONG)
    engine.settling = False
    counted.arrive(range(25), 100)
    settle(engine, "w")
    assert (counted.asked, counted.ledger.strategies()) == (0, {})
