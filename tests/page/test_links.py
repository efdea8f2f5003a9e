"""`--open` leads to the page at what the command is about."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest

from partwise.cli import main
from partwise.cli.views.page_link import link
from tests.page.serve import workspace
from tests.page.warehouse import every_state


def test_a_link_stays_within_airflow_also_below_a_path() -> None:
    assert link("http://airflow:8080") == "http://airflow:8080/plugin/parts/partwise/"
    found = link("https://site/airflow/", table="a", part="2026-10-03T10:05")
    assert found == "https://site/airflow/plugin/parts/airflow/partwise/#table=a&part=2026-10-03T10:05"


@pytest.mark.parametrize(
    "words, end",
    [
        (["status"], ""),
        (["status", "high_loss"], "#view=table&table=high_loss"),
        (
            ["status", "high_loss", "--range", "2026-10-03T10:00..2026-10-03T10:05"],
            "#table=high_loss&range=2026-10-03T10:00..2026-10-03T10:05",
        ),
        (["status", "high_loss", "--range", "#29850360"], "#table=high_loss&range=2026-10-03T10:00"),
        (["why", "HIGH_LOSS", "2026-10-03T10:05"], "#table=high_loss&part=2026-10-03T10:05"),
        (["why", "nodes"], "#table=nodes"),
    ],
)
def test_commands_open_the_page(
    words: list[str], end: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setenv("PARTWISE_AIRFLOW_URL", "http://airflow:8080")
    monkeypatch.setenv("PARTWISE_WORKSPACE", str(Path(__file__).resolve().parents[2]))
    monkeypatch.setenv("PARTWISE_LEDGER", "sqlite://")
    with pytest.raises(SystemExit) as ended:
        main([*words, "--open"])
    assert ended.value.code == 0
    assert opened == [f"http://airflow:8080/plugin/parts/partwise/{end}"]
    assert opened[0] in capsys.readouterr().out


def test_without_an_address_it_says_where_to_write_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    every_state(workspace(tmp_path))
    (tmp_path / "view_defs/a.yaml").write_text("dimension: a\ncolumns: {a: string}\nfiles: a.csv\n")
    monkeypatch.setenv("PARTWISE_AIRFLOW_URL", "")
    monkeypatch.setenv("PARTWISE_WORKSPACE", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        main(["status", "--open"])
    assert ended.value.code == 1
    assert "airflow: {url:" in capsys.readouterr().err
