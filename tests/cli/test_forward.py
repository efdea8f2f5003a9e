"""What `why` says of versions of a forward dimension, and `plan` of switching."""

from __future__ import annotations

from pathlib import Path

from partwise.ledger.ledger import Ledger
from partwise.ledger.read.snapshot import as_defined
from partwise.ledger.write.commit import Content, Entry
from partwise.page.part import details
from partwise.workspace import open_workspace
from tests.cli.conftest import Run

T = 1_791_000_000.0
FIRST = 29_849_760  # 2026-10-03T00:00
YAML = """\
source: m
part: 1 minute
time: t
columns: {t: timestamp, src: string, loss: bigint}
files: m.csv
---
dimension: rates
change: forward
columns: {src: string, rate: bigint}
files: rates.csv
---
view: same
part: 1 minute
update: SELECT src, loss FROM m[j]
---
view: priced
part: 1 minute
update: SELECT s.src, s.loss * r.rate AS p FROM same[j] s JOIN rates r ON r.src = s.src
"""


def defined(folder: Path, text: str) -> Ledger:
    (folder / "view_defs" / "all.yaml").write_text(text)
    where = open_workspace(str(folder), {})
    found = where.load()
    assert found.ok, found.problems
    ledger = where.open_ledger(T)
    where.take_over(ledger, found, T)
    return ledger


def arrive(ledger: Ledger, table: str, part: int, digest: str) -> None:
    held = ledger.take(table, "ingest", 60, T)
    ledger.commit(held, Entry(table, 0, "f", None, parts={part: Content(1, digest)}), None, T)


def build(ledger: Ledger, table: str) -> None:
    held = ledger.take(table, "step", 60, T)
    pin = ledger.pin(held, T)
    assert pin is not None
    ledger.commit(held, pin.entry({j: Content(1, f"x{j}") for j in pin.walk()}), None, T)


def test_why_names_the_version_and_the_source_part_that_decided_it(workspace: Path, run: Run) -> None:
    for file in (workspace / "view_defs").iterdir():
        file.unlink()
    ledger = defined(workspace, YAML)
    arrive(ledger, "m", FIRST, "a")
    arrive(ledger, "rates", 0, "one")
    arrive(ledger, "rates", 0, "two")
    arrive(ledger, "m", FIRST + 1, "b")
    build(ledger, "same")
    for _ in range(2):  # a step for each version
        build(ledger, "priced")
    arrive(ledger, "rates", 0, "three")
    said = run("why", "priced", "2026-10-03T00:01").out
    assert "rates: version 2 of 3, current when m[2026-10-03T00:01] came to exist." in " ".join(said.split())
    assert "rates: version 1 of 3, the first one." in run("why", "priced", "2026-10-03T00:00", "--json").json["why"]
    assert run("plan", "--json").json["steps"] == []

    (workspace / "view_defs" / "all.yaml").write_text(YAML.replace("change: forward\n", ""))
    back = run("plan").out
    assert "The newest version of rates will count for everything" in " ".join(back.split())
    found = run("plan", "--json").json
    assert found["definitions"]["retroactive"] == ["rates"]
    assert [step["table"] for step in found["steps"]] == ["priced"]
    ledger = defined(workspace, YAML.replace("change: forward\n", ""))
    build(ledger, "priced")

    (workspace / "view_defs" / "all.yaml").write_text(YAML)
    assert "what there is stays as it is" in " ".join(run("plan").out.split())
    assert run("plan", "--json").json["steps"] == []
    ledger = defined(workspace, YAML)
    said = run("why", "priced", "2026-10-03T00:00", "--json").json["why"]
    assert "rates: version 3 of 3, current when it began to count forward." in said


WINDOW = """
---
view: lately
part: 1 minute
strategy: recompute
query: SELECT SUM(w.loss * r.rate) AS s FROM m [WINDOW 2 minutes] w JOIN rates r ON r.src = w.src
"""


def test_why_names_the_version_for_the_newest_part_of_a_window(workspace: Path, run: Run) -> None:
    for file in (workspace / "view_defs").iterdir():
        file.unlink()
    ledger = defined(workspace, YAML + WINDOW)
    arrive(ledger, "rates", 0, "one")
    arrive(ledger, "m", FIRST, "a")
    arrive(ledger, "rates", 0, "two")
    arrive(ledger, "m", FIRST + 1, "b")
    for _ in range(2):
        build(ledger, "lately__dated")
    build(ledger, "lately")
    said = run("why", "lately", "2026-10-03T00:01", "--json").json["why"]
    assert "rates: version 2 of 2, current when m[2026-10-03T00:01] came to exist." in said
    assert said.endswith("Rows of earlier parts of a window keep the version of theirs.")
    with as_defined(ledger, ledger.graph(), T) as snapshot:
        assert "rates: version 2 of 2" in details(snapshot, snapshot.graph["lately"], FIRST + 1).why
    assert "earlier parts" not in run("why", "lately__dated", "2026-10-03T00:01", "--json").json["why"]


def test_another_version_counts_for_a_time_range_after_the_plan_was_shown(workspace: Path, run: Run) -> None:
    for file in (workspace / "view_defs").iterdir():
        file.unlink()
    ledger = defined(workspace, YAML)
    arrive(ledger, "rates", 0, "one")
    for p in range(2):
        arrive(ledger, "m", FIRST + p, f"a{p}")
    arrive(ledger, "rates", 0, "two")
    arrive(ledger, "m", FIRST + 2, "c")
    build(ledger, "same")
    for _ in range(2):
        build(ledger, "priced")
    listed = run("repin", "rates", "--json").json
    assert [item["version"] for item in listed["versions"]] == [1, 2]
    assert listed["repinned"] == []

    span = "2026-10-03T00:01..2026-10-03T00:02"
    planned = run("repin", "rates", span, "--dry-run", "--json").json
    assert planned["parts"] == [{"table": "priced", "parts": ["2026-10-03T00:01"]}]
    assert planned["version"] == 2
    assert run("plan", "--json").json["steps"] == [], "a plan changes nothing"
    refused = run("repin", "rates", span)
    assert refused.code == 2
    assert "--yes" in refused.err
    assert run("plan", "--json").json["steps"] == []

    said = run("repin", "rates", span, "--yes").out
    assert "version 2" in said
    assert "priced" in said
    [step] = run("plan", "--json").json["steps"]
    assert (step["table"], step["parts"]) == ("priced", ["2026-10-03T00:01"])
    assert step["reason"] == "another version of rates counts"
    build(ledger, "priced")
    said = run("why", "priced", "2026-10-03T00:01", "--json").json["why"]
    assert "rates: version 2 of 2, by `partwise repin`." in said
    said = run("why", "priced", "2026-10-03T00:00", "--json").json["why"]
    assert "rates: version 1 of 2, current when m[2026-10-03T00:00] came to exist." in said
    assert run("audit").code == 0

    back = run("repin", "rates", span, "--undo", "--yes", "--json").json
    assert (back["version"], back["parts"]) == (None, [{"table": "priced", "parts": ["2026-10-03T00:01"]}])
    assert [item["version"] for item in run("repin", "rates", "--json").json["repinned"]] == [2, None]


def test_repin_says_what_is_wrong(workspace: Path, run: Run) -> None:
    for file in (workspace / "view_defs").iterdir():
        file.unlink()
    ledger = defined(workspace, YAML)
    assert "was never loaded" in run("repin", "rates", "2026-10-03", "--yes").err
    arrive(ledger, "rates", 0, "one")
    assert "there is 1" in run("repin", "rates", "2026-10-03", "--version", "3", "--yes").err
    assert "written backwards" in run("repin", "rates", "2026-10-03..2026-10-02", "--yes").err
    assert "takes no --version" in run("repin", "rates", "2026-10-03", "--undo", "--version", "1").err
    assert "not a dimension" in run("repin", "m", "2026-10-03", "--yes").err
    assert "No part" in run("repin", "rates", "2026-10-03", "--yes").out
    defined(workspace, YAML.replace("change: forward\n", ""))
    assert "is retroactive" in run("repin", "rates", "2026-10-03", "--yes").err
