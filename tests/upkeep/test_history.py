"""The setting `history`, and reads of what it no longer promises."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from partwise.cli import main
from partwise.ledger.open import open_ledger
from partwise.ledger.read.promise import promise_from, promised
from partwise.settings import BadSetting, read_settings


def test_a_length_of_time_of_an_hour_at_least(tmp_path: Path) -> None:
    file = tmp_path / "partwise.yaml"
    assert read_settings(file, {}).history_seconds == 7 * 86400
    file.write_text("history: 2 hours\n")
    assert read_settings(file, {}).history_seconds == 7200
    assert read_settings(file, {"PARTWISE_HISTORY": "3 days"}).history_seconds == 3 * 86400
    for text, said in [("5 minutes", "at least 1 hour"), ("soon", "not a length of time")]:
        file.write_text(f"history: {text}\n")
        with pytest.raises(BadSetting, match=said):
            read_settings(file, {})


def test_what_was_given_up_stays_given_up(tmp_path: Path) -> None:
    ledger = open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}", 0.0)
    with ledger.database.writing(1000.0) as w:
        assert promised(w) is None
        first = promise_from(w, 500.0)
        assert promise_from(w, 400.0) == first  # a longer history brings nothing back
        assert promise_from(w, 600.0).at == 600.0
    ledger.database.close()


def test_a_read_before_the_promise_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "partwise.yaml").write_text("")
    (tmp_path / "view_defs").mkdir()
    (tmp_path / "view_defs" / "d.yaml").write_text("dimension: d\ncolumns: {a: string}\nfiles: landing/d.csv\n")
    monkeypatch.chdir(tmp_path)
    for words, code in [(["retain"], 0), (["query", "SELECT 1 AS x", "--as-of", "6 days"], 0)]:
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == code
    assert time.strftime("%Y") in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["query", "SELECT 1 AS x", "--as-of", "8 days"])
    assert ended.value.code == 1
    assert "is not kept any longer (setting `history`, now 7 days)" in capsys.readouterr().err
