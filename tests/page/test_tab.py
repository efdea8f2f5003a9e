"""A view's own tab, with the definitions of the example."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

from partwise.compile.program import Program
from partwise.page.place import PageWorkspace
from partwise.page.tab import tab
from partwise.workspace import open_workspace
from tests.page.serve import ROOT, workspace
from tests.page.warehouse import MINUTE, Warehouse, every_state


def test_a_translated_view_shows_its_definition_its_queries_and_its_strategy(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "view_defs", tmp_path / "view_defs")
    shutil.copy(ROOT / "partwise.yaml", tmp_path)
    example = open_workspace(str(tmp_path), {})
    made = Warehouse.of(example.load().graph(), example.ledger_url)
    made.deliver("measurements", {MINUTE + p: 10 + p for p in range(15)})
    made.build(rows=lambda name, p: p % 10)
    place = PageWorkspace(str(tmp_path))
    with place.snapshot(made.now) as snapshot:
        found = tab(snapshot, place.definitions(), snapshot.graph["worst_ten_minutes"], tmp_path)
        source = tab(snapshot, place.definitions(), snapshot.graph["measurements"], tmp_path)
    place.close()
    assert found.problem is None
    assert found.file == "view_defs/worst_ten_minutes.yaml"
    assert found.definition is not None
    assert "view: worst_ten_minutes" in found.definition
    assert "merge" in found.choice
    assert found.many
    titles = [(query.table == found.table, query.title) for query in found.queries]
    assert (True, "as written") in titles
    assert any(not mine and "generated" in title for mine, title in titles)
    assert [point.rows for point in found.parts] == [(MINUTE + p) % 10 for p in range(9, 15)]
    assert found.steps[0].seconds > 0
    assert [curve.source for curve in found.lateness] == ["measurements"]
    assert found.expectations[0] == "expect_column_values_to_not_be_null"
    assert (source.kind, source.parts[-1].rows) == ("source", 24)
    assert any(name.startswith("measurements__panes_") for name in source.feeds)


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "view_defs").mkdir()
    (tmp_path / "partwise.yaml").write_text("")
    file = tmp_path / "view_defs/a.yaml"
    file.write_text("dimension: a\ncolumns: {a: string}\nfiles: a.csv\n")
    place = PageWorkspace(str(tmp_path))
    assert list(place.definitions().tables) == ["a"]
    assert place.definitions() is place.definitions()
    file.write_text("dimension: other\ncolumns: {a: string}\nfiles: a.csv\n")
    assert list(place.definitions().tables) == ["other"]


def test_a_file_that_goes_meanwhile_is_no_trouble_and_nobody_waits_for_the_reading(tmp_path: Path) -> None:
    made = every_state(workspace(tmp_path))
    made.ledger.database.close()
    (tmp_path / "view_defs/gone.yaml").symlink_to(tmp_path / "nowhere.yaml")
    file = tmp_path / "view_defs/a.yaml"
    file.write_text("dimension: a\ncolumns: {a: string}\nfiles: a.csv\n")
    place = PageWorkspace(str(tmp_path))
    reading, go_on = Event(), Event()
    load = place.workspace().load

    class Slow:
        """The workspace, whose definitions take long."""

        definitions_folder = place.workspace().definitions_folder

        def has_ledger(self) -> bool:
            return True

        def load(self) -> Program:
            reading.set()
            assert go_on.wait(20)
            return load()

    with place.snapshot():
        pass  # the ledger is open
    place._workspace = Slow()  # type: ignore[assignment]
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(place.definitions)
        assert reading.wait(20)
        with place.snapshot(made.now) as snapshot:
            assert "by_minute" in snapshot.graph.tables
        go_on.set()
        assert "a" in found.result(20).tables
    place.close()
