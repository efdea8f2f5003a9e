"""`partwise backfill` before anything runs: the plan, and a clear sentence for each wrong range. No JVM."""

from __future__ import annotations

import io
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from partwise.backfill import ask
from partwise.cli.stop import Stop
from partwise.ledger.read.snapshot import as_defined
from partwise.ledger.records import backfills
from partwise.ledger.write.commit import Entry
from partwise.parts import Range, parse_part, parse_range
from partwise.workspace import Workspace, open_workspace
from tests.cli.conftest import Run
from tests.cli.stand_in import build_what_is_ready, load_dimension, load_rows

DAY = "2026-10-03T"


@pytest.fixture
def built(workspace: Path) -> Path:
    """Measurements 10:05 to 10:19, nodes, and all views up to date."""
    load_rows(workspace, "measurements", f"{DAY}10:05..{DAY}10:19", rows=6)
    load_dimension(workspace, "nodes", rows=3)
    while build_what_is_ready(workspace):
        pass
    return workspace


WRONG = [
    (("total_lost", f"{DAY}10:05"), "There is no view total_lost; did you mean total_loss?"),
    (("measurements", f"{DAY}10:05"), "measurements is a source: it is loaded, not computed. `partwise ingest"),
    (("measurements", f"{DAY}10:05"), f"`partwise backfill loss_both_ways {DAY}10:05..{DAY}10:07`"),
    (("nodes", ".."), "What is computed from it: `partwise backfill loss_by_region RANGE`"),
    (("nodes", f"{DAY}10:05"), "nodes is a dimension: it is loaded, not computed."),
    (("total_loss", "ten o'clock"), "'ten o'clock' is not a time; write for example"),
    (("loss_by_region", f"{DAY}10:07"), "is not the start of a part of 5 minutes; the part that holds it is"),
    (("total_loss", f"{DAY}10:09..{DAY}10:06"), f"written backwards; did you mean {DAY}10:06..{DAY}10:09?"),
    (("total_loss", f"..{DAY}10:00"), f"RANGE: '..{DAY}10:00' ends before the first part, which is {DAY}10:05."),
    (("total_loss", ""), "RANGE is empty"),
    (("total_loss", "2126-10-03T10:00"), "is in the future"),
    (("total_loss", f"{DAY}10:30"), "There is no part of total_loss in 2026-10-03T10:30"),
    (("total_loss", f"{DAY}10:30"), "measurements 0/1, missing 10:30. Its newest part is 2026-10-03T10:19"),
    (("total_loss", f"{DAY}09:00..{DAY}09:30"), "lies before anything that it could be computed from"),
    (("total_loss", f"{DAY}09:00"), f"measurements at {DAY}10:05"),
    (
        ("measurements__panes_22df7ee0", f"{DAY}10:07"),
        "measurements__panes_22df7ee0 is a helper of worst_ten_minutes: backfill",
    ),
    (("measurements__panes_22df7ee0", f"{DAY}10:07"), f"for example worst_ten_minutes[{DAY}10:14..{DAY}10:16]"),
    (("total_loss",), "Which parts?"),
    ((), "Which parts?"),
]


def test_each_wrong_range_is_told(run: Run, built: Path) -> None:
    for words, said in WRONG:
        done = run("backfill", *words, "--yes")
        assert (done.code, done.out) == (2, ""), words
        assert said in done.err, words


def test_a_given_start_is_changed_in_the_definition(run: Run, built: Path) -> None:
    file = built / "view_defs" / "total_loss.yaml"
    file.write_text(file.read_text().replace("start: earliest", f'start: "{DAY}10:08"'))
    while build_what_is_ready(built):
        pass
    done = run("backfill", "total_loss", f"{DAY}10:06")
    assert (done.code, "its definition says `start: 2026-10-03T10:08`" in done.err) == (2, True), done.err


def test_the_plan_names_parts_reasons_rows_and_what_may_follow(run: Run, built: Path) -> None:
    found = run("backfill", "loss_runs", f"{DAY}10:06..{DAY}10:07", "--dry-run", "--json").json["plan"]
    assert [(s["table"], s["parts"], s["kind"]) for s in found["steps"]] == [
        ("loss_runs", [f"{DAY}10:06", f"{DAY}10:07"], "requested")
    ]
    assert found["may_follow"]["loss_runs"] == [f"{DAY}10:08..{DAY}10:19"]
    assert found["may_follow"]["high_loss_by_hand"] == [f"{DAY}10:06..{DAY}10:19"]
    assert found["rows"] == 6
    shown = run("backfill", "loss_runs", f"{DAY}10:06..{DAY}10:07", "--dry-run").out
    assert "Then, only where content changes" in shown
    assert "2 parts, 6 rows, time unknown" in shown
    kept = run("backfill", "loss_runs", f"{DAY}10:06", "--dry-run", "--no-downstream", "--json").json["plan"]
    assert kept["may_follow"] == {"loss_runs": [f"{DAY}10:07..{DAY}10:19"]}  # they were computed from it
    assert run("plan", "--json").json["steps"] == []  # a dry run leaves nothing behind


def test_upstream_asks_for_what_it_is_computed_from(run: Run, built: Path) -> None:
    found = run("backfill", "worst_ten_minutes", f"{DAY}10:15", "--dry-run", "--upstream", "--json").json["plan"]
    assert {s["table"]: (s["parts"][0], s["parts"][-1], s["kind"]) for s in found["steps"]} == {
        "measurements__panes_22df7ee0": (f"{DAY}10:06", f"{DAY}10:15", "requested"),
        "worst_ten_minutes": (f"{DAY}10:15", f"{DAY}10:15", "requested"),
    }


def test_what_is_stale_upstream_comes_first(run: Run, built: Path) -> None:
    load_rows(built, "measurements", f"{DAY}10:07", rows=7)
    found = run("backfill", "high_loss_by_hand", f"{DAY}10:09", "--dry-run", "--json").json["plan"]
    assert [(s["table"], s["parts"], s["kind"]) for s in found["steps"]] == [
        ("loss_runs", [f"{DAY}10:07"], "stale"),
        ("high_loss_by_hand", [f"{DAY}10:09"], "requested"),
    ]
    assert found["waits"] == []


def test_an_earlier_range_moves_the_start_of_a_view_and_its_helpers(run: Run, built: Path) -> None:
    load_rows(built, "measurements", f"{DAY}10:00..{DAY}10:04", rows=6)
    while build_what_is_ready(built):
        pass
    found = run("backfill", "worst_ten_minutes", f"{DAY}10:00..", "--dry-run", "--json").json["plan"]
    assert found["starts"] == {"measurements__panes_22df7ee0": f"{DAY}10:00", "worst_ten_minutes": f"{DAY}10:09"}
    plain = run("backfill", "total_loss", f"{DAY}09:50..{DAY}10:03", "--dry-run").out
    assert f"total_loss will start at {DAY}10:00 instead of {DAY}10:05" in plain
    assert f"total_loss[{DAY}10:00..{DAY}10:05]" in plain  # up to the old first part: it becomes an update


def test_what_is_left_out_of_a_range_is_told_with_the_reason(run: Run, built: Path) -> None:
    def notes() -> list[str]:
        plan = run("backfill", "total_loss", f"{DAY}10:00..{DAY}10:22", "--dry-run", "--json").json["plan"]
        return list(plan["notes"])

    later = f"{DAY}10:20..{DAY}10:22 are left out: not built yet."
    assert notes() == [f"{DAY}10:00..{DAY}10:04 are left out: before the start.", later]
    ledger = open_workspace(str(built), {}).open_ledger(time.time())
    for name, floor in [("total_loss", f"{DAY}10:08"), ("measurements", f"{DAY}10:10")]:
        held = ledger.take(name, "test", 60, time.time())
        at = ledger.current(name)
        entry = Entry(name, at.generation, "", None, reason="expired", floor=parse_part(floor, 60))
        ledger.commit(held, entry, (at.version or 0) + 1, time.time())
    ledger.database.close()
    assert notes() == [
        f"{DAY}10:00..{DAY}10:04 are left out: before the start.",
        f"{DAY}10:05..{DAY}10:07 are left out: expired.",
        f"{DAY}10:08..{DAY}10:09 are left out: inputs have expired.",
        later,
    ]


def test_nobody_to_ask(run: Run, built: Path) -> None:
    done = run("backfill", "total_loss", f"{DAY}10:06")
    assert done.code == 2
    assert "use --yes to go ahead" in done.err


def test_a_second_one_is_refused_by_name_and_nothing_interrupted_is_told(run: Run, built: Path) -> None:
    assert "no unfinished backfill" in run("backfill", "--resume").err
    where = open_workspace(str(built), {})
    ledger, graph = where.open_ledger(time.time()), where.load().graph()
    with as_defined(ledger, graph, time.time()) as snapshot:
        length = graph["total_loss"].length
        p = parse_part(f"{DAY}10:06", length)
        asked = ask(backfills.world_of(snapshot), "total_loss", Range(p, p + 3))
        later = ask(backfills.world_of(snapshot), "total_loss", Range(p + 3, p + 5))
        apart = ask(backfills.world_of(snapshot), "total_loss", Range(p + 4, p + 5))
    dead: set[str] = set()
    with ledger.database.writing(time.time()) as w:
        first = backfills.begin(w, graph, asked, True, "here:1:a", dead.__contains__)
    with ledger.database.writing(time.time()) as w:
        with pytest.raises(backfills.Overlaps) as why:
            backfills.begin(w, graph, later, True, "here:2:b", dead.__contains__)
        backfills.begin(w, graph, apart, True, "here:2:b", dead.__contains__)
    assert why.value.other.text(graph) == f"backfill {first.number} of total_loss[{DAY}10:06..{DAY}10:09]"
    dead.add("here:1:a")
    with ledger.database.writing(time.time()) as w:
        backfills.begin(w, graph, asked, True, "here:3:c", dead.__contains__)
        assert [b.holder for b in backfills.unfinished(w)] == ["here:1:a", "here:2:b", "here:3:c"]
    ledger.database.close()


def test_a_manual_view_and_its_helpers_are_repaired_as_one(run: Run, built: Path) -> None:
    file = built / "view_defs" / "worst_ten_minutes.yaml"
    file.write_text(file.read_text().replace("part: 1 minute", "part: 1 minute\nrepair: manual"))
    load_rows(built, "measurements", f"{DAY}10:07", rows=7)
    plan = run("plan", "--json").json
    assert [(s["table"], s["parts"]) for s in plan["manual"]] == [("measurements__panes_22df7ee0", [f"{DAY}10:07"])]
    assert not [s for s in plan["steps"] if s["table"].startswith("worst_ten_minutes")]
    assert f"`partwise backfill worst_ten_minutes {DAY}10:14..{DAY}10:16` repairs the first of them." in run("plan").out
    found = run("backfill", "worst_ten_minutes", f"{DAY}10:14..{DAY}10:15", "--dry-run", "--json").json["plan"]
    assert [(s["table"], s["parts"], s["kind"]) for s in found["steps"]] == [
        ("measurements__panes_22df7ee0", [f"{DAY}10:07"], "requested"),
        ("worst_ten_minutes", [f"{DAY}10:14", f"{DAY}10:15"], "requested"),
    ]
    # It follows as far as the change goes.
    assert found["may_follow"]["worst_ten_minutes"] == [f"{DAY}10:16"]


def test_the_second_refuses_or_waits(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from spark_jobs.commands.backfill import _begin
    from spark_jobs.engine import Engine

    where = open_workspace(str(built), {})
    definitions = where.load()
    engine = Engine(None, where.open_ledger(time.time()), definitions, where.warehouse)  # type: ignore[arg-type]
    ledger, graph = engine.ledger, definitions.graph()
    with as_defined(ledger, graph, time.time()) as snapshot:
        p = parse_part(f"{DAY}10:06", 60)
        asked = ask(backfills.world_of(snapshot), "total_loss", Range(p, p + 3))
    with ledger.database.writing(time.time()) as w:
        first = backfills.begin(w, graph, asked, True, "elsewhere:1:a", lambda _: False)
    name = f"backfill {first.number} of total_loss[{DAY}10:06..{DAY}10:09] (elsewhere:1:a)"
    with pytest.raises(Stop) as why:
        _begin(engine, asked, True, wait=False)
    assert str(why.value) == f"{name} is working on some of these parts; use --wait to wait for it."

    def end() -> None:
        time.sleep(0.5)
        with ledger.database.writing(time.time()) as w:
            backfills.finish(w, first.number, True)

    ending = threading.Thread(target=end)
    ending.start()
    second = _begin(engine, asked, True, wait=True)
    ending.join()
    assert second.number > first.number
    assert f"waiting for {name}" in capsys.readouterr().err
    ledger.database.close()


def begun(folder: Path, parts: str, holder: str, state: str = "running") -> int:
    """A backfill of total_loss that somebody has begun; returns its number."""
    where = open_workspace(str(folder), {})
    ledger, graph = where.open_ledger(time.time()), where.load().graph()
    with as_defined(ledger, graph, time.time()) as snapshot:
        asked = ask(backfills.world_of(snapshot), "total_loss", parse_range(parts, 60))
    with ledger.database.writing(time.time()) as w:
        number = backfills.begin(w, graph, asked, True, holder, lambda _: False).number
        if state != "running":
            backfills.finish(w, number, state == "done")
    ledger.database.close()
    return number


def test_what_is_left_of_an_interrupted_one_is_shown_and_asked_about(run: Run, built: Path) -> None:
    begun(built, f"{DAY}10:06..{DAY}10:09", "elsewhere:1:a", "stopped")
    for more in ([f"{DAY}10:06"], ["--upstream"], ["--no-downstream"]):
        done = run("backfill", "total_loss", *more, "--resume")
        assert (done.code, "--resume continues the original request" in done.err) == (2, True)
    shown = run("backfill", "--resume", "--dry-run", "--json")
    assert (shown.code, shown.err) == (0, "")
    plan = shown.json["plan"]
    assert [(s["table"], s["parts"][0], s["parts"][-1]) for s in plan["steps"]] == [
        ("total_loss", f"{DAY}10:06", f"{DAY}10:09")
    ]
    assert plan["may_follow"]["total_loss"] == [f"{DAY}10:10..{DAY}10:19"]
    asked = run("backfill", "total_loss", "--resume")
    assert (asked.code, "use --yes to go ahead" in asked.err) == (2, True)
    begun(built, f"{DAY}10:08", "elsewhere:2:b")
    refused = run("backfill", "total_loss", "--resume", "--yes")
    assert refused.code == 1
    assert f"of total_loss[{DAY}10:08] (elsewhere:2:b) is working on some of these parts; use --wait" in refused.err


def test_whoever_goes_on_looks_again(built: Path) -> None:
    number = begun(built, f"{DAY}10:06..{DAY}10:09", "elsewhere:1:a", "stopped")
    where = open_workspace(str(built), {})
    ledger = where.open_ledger(time.time())
    graph = ledger.graph()

    def go_on(holder: str) -> backfills.Backfill:
        with ledger.database.writing(time.time()) as w:
            return backfills.go_on(w, graph, number, holder, lambda _: False)

    assert go_on("here:1:a").holder == "here:1:a"
    with pytest.raises(backfills.Overlaps) as why:
        go_on("here:2:b")  # both found it interrupted; the first has it
    assert why.value.other.holder == "here:1:a"
    with ledger.database.writing(time.time()) as w:
        backfills.finish(w, number, True)
    with pytest.raises(backfills.BackfillOver):
        go_on("here:2:b")
    with ledger.database.reading() as r:
        assert backfills.held_by(r, "here:1:a") == replace(backfills.held_by(r, "here:1:a"), state="done")
        assert backfills.held_by(r, "here:2:b") is None
    ledger.database.close()


@pytest.mark.parametrize("answer", [True, False])
def test_asked_on_a_terminal(run: Run, built: Path, monkeypatch: pytest.MonkeyPatch, answer: bool) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    class Started(Exception):
        pass

    def starting(*_: object) -> None:
        raise Started

    monkeypatch.setattr("sys.stdin", Terminal("y\n" if answer else "n\n"))
    monkeypatch.setattr("spark_jobs.commands._opening.engine_of", starting)
    done = run("backfill", "total_loss", f"{DAY}10:06")
    assert "Go ahead? [y/N]:" in done.out
    assert (done.code, "Started" in done.err) == (1, answer)
    with open_workspace(str(built), {}).open_ledger(time.time()).database.reading() as r:
        assert backfills.unfinished(r) == []


def test_the_bar_and_what_is_not_finished(run: Run, built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine is played: the first time nothing can be done, then everything is."""
    from spark_jobs.engine import Engine

    @contextmanager
    def engine_of(_: object) -> Iterator[tuple[Engine, Workspace]]:
        where = open_workspace(str(built), {})
        ledger = where.open_ledger(time.time())
        yield Engine(None, ledger, where.load(), where.warehouse), where  # type: ignore[arg-type]
        ledger.database.close()

    def carry_out(engine: Engine, found: backfills.Backfill, stop: object) -> Iterator[object]:
        if found.state == "running" and found.beat > found.began:
            build_what_is_ready(built)
        with engine.ledger.database.writing(time.time()) as w:
            backfills.finish(w, found.number, False)
        yield from ()

    monkeypatch.setattr("spark_jobs.commands._opening.engine_of", engine_of)
    monkeypatch.setattr("spark_jobs.backfill.carry_out", carry_out)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    done = run("backfill", "total_loss", f"{DAY}10:06", "--yes")
    assert done.code == 1
    assert "0 of 1 parts, 1 left" in done.err
    assert "Not finished: `partwise backfill total_loss --resume` continues it." in done.out
    then = run("backfill", "total_loss", "--resume", "--yes", "--json")
    assert then.code == 0, then.err
    assert json.loads(then.out.splitlines()[-1])["report"]["total_loss"]["recomputed"] == 1
