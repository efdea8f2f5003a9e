"""`partwise audit`: what is wrong with a ledger, what mixes moments, what was superseded at its commit."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from partwise.ledger.read.as_of import readable
from partwise.ledger.read.snapshot import as_defined
from partwise.page.part import details
from partwise.parts import part_text
from tests.cli.conftest import Run
from tests.reading.small import FIRST, Small, computed, recomputed

ONE = part_text(FIRST + 1, 60)


def spoil(small: Small, statement: str) -> None:
    with small.ledger.database.changing_schema() as on:
        on.execute(text(statement))


def kinds(run: Run, *words: str) -> list[tuple[str, str]]:
    done = run("audit", *words, "--json")
    found = [(item["kind"], item["table"]) for item in done.json["problems"]]
    assert done.code == (1 if found else 0)
    return found


def test_a_ledger_in_order(run: Run, small: Small) -> None:
    done = run("audit", "--json")
    assert done.code == 0
    assert done.json == {
        "problems": [],
        "views": [
            {"view": name, "parts": n, "due": 0, "mixed": [], "published": n, "superseded_at_commit": 0}
            for name, n in {"a": 4, "b": 4, "c": 4, "w": 2}.items()
        ],
    }
    assert "The ledger is in order." in run("audit").out
    assert run("audit", "nothing").code == 2


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE version SET version = version + 1 WHERE \"table\" = 'a' AND version = 1", ("gap", "a")),
        ("UPDATE version SET at = 5 WHERE \"table\" = 'b' AND version = 1", ("time", "b")),
        ("UPDATE revision SET at = at + 1 WHERE \"table\" = 'c'", ("time", "c")),
        ("DELETE FROM have WHERE \"table\" = 'a'", ("exists", "a")),
        ("INSERT INTO due (\"table\", lo, hi, seq, since, cause, since_seq) "
         f"VALUES ('w', {FIRST + 2}, {FIRST + 2}, 1, 1, 'input', 1)", ("due", "w")),
        (f"UPDATE part SET as_of = 1 WHERE \"table\" = 'c' AND part = {FIRST}", ("due", "c")),
        (f"UPDATE part SET fingerprint = 'x' WHERE \"table\" = 'b' AND part = {FIRST}", ("due", "b")),
        ("UPDATE clock SET seq = 3", ("time", "a")),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found(run: Run, small: Small, statement: str, found: tuple[str, str]) -> None:
    assert kinds(run) == []
    spoil(small, statement)
    assert found in kinds(run)
    assert {table for _, table in kinds(run, found[1])} == {found[1]}


def test_it_finds_the_same_in_every_database(run: Run, tmp_path: Path, url: str) -> None:
    place = Small(tmp_path / "elsewhere", url)
    place.ingest({FIRST + p: {"k": p} for p in range(4)})
    place.run()
    words = ("--workspace", str(place.folder))
    assert kinds(run, *words) == kinds(run, *words, "--since", "1 hour") == []
    for statement in (
        "UPDATE version SET version = version + 1 WHERE \"table\" = 'a' AND version = 1",
        "UPDATE revision SET at = at + 1 WHERE \"table\" = 'c'",
        f"DELETE FROM part WHERE \"table\" = 'w' AND part = {FIRST + 2}",
        f"UPDATE part SET as_of = 1 WHERE \"table\" = 'b' AND part = {FIRST}",
        f"UPDATE part SET as_of = 1 WHERE \"table\" = 'w' AND part = {FIRST + 3}",
    ):
        spoil(place, statement)
    found = kinds(run, *words)
    assert set(found) == {("gap", "a"), ("time", "c"), ("exists", "w"), ("due", "b"), ("due", "w")}
    place.close()


def test_since_looks_at_what_happened_since(run: Run, small: Small) -> None:
    small.ingest({FIRST + 1: {"k": 50}})
    spoil(small, "DELETE FROM due WHERE \"table\" = 'a'")
    assert kinds(run) == kinds(run, "--since", "1 hour") == [("due", "a")]
    spoil(small, "UPDATE version SET at = at - 7200")
    spoil(small, "UPDATE revision SET at = at - 7200")
    assert kinds(run, "--since", "1 hour") == []
    assert kinds(run) == [("due", "a")]


def test_since_looks_at_definitions_that_changed_since(run: Run, small: Small) -> None:
    spoil(small, "UPDATE version SET at = at - 7200")
    spoil(small, "UPDATE revision SET at = at - 7200")
    file = small.folder / "view_defs/all.yaml"
    file.write_text(file.read_text().replace("SELECT k, 3 * SUM(x)", "SELECT k, 4 * SUM(x)"))
    small.workspace.take_over(small.ledger, small.workspace.load(), small.now())
    spoil(small, "DELETE FROM due WHERE \"table\" = 'b'")
    assert kinds(run, "--since", "1 hour") == kinds(run) == [("due", "b")]


def test_a_mixture_is_marked_until_it_is_repaired(run: Run, small: Small) -> None:
    """c joins a and b. It runs out of patience while a is behind: the row it publishes never was."""
    small.ingest({FIRST + 1: {"k": 50, "m": 10}})
    small.step("b")
    late = Small(small.folder, ahead=7200)
    assert late.step("c")
    at = small.ledger.current("c")
    assert small.part("c", at, FIRST + 1)["k"] == 1_000_000 * 2 * 2 + 3 * 50
    why = run("why", "c", ONE, "--json").json
    assert (
        f"It is mixed: computed as of sequence {why['mixed']['as_of']}, when a[{ONE}] was not up to date." in why["why"]
    )
    assert why["mixed"]["read"] == [{"table": "a", "parts": [ONE]}]
    assert why["revisions"][0]["mixed"] == why["mixed"]["read"]
    assert why["revisions"][0]["as_of"] == why["mixed"]["as_of"]
    status = {row["table"]: row["mixed"] for row in run("status", "--json").json["tables"]}
    assert status == {"s": 0, "a": 0, "b": 0, "c": 1, "w": 0}
    assert "c: 1 part mixed" in run("status").out
    assert [row["part"] for row in run("status", "c", "--json").json["parts"] if row["mixed"]] == [ONE]
    assert "fresh, mixed" in run("status", "c").out
    with as_defined(small.ledger, small.ledger.graph(), small.now()) as snapshot:
        page = details(snapshot, snapshot.graph["c"], FIRST + 1)
    assert page.mixed
    assert f"when a[{ONE}] was not up to date" in page.why
    done = run("audit", "c", "--json")
    assert (done.code, done.json["problems"][0]["kind"]) == (1, "mixed")
    assert done.json["views"][0]["mixed"] == [
        {"part": ONE, "as_of": why["mixed"]["as_of"], "read": [{"table": "a", "parts": ONE}]}
    ]
    small.step("a")  # now c is due, and still mixed
    done = run("audit", "c")
    assert done.code == 0
    assert f"c[{ONE}] is mixed: it read a[{ONE}] as of" in done.out
    small.run()
    assert kinds(run) == []
    assert run("why", "c", ONE, "--json").json["mixed"] is None
    assert run("why", "c", ONE, "--json").json["revisions"][1]["mixed"] == why["mixed"]["read"]  # history stays
    late.close()


def test_parts_superseded_at_their_commit_are_counted(run: Run, small: Small) -> None:
    small.ingest({FIRST + 1: {"k": 50}})
    small.between = lambda view: view == "a" and small.ingest({FIRST + 1: {"k": 51}, FIRST + 3: {"k": 7}})
    small.step("a")
    small.between = lambda view: None
    counts = {v["view"]: v["superseded_at_commit"] for v in run("audit", "--json").json["views"]}
    assert counts == {"a": 1, "b": 0, "c": 0, "w": 0}
    small.run()  # its repair is the latest again, nobody had to try twice, and the count says how often that happened
    views = {v["view"]: (v["superseded_at_commit"], v["published"]) for v in run("audit", "--json").json["views"]}
    assert {name: n for name, (n, _) in views.items()} == {"a": 1, "b": 0, "c": 0, "w": 0}
    assert views["a"] == (1, 4 + 1 + 2)
    assert "1 of 7" in run("audit", "a").out
    assert kinds(run) == []


def test_a_serialisable_schedule_that_shows_a_window_that_never_was(small: Small) -> None:
    """r[0] w5[0] w6[1] r[1] r[2]: every read sees a committed part, and together they are no state of the source."""
    with small.ledger.database.reading() as r:
        before = r.seq
    states = [{FIRST + p: small.part("s", small.ledger.current("s"), FIRST + p) for p in range(3)}]
    latest = {FIRST: small.part("s", small.ledger.current("s"), FIRST)}
    for p, value in ((0, 5), (1, 6)):
        small.ingest({FIRST + p: {"k": value}})
        states.append({**states[-1], FIRST + p: {"k": value}})
    latest |= {FIRST + p: small.part("s", small.ledger.current("s"), FIRST + p) for p in (1, 2)}
    assert latest not in states  # what separate jobs that each read the latest would compute from
    pinned = {}
    for p in range(3):
        at = readable(small.ledger.database, ["s"], ["s"], before)["s"].version
        pinned[FIRST + p] = small.part("s", at, FIRST + p)
    assert pinned == states[0]
    # A step does the same: its window is one that was there at its pin, whatever comes in between.
    small.between = lambda view: small.ingest({FIRST: {"k": 55}}) or small.ingest({FIRST + 1: {"k": 66}})
    small.step("w")
    assert small.part("w", small.ledger.current("w"), FIRST + 2) == recomputed("w", FIRST + 2, states[-1])
    assert computed("w", FIRST + 2, lambda table, p: latest[p]) != recomputed("w", FIRST + 2, states[-1])
