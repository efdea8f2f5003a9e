"""A view's own tab, with the definitions of the example."""

from __future__ import annotations

import shutil
from pathlib import Path

from partwise.page.place import Place
from partwise.page.tab import tab
from partwise.workspace import open_workspace
from tests.page.serve import ROOT
from tests.page.warehouse import MINUTE, Warehouse


def test_a_translated_view_shows_its_definition_its_queries_and_its_strategy(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "view_defs", tmp_path / "view_defs")
    shutil.copy(ROOT / "partwise.yaml", tmp_path)
    workspace = open_workspace(str(tmp_path), {})
    made = Warehouse.of(workspace.load().graph(), workspace.ledger_url)
    made.deliver("measurements", {MINUTE + p: 10 + p for p in range(15)})
    made.build(rows=lambda name, p: p % 10)
    place = Place(str(tmp_path))
    with place.snapshot(made.now) as snapshot:
        found = tab(snapshot, place.definitions(), snapshot.graph["worst_ten_minutes"], tmp_path)
        source = tab(snapshot, place.definitions(), snapshot.graph["measurements"], tmp_path)
    place.close()
    assert found.problem is None
    assert found.file == "view_defs/worst_ten_minutes.yaml"
    assert found.definition is not None
    assert "view: worst_ten_minutes" in found.definition
    assert "merge" in found.choice
    titles = [(query.table == found.table, query.title) for query in found.queries]
    assert (True, "as written") in titles
    assert any(not mine and "generated" in title for mine, title in titles)
    assert [point.rows for point in found.parts] == [(MINUTE + p) % 10 for p in range(9, 15)]
    assert found.steps[0].seconds > 0
    assert [curve.source for curve in found.lateness] == ["measurements"]
    assert found.expectations[0] == "expect_column_values_to_not_be_null"
    assert (source.kind, source.parts[-1].rows) == ("source", 24)
    assert "worst_ten_minutes" in source.feeds or any("worst" in name for name in source.feeds)


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "view_defs").mkdir()
    (tmp_path / "partwise.yaml").write_text("")
    file = tmp_path / "view_defs/a.yaml"
    file.write_text("dimension: a\ncolumns: {a: string}\nfiles: a.csv\n")
    place = Place(str(tmp_path))
    assert list(place.definitions().tables) == ["a"]
    assert place.definitions() is place.definitions()
    file.write_text("dimension: other\ncolumns: {a: string}\nfiles: a.csv\n")
    assert list(place.definitions().tables) == ["other"]
