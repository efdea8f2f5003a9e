"""Each command on the example workspace: what programs get, and what people read."""

import os
import shutil
import time
from pathlib import Path
from unittest.mock import patch

import pytest

from partwise.choose import repair
from partwise.ledger.open import open_ledger
from partwise.ledger.records.repairs import By, MeasuredRepair, RecordedRepair, note, outcomes
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import parse_part
from partwise.workspace import open_workspace
from tests.cli.conftest import ROOT, Done, Run
from tests.cli.stand_in import build_what_is_ready, load_dimension, load_rows, settle

GOLDEN = ROOT / "tests" / "golden" / "cli"


def golden(name: str, done: Done) -> None:
    assert done.code == 0, done.err
    file = GOLDEN / f"{name}.txt"
    shown = "\n".join(line.rstrip() for line in done.out.splitlines()) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(shown, encoding="utf-8")
    assert shown == file.read_text(encoding="utf-8"), (
        f"UPDATE_GOLDEN=1 writes {file.name} again; then read the difference"
    )


@pytest.fixture
def built(workspace: Path) -> Path:
    """Measurements 10:00 to 10:14, nodes, and all views up to date."""
    load_rows(workspace, "measurements", "2026-10-03T10:00..2026-10-03T10:14", rows=6)
    load_dimension(workspace, "nodes", rows=3)
    while build_what_is_ready(workspace):
        pass
    return workspace


@pytest.fixture
def late(built: Path) -> Path:
    load_rows(built, "measurements", "2026-10-03T10:03", rows=7)
    return built


class TestPlan:
    def test_nothing_is_there_and_nothing_is_written(self, run: Run, workspace: Path) -> None:
        done = run("plan", "--json")
        assert done.code == 0
        assert done.json["steps"] == done.json["blocked"] == []
        assert "total_loss" in done.json["definitions"]["added"]
        assert [n["part"] for n in done.json["next"]] == [None] * 15
        assert not (workspace / "ledger.db").exists()

    def test_late_rows_for_people(self, run: Run, late: Path) -> None:
        golden("plan_late", run("plan"))

    def test_late_rows_for_programs(self, run: Run, late: Path) -> None:
        found = run("plan", "--json").json
        assert {"table": "total_loss", "parts": ["2026-10-03T10:03"], "kind": "stale"}.items() <= next(
            step for step in found["steps"] if step["table"] == "total_loss"
        ).items()
        assert found["may_change"]["worst_ten_minutes"] == ["2026-10-03T10:09..2026-10-03T10:12"]
        assert "high_loss" not in [step["table"] for step in found["steps"]]

    def test_only_what_leads_to_a_view(self, run: Run, late: Path) -> None:
        tables = {step["table"] for step in run("plan", "worst_ten_minutes", "--json").json["steps"]}
        assert tables == {"measurements__panes_22df7ee0"}

    def test_a_changed_definition_is_planned_but_not_taken_over(self, run: Run, built: Path) -> None:
        file = built / "view_defs" / "loss_by_region.yaml"
        file.write_text(file.read_text().replace("COUNT(*) AS n", "COUNT(*) + 1 AS n"))
        before = run("changes", "loss_by_region", "--since", "1 day", "--json").json
        for _ in range(2):
            found = run("plan", "--json").json
            assert [(s["table"], len(s["parts"]), s["reason"]) for s in found["steps"]] == [
                ("loss_by_region", 3, "definition changed")
            ]
            assert found["definitions"]["changed"] == ["loss_by_region"]
        assert run("changes", "loss_by_region", "--since", "1 day", "--json").json["changes"] == before["changes"]

    def test_what_follows_and_what_is_next(self, run: Run, workspace: Path) -> None:
        run("empty", "measurements", "2026-10-03T10:00..2026-10-03T10:03")
        found = run("plan", "--json").json
        assert found["follows"]["high_loss"] == ["2026-10-03T10:00..2026-10-03T10:03"]
        region = next(n for n in found["next"] if n["view"] == "loss_by_region")
        assert region["part"] == "2026-10-03T10:00"
        assert [(r["table"], r["bitmap"]) for r in region["requires"]] == [("measurements", "11110"), ("nodes", "0")]
        shown = run("plan").out
        assert "loss_by_region[2026-10-03T10:00] waits: measurements 4/5, missing 10:04; nodes is not loaded" in shown
        assert "worst_ten_minutes[2026-10-03T10:09] waits: measurements 4/10, missing 10:04..10:09" in shown

    def test_manual_repair_and_blocked_parts_stand_apart(self, run: Run, built: Path) -> None:
        file = built / "view_defs" / "loss_by_region.yaml"
        file.write_text(file.read_text().replace("part: 5 minutes", "part: 5 minutes\nrepair: manual"))
        load_rows(built, "measurements", "2026-10-03T10:03", rows=7)
        found = run("plan", "--json").json
        assert [s["table"] for s in found["manual"]] == ["loss_by_region"]
        assert "loss_by_region" not in [s["table"] for s in found["steps"]]
        assert "Left to you" in run("plan").out
        assert "1 stale part left to you" in run("status").out


class TestStatus:
    def test_counts(self, run: Run, late: Path) -> None:
        tables = {row["table"]: row for row in run("status", "--json").json["tables"]}
        keys = ("kind", "parts", "first", "last", "missing", "stale", "blocked", "failed")
        assert tuple(tables["total_loss"][k] for k in keys) == (
            "view", 15, "2026-10-03T10:00", "2026-10-03T10:14", 0, 1, 0, 0,
        )  # fmt: skip
        assert tables["nodes"]["parts"] == 1
        assert tables["nodes"]["first"] is None
        assert tables["measurements"]["last_updated"].endswith("Z")

    def test_helpers_are_hidden_unless_asked_for(self, run: Run, built: Path) -> None:
        # Of the stand-in there are no Delta tables, which is told of helpers, too.
        assert "measurements__helper_97d45e6d " not in run("status").out
        assert "measurements__helper_97d45e6d " in run("status", "--helpers").out

    def test_parts_newest_first_in_pages(self, run: Run, late: Path) -> None:
        page = run("status", "measurements", "--limit", "2", "--json").json
        assert [row["part"] for row in page["parts"]] == ["2026-10-03T10:14", "2026-10-03T10:13"]
        assert page["more"]
        one = run("status", "measurements", "--range", "2026-10-03T10:03", "--json").json
        assert [(row["state"], row["revision"], row["rows"]) for row in one["parts"]] == [("fresh", 2, 7)]
        assert not one["more"]

    def test_what_a_view_builds_next_is_always_told(self, run: Run, workspace: Path) -> None:
        assert "Next: high_loss waits: measurements has no parts yet" in run("status", "high_loss").out
        assert run("status", "high_loss", "--json").json["next"] == {
            "view": "high_loss", "part": None, "waits": True,
            "requires": [{"table": "measurements", "bitmap": "", "missing": []}],
        }  # fmt: skip
        for minute in range(3):
            run("close", "measurements", f"2026-10-03T10:0{minute}")
        following = {
            "view": "loss_by_region", "part": "2026-10-03T10:00", "waits": True,
            "requires": [
                {"table": "measurements", "bitmap": "11100", "missing": ["2026-10-03T10:03..2026-10-03T10:04"]},
                {"table": "nodes", "bitmap": "0", "missing": ["nodes"]},
            ],
        }  # fmt: skip
        assert run("status", "loss_by_region", "--json").json["next"] == following
        tables = {row["table"]: row["next"] for row in run("status", "--json").json["tables"]}
        assert tables["loss_by_region"] == following
        assert tables["measurements"] is None
        said = run("status", "loss_by_region").out
        assert "waits: measurements 3/5, missing 10:03..10:04; nodes is not loaded\n  measurements ■■■□□\n" in said

    def test_a_gap_is_shown_as_missing(self, run: Run, workspace: Path) -> None:
        for part in ("2026-10-03T10:00", "2026-10-03T10:05"):
            run("close", "measurements", part)
        shown = run("status", "measurements").out
        assert [line.split()[:2] for line in shown.splitlines()[3:]] == [
            ["2026-10-03T10:05", "fresh"],
            ["2026-10-03T10:01..2026-10-03T10:04", "missing"],
            ["2026-10-03T10:00", "fresh"],
        ]
        assert run("status", "--json").json["tables"][0]["missing"] == 4

    def test_parts_before_the_start_of_a_view_are_mentioned(self, run: Run, built: Path) -> None:
        run("close", "measurements", "2026-10-03T09:59")
        said = run("status").out
        assert "`partwise backfill total_loss 2026-10-03T09:59..2026-10-03T10:00` lets it start at" in said
        rows = {row["table"]: row for row in run("status", "--json").json["tables"]}
        assert rows["total_loss"]["could_start"] == "2026-10-03T09:59"

    def test_next_of_a_view(self, run: Run, built: Path) -> None:
        assert (
            "Next: high_loss[2026-10-03T10:15] waits: measurements 0/1, missing 10:15" in run("status", "high_loss").out
        )


class TestWhy:
    def test_stale_for_people(self, run: Run, late: Path) -> None:
        said = run("why", "total_loss", "2026-10-03T10:03").out
        assert "late rows in measurements[2026-10-03T10:03]" in said.splitlines()[0]
        assert "the next run computes it" in said.splitlines()[0]

    def test_stale_for_programs(self, run: Run, late: Path) -> None:
        found = run("why", "total_loss", "2026-10-03T10:03", "--json").json
        assert found["state"] == "stale"
        assert found["reason"] == "late rows in measurements[2026-10-03T10:03]"
        read = {item["table"]: item for item in found["computed_from"]}
        assert read["measurements"]["revisions"] == {"2026-10-03T10:03": 1}
        assert read["measurements"]["changed_since"] == {"2026-10-03T10:03": 2}
        assert read["total_loss"]["changed_since"] == {}
        assert found["feeds"] == [{"table": "total_loss", "parts": ["2026-10-03T10:04"]}]
        assert [r["revision"] for r in found["revisions"]] == [1]

    @pytest.mark.parametrize(
        "table, part, state, words",
        [
            ("total_loss", "2026-10-03T10:14", "fresh", "is up to date: 3 rows, revision 1"),
            ("total_loss", "2026-10-03T10:20", "waiting", "It waits: measurements 0/1, missing 10:20"),
            ("total_loss", "2026-10-03T09:00", "before-start", "lies before the start of the view, 2026-10-03T10:00"),
            ("high_loss", "2026-10-03T10:03", "fresh", "is up to date"),
            ("measurements", "2026-10-03T10:03", "fresh", "is closed: 7 rows, revision 2, changed 1 time"),
            ("measurements", "2026-10-03T11:00", "absent", "does not exist"),
            ("loss_by_region", "2026-10-03T10:15", "waiting", "missing 10:15..10:19"),
        ],
    )
    def test_states(self, run: Run, late: Path, table: str, part: str, state: str, words: str) -> None:
        found = run("why", table, part, "--json").json
        assert (found["state"], words in found["why"]) == (state, True), found["why"]

    def test_a_failure_shows_its_message_and_blocks_what_needs_it(self, run: Run, workspace: Path) -> None:
        load_rows(workspace, "measurements", "2026-10-03T10:00..2026-10-03T10:02", rows=6)
        where, now = open_workspace(str(workspace), {}), time.time()
        ledger = where.open_ledger(now)
        held = ledger.take("total_loss", "test", 60, now)
        pinned = ledger.pin(held, now)
        assert pinned is not None
        ledger.fail(held, pinned, pinned.start + 1, "check", "src must not be null: 2 rows", now)
        first = pinned.entry({pinned.start: Content(1, "1:a")})
        ledger.commit(held, first, 1, now)
        ledger.database.close()
        failed = run("why", "total_loss", "2026-10-03T10:01")
        assert "failed its checks" in failed.out
        assert "src must not be null: 2 rows" in failed.out
        after = run("why", "total_loss", "2026-10-03T10:02", "--json").json
        assert after["state"] == "blocked"
        assert after["waits_for"]
        blocked = [item for item in run("plan", "--json").json["blocked"] if item["table"] == "total_loss"]
        assert [item["parts"] for item in blocked] == [["2026-10-03T10:01", "2026-10-03T10:02"]]
        status = {row["table"]: row for row in run("status", "--json").json["tables"]}
        assert (status["total_loss"]["failed"], status["total_loss"]["blocked"]) == (1, 1)

    def test_a_dimension_has_no_part_to_name(self, run: Run, built: Path) -> None:
        found = run("why", "nodes", "--json").json
        assert (found["part"], found["state"], found["rows"]) == (None, "fresh", 3)


class TestChanges:
    def test_only_changed_parts_with_their_reason(self, run: Run, late: Path) -> None:
        found = run("changes", "measurements", "--since", "1 hour", "--json").json["changes"]
        assert len(found) == 15
        assert (found[0]["part"], found[0]["revision"], found[0]["times"]) == ("2026-10-03T10:03", 2, 2)
        assert run("changes", "measurements", "--since", "2199-01-01", "--json").json["changes"] == []
        assert (
            "Nothing in measurements has changed since 2199"
            in run("changes", "measurements", "--since", "2199-01-01").out
        )


class TestCloseAndEmpty:
    def test_an_open_part_closes_with_its_rows(self, run: Run, workspace: Path) -> None:
        run("empty", "measurements", "2026-10-03T10:00")
        where, now = open_workspace(str(workspace), {}), time.time()
        ledger = where.open_ledger(now)
        table = ledger.graph()["measurements"]
        p = parse_part("2026-10-03T10:01", 60)
        entry = Entry(table.name, 0, table.fingerprint, None, reason="loaded", open={p: Content(5, "5:abc")})
        ledger.commit(ledger.take(table.name, "test", 60, now), entry, 0, now)
        ledger.database.close()
        row = run("status", "measurements", "--json").json["parts"][0]
        assert (row["part"], row["state"], row["rows"]) == ("2026-10-03T10:01", "open", 5)
        assert "is open: 5 rows arrived" in run("why", "measurements", "2026-10-03T10:01").out
        refused = run("empty", "measurements", "2026-10-03T10:01")
        assert refused.code == 1
        assert "so it is not empty" in refused.err
        closed = run("close", "measurements", "2026-10-03T10:01", "--json")
        assert closed.json["closed"] == ["2026-10-03T10:01"]
        row = run("status", "measurements", "--json").json["parts"][0]
        assert (row["state"], row["revision"], row["rows"]) == ("fresh", 1, 5)

    def test_without_rows_it_is_empty(self, run: Run, workspace: Path) -> None:
        assert run("close", "MEASUREMENTS", "2026-10-03T10:01").code == 0
        assert run("status", "measurements", "--json").json["parts"][0]["rows"] == 0

    def test_what_exists_is_left_alone(self, run: Run, workspace: Path) -> None:
        run("empty", "measurements", "2026-10-03T10:00..2026-10-03T10:03")
        again = run("close", "measurements", "2026-10-03T10:02")
        assert (again.code, "exists already; nothing was changed" in again.err) == (1, True)
        some = run("empty", "measurements", "2026-10-03T10:03..2026-10-03T10:08")
        assert (some.code, "5 parts (1 part existed already)" in some.out) == (0, True)
        assert run("status", "--json").json["tables"][0]["parts"] == 9
        # The lease was given back.
        assert run("empty", "measurements", "2026-10-03T10:09").code == 0


class TestExplain:
    @pytest.mark.parametrize("view", ["loss_by_region", "total_loss", "worst_ten_minutes"])
    def test_for_people(self, run: Run, workspace: Path, view: str) -> None:
        golden(f"explain_{view}", run("explain", view, "--part", "2026-10-03T10:05"))

    def test_a_translated_view_with_its_helper(self, run: Run, workspace: Path) -> None:
        views = run("explain", "high_loss", "--json").json["views"]
        assert [v["name"] for v in views] == ["measurements__helper_97d45e6d", "high_loss"]
        assert views[0]["requires"] == ["measurements[j]", "measurements__helper_97d45e6d[j-1]"]
        assert "PATTERN [a, b, c, d+]" in views[1]["query"]
        assert views[1]["strategy"].startswith("pattern")
        assert "one join, one step" in views[0]["unique_update"]
        assert views[0]["unique_by"] == ["src", "dest"]
        assert "HAVING" in views[0]["fast_update"]
        assert "many parts in one pass" in views[0]["single_pass"]

    def test_what_runs_instead_of_the_update_is_shown(self, run: Run, workspace: Path) -> None:
        usual, everything = run("explain", "high_loss").out, run("explain", "high_loss", "--all").out
        assert "instead, where no group has two rows in the part and no key is NULL" in usual
        assert "old.src = new.src" in usual
        assert "raise_error" not in usual
        assert "raise_error" in everything
        assert "many parts in one pass: the runs of each group" in everything

    @pytest.mark.parametrize("rows, advice", [(40, "recompute would cost less"), (1_000_000, "")])
    def test_the_ledger_gives_advice_about_what_was_asked_for_and_changes_nothing(
        self, run: Run, workspace: Path, rows: int, advice: str
    ) -> None:
        before = run("explain", "worst_ten_minutes", "--json").json["views"]
        load_rows(workspace, "measurements", "2026-10-03T10:00..2026-10-03T10:20", rows)
        build_what_is_ready(workspace)
        after = run("explain", "worst_ten_minutes", "--json").json["views"]
        assert [view["name"] for view in after] == [view["name"] for view in before]
        assert after[-1]["strategy"] == before[-1]["strategy"]
        assert advice in after[-1]["advice"]
        assert bool(advice) == ("strategy: recompute" in run("explain", "worst_ten_minutes").out)

    def test_how_a_window_is_kept_and_since_when(self, run: Run, workspace: Path) -> None:
        file = workspace / "view_defs/worst_ten_minutes.yaml"
        file.write_text(file.read_text().replace("strategy: merge\n", ""))
        view = run("explain", "worst_ten_minutes", "--json").json["views"][-1]
        assert view["strategy"] == "merge: 10 panes in a window, each one row per group, until there are rows to count"
        assert (view["settled"], view["advice"]) == (None, "")
        load_rows(workspace, "measurements", "2026-10-03T10:00..2026-10-03T10:20", 40)
        settle(workspace, "worst_ten_minutes", "recompute", 40, 4)
        found = run("explain", "worst_ten_minutes", "--json").json["views"]
        assert [view["name"] for view in found] == ["worst_ten_minutes"]
        assert found[0]["strategy"] == "recompute: counted"
        assert {**found[0]["settled"], "at": ""} == {"at": "", "strategy": "recompute", "rows": 40, "groups": 4}
        assert found[0]["requires"] == ["measurements[j-9..j]"]
        shown = run("explain", "worst_ten_minutes").out
        assert ", by 40 rows in a part of what it reads and 4 groups in a pane\n" in shown
        assert "hint" not in shown, "today's counts say the same"
        assert run("plan", "--json").json["definitions"]["changed"] == [], "other commands see it the same way"
        assert {step["table"] for step in run("plan", "--json").json["steps"]} >= {"worst_ten_minutes"}

        load_rows(workspace, "measurements", "2026-10-03T10:21..2026-10-03T12:10", 10_000_000)
        assert "hint: By the counts in the ledger merge would cost less" in run("explain", "worst_ten_minutes").out
        assert run("retain", "--json").json["counted_again"] == ["worst_ten_minutes"]
        assert "counted again before the next step" in run("explain", "worst_ten_minutes").out
        assert run("retain", "--json").json["counted_again"] == [], "told once"


class TestInit:
    def test_the_example_is_valid_and_planned(self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert run("init", "shop").code == 0
        assert run("validate", "--workspace", "shop", "--json").json == {"problems": []}
        assert run("empty", "orders", "2026-10-03T08:00..2026-10-03T11:00", "--workspace", "shop").code == 0
        steps = run("--workspace", "shop", "plan", "--json").json["steps"]
        assert [step["table"] for step in steps] == ["orders__panes_1c8b5516"]

    def test_nothing_is_overwritten(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "partwise.yaml").write_text("timezone: UTC\n")
        done = run("init", str(tmp_path))
        assert (done.code, "nothing was written" in done.err) == (1, True)
        assert [file.name for file in tmp_path.iterdir()] == ["partwise.yaml"]


def test_validate_says_everything_and_ends_with_1(run: Run, workspace: Path) -> None:
    assert run("validate").code == 0
    (workspace / "view_defs" / "bad.yaml").write_text("view: v\npart: 5 minuts\nupdate: SELECT 1 FROM mesurements[j]\n")
    done = run("validate", "--json")
    assert done.code == 1
    codes = {problem["code"] for problem in done.json["problems"] if problem["severity"] == "error"}
    assert codes == {"bad-length", "unknown-table"} | codes
    assert "view_defs/bad.yaml:2:7: bad-length:" in run("validate").out


def test_validate_of_one_file_knows_the_others(run: Run, workspace: Path, tmp_path: Path) -> None:
    """Its problems only, though all definitions are read; elsewhere a file is looked at by itself."""
    bad = workspace / "view_defs" / "more" / "bad.yaml"
    bad.parent.mkdir()
    bad.write_text("view: v\npart: 1 minute\nupdate: SELECT x FROM measurements[j]\n")
    one = run("validate", "view_defs/total_loss.yaml")
    assert (one.code, one.out) == (0, "1 definition, no problems\n")
    assert run("validate", "view_defs/high_loss.yaml", "--json").code == 0
    assert run("validate", "view_defs").code == 1
    for asked in ("view_defs/more", str(bad)):
        found = run("validate", asked, "--json")
        assert found.code == 1
        assert [(p["file"], p["code"]) for p in found.json["problems"]] == [
            ("view_defs/more/bad.yaml", "unknown-column")
        ]
    alone = shutil.copy(workspace / "view_defs" / "total_loss.yaml", tmp_path)
    assert "there is no table measurements" in run("validate", str(alone)).out  # not in a workspace
    assert run("validate", str(alone), "--workspace", "nowhere").code == 2


def test_validate_finds_the_workspace_of_a_file(
    run: Run, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("validate", f"{workspace.name}/view_defs/total_loss.yaml").code == 0


def test_one_broken_file_does_not_stop_the_others(run: Run, built: Path) -> None:
    file = built / "view_defs" / "total_loss.yaml"
    file.write_text("view: [")
    found = run("plan", "--json")
    assert found.json["definitions"]["retired"] == []
    assert "1 problem in the definitions" in found.err
    assert "total_loss.yaml:1:" in found.err
    assert [p["code"] for p in found.json["problems"]] == ["yaml-syntax"]
    assert [p["code"] for p in run("status", "--json").json["problems"]] == ["yaml-syntax"]
    assert run("status", "total_loss", "--json").json["parts"]  # as the ledger knows it


class TestExplainRelation:
    def test_key_repairs_and_tree(self, run: Run, workspace: Path) -> None:
        view = run("explain", "total_loss", "--json").json["views"][0]
        assert view["key"] == ["src"]
        assert [(r["by"], r["possible"], r["columns"]) for r in view["repairs"]] == [
            ("recompute", True, []),
            ("keys", True, ["src"]),
            ("merge", False, []),
        ]
        panes = run("explain", "worst_ten_minutes", "--json").json["views"][0]
        assert [r["by"] for r in panes["repairs"] if r["possible"]] == ["recompute", "keys"]
        join = view["tree"]["inputs"][0]
        assert join["operator"] == "full join"
        assert join["inputs"][0] == {
            "operator": "read",
            "table": "total_loss",
            "parts": "[j-1]",
            "carries": {"src": "`src`"},
        }


def test_plan_says_how_stale_parts_would_be_repaired(run: Run, late: Path) -> None:
    found = {step["table"]: step["repair"] for step in run("plan", "--json").json["steps"]}
    assert found["measurements__panes_22df7ee0"]["by"] == "recompute", "small parts are computed again"
    assert found["total_loss"] is None, "nothing else is exact for it"
    with patch.multiple(repair, FIXED={**repair.FIXED, "recompute": 100.0}, MOST_CHANGED=10):
        found = {step["table"]: step["repair"] for step in run("plan", "--json").json["steps"]}
        assert found["measurements__panes_22df7ee0"]["by"] == "keys"
        said = " ".join(run("plan").out.split())
        assert "measurements__panes_22df7ee0: a late row is repaired by keys, foreseen to be" in said
        assert "total_loss: a late row" not in said


def test_status_keeps_the_score(run: Run, late: Path) -> None:
    ledger = open_ledger(f"sqlite:///{late / 'ledger.db'}", 0.0)
    done: list[tuple[By, float]] = [("keys", 1.0), ("keys", 1.2), ("recompute", 4.0), ("keys", 9.0)]
    for by, seconds in done:
        with ledger.database.writing(time.time()) as w:
            outcome = MeasuredRepair(by, {"recompute": 4.0, "keys": 1.0}, 1.0, seconds)
            note(w, "loss_by_region", RecordedRepair(outcome, 1, 1, 1, 5_000_000, 100))
    with ledger.database.reading() as r:
        assert [(found.by, found.seconds) for found in outcomes(r, "loss_by_region")] == done
    ledger.database.close()
    score = {table["table"]: table["repairs"] for table in run("status", "--json").json["tables"]}
    assert score["loss_by_region"] == {"repairs": 4, "close": 2, "judged": 4, "right": 2}
    assert score["measurements"] is None
    said = " ".join(run("status").out.split())
    assert (
        "loss_by_region: 4 repairs of large parts, 2 foreseen within a factor of two; of 4 where other repairs were "
        "measured, 2 took least." in said
    )
