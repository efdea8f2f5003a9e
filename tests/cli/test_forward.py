"""What `why` says of versions of a forward dimension, and `plan` of switching."""

from __future__ import annotations

from pathlib import Path

from partwise.ledger.ledger import Ledger
from partwise.ledger.write.commit import Content, Entry
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
