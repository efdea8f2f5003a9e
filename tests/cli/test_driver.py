"""When commands share a driver in the background, and what `partwise driver` says without one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from partwise.settings import BadSetting, Spark, read_settings
from spark_jobs.commands import _opening
from spark_jobs.session import background, session
from tests.cli.conftest import Run

SETTINGS = "partwise.yaml"


@pytest.mark.parametrize("text, keep", [("10 minutes", "10 minutes"), ("0", "0"), ("'0'", "0"), ("1 hour", "1 hour")])
def test_how_long_it_is_kept_is_a_setting(tmp_path: Path, text: str, keep: str) -> None:
    (tmp_path / SETTINGS).write_text(f"spark: {{keep: {text}}}\n")
    assert read_settings(tmp_path / SETTINGS, {}).spark.keep == keep
    assert read_settings(tmp_path / SETTINGS, {"PARTWISE_SPARK_KEEP": "5 minutes"}).spark.keep == "5 minutes"


@pytest.mark.parametrize("text", ["soon", "5", "-1 minutes"])
def test_another_length_is_told_with_a_way_out(tmp_path: Path, text: str) -> None:
    (tmp_path / SETTINGS).write_text(f"spark: {{keep: {text}}}\n")
    with pytest.raises(BadSetting, match=r"spark\.keep"):
        read_settings(tmp_path / SETTINGS, {})


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each driver was to be kept that somebody requested."""
    found: list[float] = []

    def obtain(settings: object, keep: float) -> background.Driver:
        found.append(keep)
        return background.Driver("k", 1, "", 7, "t", 0.0, keep)

    monkeypatch.setattr(background, "obtain", obtain)
    monkeypatch.setattr(session, "driver_settings", lambda *_: {})
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("JAVA_HOME", os.environ.get("JAVA_HOME", "/no/java"))
    for name in ("CI", "AIRFLOW_CTX_DAG_ID", "AIRFLOW__CORE__EXECUTOR"):
        monkeypatch.delenv(name, raising=False)
    return found


def _typed(monkeypatch: pytest.MonkeyPatch, by_person: bool) -> None:
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: by_person, raising=False)


def test_by_default_people_get_one_and_programs_do_not(asked: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    _typed(monkeypatch, True)
    assert _opening.driver_url(Spark()) == "sc://localhost:7/;token=t"
    assert asked == [600.0]
    for name in ("CI", "AIRFLOW_CTX_DAG_ID"):
        with monkeypatch.context() as inside:
            inside.setenv(name, "1")
            assert _opening.driver_url(Spark()) is None
    _typed(monkeypatch, False)
    assert _opening.driver_url(Spark()) is None
    assert asked == [600.0]


def test_what_is_set_holds_everywhere(asked: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    _typed(monkeypatch, False)
    monkeypatch.setenv("CI", "1")
    assert _opening.driver_url(Spark(keep="1 minute")) is not None
    _typed(monkeypatch, True)
    assert _opening.driver_url(Spark(keep="0")) is None
    assert _opening.driver_url(Spark(keep="1 minute", remote="sc://other")) is None
    assert _opening.driver_url(Spark(keep="1 minute", master="spark://cluster:7077")) is None
    assert asked == [60.0]


def test_one_that_cannot_be_started_is_no_error(
    asked: list[float], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def obtain(*_: object) -> background.Driver:
        raise background.NoDriver("the disk is full")

    monkeypatch.setattr(background, "obtain", obtain)
    assert _opening.driver_url(Spark(keep="1 minute")) is None
    assert "the disk is full; this command starts its own" in capsys.readouterr().err


def test_without_a_driver_there_is_nothing_to_show_or_stop(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PARTWISE_CACHE", str(tmp_path))
    assert run("driver").out == "No driver is running in the background.\n"
    assert run("driver", "stop", "--json").json == {"drivers": []}
    wrong = run("driver", "start")
    assert (wrong.code, "there are status and stop" in wrong.err) == (2, True)
