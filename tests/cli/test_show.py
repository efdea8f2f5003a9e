"""Tables for people: whatever the width of the terminal, no word is lost."""

from __future__ import annotations

import pytest

from partwise.cli.views.show import table

ROW = (
    "sales",
    "landing/sales2.csv",
    "2026-11-17 03:33:10",
    "the event time in at cannot be understood",
    "yesterday,tea",
)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_long_cells_go_on_in_the_next_line(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    table(("source", "file", "when", "reason", "row"), [ROW])
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= width
    letters = sorted(shown.replace("─", "").replace("\n", "").replace(" ", ""))
    assert letters == sorted("".join(("source", "file", "when", "reason", "row", *ROW)).replace(" ", ""))


def test_short_cells_stay_whole(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    table(("source", "file", "when", "reason", "row"), [ROW])
    shown = capsys.readouterr().out
    assert all(cell in shown for cell in ("sales ", "landing/sales2.csv", "2026-11-17 03:33:10"))
