"""Samples in a workspace, without an engine: what is due, what waits, and every refusal before anything is read."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from partwise.cli import main
from partwise.fresh.asked.question import ask
from partwise.fresh.asked.refused import Refused
from partwise.fresh.look import Looked, Looking
from partwise.parts import part_text
from partwise.workspace import open_workspace
from tests.cli.stand_in import build_what_is_ready, load_rows

SOURCE = """\
source: orders
part: 1 hour
time: at
columns: {at: timestamp, customer: string, amount: double}
files: landing/*.csv
---
"""
VIEW = """\
view: revenue
part: 1 hour
repair: manual
update: SELECT customer, SUM(amount) AS revenue FROM orders[j] GROUP BY customer
"""
POLICY = VIEW.replace("repair: manual", "refresh: {every: 1 day}")
HOURS = "2026-10-03T08:00..2026-10-03T10:00"
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.setenv("PARTWISE_CACHE", "off")

    def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, said.out, said.err

    return call


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "w"
    (folder / "view_defs").mkdir(parents=True)
    (folder / "partwise.yaml").write_text("")
    monkeypatch.chdir(folder)
    return folder


def define(place: Path, view: str) -> None:
    (place / "view_defs" / "all.yaml").write_text(SOURCE + view)


def steps(command: Command) -> dict[str, list[str]]:
    plan: dict[str, Any] = json.loads(command("plan", "--json")[1])
    found: dict[str, list[str]] = {}
    for step in plan["steps"]:
        found.setdefault(step["table"], []).extend(step["parts"])
    return found


def built(place: Path, view: str) -> None:
    define(place, view)
    load_rows(place, "orders", HOURS, rows=6)
    while build_what_is_ready(place):
        pass


def test_late_rows_are_for_the_sample_at_once_and_for_the_view_later(place: Path, command: Command) -> None:
    built(place, VIEW + "sample: {outliers: {column: amount}}\n")
    assert steps(command) == {}
    load_rows(place, "orders", "2026-10-03T09:00", rows=7)
    assert set(steps(command)) == {"revenue__sizes"}
    build_what_is_ready(place)
    assert set(steps(command)) == {"revenue__sample"}
    build_what_is_ready(place)
    plan = json.loads(command("plan", "--json")[1])
    assert plan["steps"] == []
    assert [step["table"] for step in plan["manual"]] == ["revenue"]


def test_a_sample_that_is_added_later_covers_all_parts_and_touches_nothing_else(place: Path, command: Command) -> None:
    built(place, VIEW)
    define(place, VIEW + "sample: 5 %\n")
    found = steps(command)
    assert set(found) == {"revenue__sizes", "revenue__sample", "revenue__was"}
    assert {len(parts) for parts in found.values()} == {3}


def test_another_ratio_computes_the_sample_again_and_not_the_view(place: Path, command: Command) -> None:
    built(place, VIEW + "sample: 5 %\n")
    define(place, VIEW + "sample: 6 %\n")
    assert set(steps(command)) == {"revenue__sample", "revenue__was"}


def refusal(command: Command, *words: str) -> dict[str, str]:
    code, out, err = command("query", "--fresh", *words, "--json")
    assert code == 2, err
    (why,) = json.loads(out)["refused"]
    assert json.loads(out)["rows"] == []
    assert why["message"]
    assert why["hint"]
    return dict(why)


def look(place: Path, seq: int | None = None, sql: str = "SELECT SUM(revenue) FROM revenue") -> Looked:
    workspace = open_workspace(str(place), {})
    ledger = workspace.open_ledger(time.time())
    with closing(ledger.database):
        view = workspace.definitions(ledger).views["revenue"]
        assert view.sampled is not None
        assert view.written.sample is not None
        question = ask(sql, view.sampled.key)
        return Looking("revenue", view.sampled, view.written.sample, question, 3600).at(ledger, seq)


def test_while_the_sample_is_behind_the_answer_is_of_the_moment_before(place: Path, command: Command) -> None:
    built(place, POLICY + "sample: 5 %\n")
    load_rows(place, "orders", "2026-10-03T09:00", rows=7)
    while build_what_is_ready(place):
        pass
    now = look(place)
    assert now.note == ""
    assert [part_text(p, 3600) for p in now.states.stale] == ["2026-10-03T09:00"]
    load_rows(place, "orders", "2026-10-03T10:00..2026-10-03T11:00", rows=8)
    before = look(place)
    assert before.note == (
        "the sample is not up to date: revenue__sample[2026-10-03T10:00..2026-10-03T11:00] waits "
        "(late rows in orders[2026-10-03T10:00..2026-10-03T11:00]); revenue__sizes[2026-10-03T10:00..2026-10-03T11:00] waits "
        "(late rows in orders[2026-10-03T10:00..2026-10-03T11:00])"
    )
    assert before.states == now.states
    # The same moment by itself, and one before the first late rows.
    assert look(place, before.seq).states == before.states
    while build_what_is_ready(place):
        pass
    after = look(place)
    assert [part_text(p, 3600) for p in after.states.dirty] == [f"2026-10-03T{h}:00" for h in ("09", "10", "11")]
    assert [part_text(p, 3600) for p in after.states.missing] == ["2026-10-03T11:00"]
    assert look(place, before.seq).states == before.states
    with pytest.raises(Refused) as why:
        look(place, 0)
    assert why.value.code == "not-on-record"


def test_what_a_missing_part_is_compared_with(place: Path, command: Command) -> None:
    for rule, found in (
        ("last", (10,)),
        ("{mean: 2 parts}", (10, 9)),
        ("{ago: 2 hours}", (9,)),
        ("{ago: 9 hours}", None),
        ("none", None),
    ):
        built(place, POLICY + f"sample: {{stand_in: {rule}}}\n")
        load_rows(place, "orders", "2026-10-03T11:00", rows=7)
        while build_what_is_ready(place):
            pass
        states = look(place).states
        assert [part_text(p, 3600) for p in states.missing] == ["2026-10-03T11:00"]
        stood = states.stand_ins.get(states.missing.first)
        assert (None if stood is None else tuple(int(part_text(p, 3600)[11:13]) for p in stood)) == found


def test_before_the_sample_was_ever_built_there_is_no_answer(place: Path, command: Command) -> None:
    built(place, VIEW)
    define(place, VIEW + "sample: 5 %\n")
    load_rows(place, "orders", "2026-10-03T09:00", rows=7)
    why = refusal(command, "SELECT SUM(revenue) FROM revenue")
    assert why["code"] == "sample-behind"
    assert "revenue[2026-10-03T09:00]" in why["message"]


def test_what_cannot_be_asked(place: Path, command: Command) -> None:
    define(place, VIEW)
    load_rows(place, "orders", HOURS, rows=6)
    why = refusal(command, "SELECT SUM(revenue) FROM revenue")
    assert (why["code"], why["message"]) == ("no-sample", "revenue has no sample")
    assert why["hint"] == 'add "sample: {ratio: 5 %}" to its definition (the key would be: customer)'
    assert refusal(command, "SELECT SUM(revenue) FROM revenues")["code"] == "no-view"
    why = refusal(command, "SELECT SUM(revenue) FROM revenue LIMIT 3")
    assert why["message"] == "LIMIT cannot be answered from a sample: the rows that count may not be in it"
    assert (why["code"], why["hint"]) == ("not-answerable", "run without --fresh for the published rows")
    define(place, VIEW + "sample: 5 %\n")
    assert refusal(command, "SELECT SUM(revenue) FROM revenue", "--ratio", "6%")["code"] == "ratio"


@pytest.mark.parametrize(
    "words, said",
    [
        (["--fresh", "--as-of", "@3", "--now"], "leave one of them out"),
        (["--fresh", "--csv"], "leave out --settled, --csv"),
        (["--fresh", "--settled"], "leave out --settled, --csv"),
        (["--within", "1%"], "they go with --fresh"),
        (["--ratio", "1%"], "they go with --fresh"),
        (["--fresh", "--ratio", "60%"], "samples have at most 50 %"),
        (["--fresh", "--within", "wide"], "'wide' is not a share"),
        (["--fresh", "--confidence", "100"], "is not between 50 and 99.9"),
    ],
)
def test_wrong_use(place: Path, command: Command, words: list[str], said: str) -> None:
    define(place, VIEW)
    code, _, err = command("query", "SELECT SUM(revenue) FROM revenue", *words)
    assert code == 2
    assert said in err


def test_explain_shows_the_sample(place: Path, command: Command) -> None:
    built(place, VIEW + "sample: {ratio: 5 %, outliers: {column: amount, keep: 9}}\n")
    code, out, _ = command("explain", "revenue")
    assert code == 0
    assert "sample: 5 % of keys by customer, the 9 largest by amount exactly" in out
    assert "revenue__sample" in out
    (found, *_) = [v for v in json.loads(command("explain", "revenue", "--json")[1])["views"] if v["name"] == "revenue"]
    assert found["sample"]["key"] == ["customer"]
