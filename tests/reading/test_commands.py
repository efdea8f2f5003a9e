"""`now` and `query --as-of @N`: which moment an answer belongs to, and how to get it again."""

from __future__ import annotations

import re

import pytest

from partwise.reading import read
from tests.cli.conftest import Run
from tests.reading.small import FIRST, Small

COUNT = "SELECT s.k, s.x, a.x AS twice FROM s JOIN a USING (part, k) ORDER BY part, k"


def sequence(err: str) -> int:
    found = re.search(r"As of sequence (\d+) \(.*Z\)", err)
    assert found, err
    return int(found[1])


def test_an_answer_says_its_sequence_and_can_be_had_again(run: Run, small: Small) -> None:
    now = run("now", "--json").json
    assert set(now) == {"sequence", "at"}
    first = run("query", COUNT, "--json")
    assert sequence(first.err) == now["sequence"]
    small.ingest({FIRST: {"k": 100}})
    changed = run("query", COUNT, "--json")
    assert changed.json != first.json
    small.run()
    again = run("query", COUNT, "--json", "--as-of", f"@{now['sequence']}")
    assert (again.json, sequence(again.err)) == (first.json, now["sequence"])
    by_time = [run("query", COUNT, "--json", "--as-of", now["at"]) for _ in range(2)]
    assert by_time[0].code == 0, by_time[0].err
    assert by_time[0].json == by_time[1].json
    assert read(COUNT, sequence=now["sequence"]).rows == [tuple(row.values()) for row in first.json]
    assert read(COUNT).sequence == small.ledger.current("a").version or read(COUNT).sequence > now["sequence"]


@pytest.mark.parametrize(
    ("moment", "code", "says"),
    [
        ("@99999", 1, "there is no sequence 99999 yet; the ledger is at sequence"),
        ("@x", 2, "'@x' is not a sequence; write for example @118"),
        ("2099-01-01", 1, "that time lies ahead; the ledger is at sequence"),
    ],
)
def test_a_moment_that_cannot_be_read_is_told(run: Run, small: Small, moment: str, code: int, says: str) -> None:
    done = run("query", COUNT, "--as-of", moment)
    assert done.code == code
    assert says in done.err


def test_now_lists_what_other_programs_may_read(run: Run, small: Small) -> None:
    small.ingest({FIRST + 4: {"k": 1}})
    found = {row["table"]: row for row in run("now", "--tables", "--json").json["tables"]}
    assert set(found) == {"s", "a", "b", "c", "w"}
    assert found["s"]["parts"] == [[FIRST, FIRST + 4]]
    assert found["a"] == {"table": "a", "path": small.path("a", small.ledger.current("a")), "version": 1, "parts": None}
    assert "Sequence" in run("now", "--tables").out


def test_what_a_reader_keeps_survives_upkeep(run: Run, small: Small) -> None:
    """`now --keep` registers: upkeep with no history at all leaves what belongs to that moment."""
    from partwise.upkeep.retain import clean_up, give_up

    now = run("now", "--tables", "--keep", "10 minutes", "--json").json
    before = run("query", COUNT, "--json", "--as-of", f"@{now['sequence']}").json
    for n in range(3):
        small.ingest({FIRST: {"k": 100 + n}})
        small.run()
    later = small.now() + 300
    give_up(small.ledger, 1.0, later)
    for name in ("s", "a"):
        clean_up(small.ledger, small.warehouse, name, lambda: later + 3600)
    assert run("query", COUNT, "--json", "--as-of", f"@{now['sequence']}").json == before
    much = small.now() + 3600  # nobody has heard of it any more
    give_up(small.ledger, 1.0, much)
    done = run("query", COUNT, "--as-of", f"@{now['sequence']}")
    assert (done.code, "is not kept any longer" in done.err) == (1, True)
