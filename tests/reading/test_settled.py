"""`query --settled`: every part that the query may read is what the sources of that moment give."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest

from partwise.ledger.read.as_of import readable, versions_at
from partwise.ledger.read.newest_settled import Found, newest_settled
from partwise.parts import FOREVER, Parts, part_text
from tests.cli.conftest import Run
from tests.reading.small import FIRST, Rows, Small, recomputed
from tests.reading.test_commands import sequence

EVERYTHING = Parts.of((-FOREVER, FOREVER))
AT = part_text(FIRST + 1, 60)
JOINED = f"SELECT s.k, s.x, a.x AS a, b.x AS b FROM s JOIN a USING (part, k) JOIN b USING (part, k) WHERE s.part = {FIRST + 1}"


def settled(small: Small, wanted: dict[str, Parts]) -> Found:
    with small.ledger.database.reading() as r:
        return newest_settled(r, small.ledger.graph_at(r), wanted)


def source_at(small: Small, seq: int) -> dict[int, Rows]:
    at = readable(small.ledger.database, ["s"], ["s"], seq)["s"]
    assert at.parts is not None
    return {p: small.part("s", at.version, p) for p in at.parts}


def test_a_late_row_on_its_way_is_not_seen_by_halves(run: Run, small: Small) -> None:
    before = run("query", JOINED, "--settled", "--json")
    assert [row["a"] == 2 * row["x"] and row["b"] == 3 * row["x"] for row in before.json] == [True, True]
    small.ingest({FIRST + 1: {"k": 50, "m": 10}})
    small.step("a")
    torn = run("query", JOINED, "--json").json
    assert any(row["b"] != 3 * row["x"] for row in torn)
    still = run("query", JOINED, "--settled", "--json")
    assert still.json == before.json
    assert sequence(still.err) < sequence(run("query", JOINED, "--json").err)
    assert f"newer snapshots are not settled: b[{AT}] (late rows in s[{AT}])" in still.err
    # The late row is in one part: other parts are settled now.
    other = run("query", JOINED.replace(f"= {FIRST + 1}", f"= {FIRST + 3}"), "--settled", "--json")
    assert sequence(other.err) > sequence(before.err)
    small.run()
    after = run("query", JOINED, "--settled", "--json")
    assert after.json != before.json
    assert all(row["b"] == 3 * row["x"] for row in after.json)


def test_it_is_refused_with_what_is_in_the_way(run: Run, tmp_path: object, small: Small) -> None:
    done = run("query", JOINED, "--settled", "--as-of", "@3")
    assert (done.code, "--settled finds the time by itself" in done.err) == (2, True)
    assert run("query", JOINED, "--settled=soon").code == 2
    small.ingest({FIRST + 9: {"k": 1}})  # never settled with it: w needs two parts before it that do not come
    assert settled(small, {"a": Parts.single(FIRST + 9)}).seq is not None  # before it came


def test_a_view_without_content_is_refused(run: Run, small: Small) -> None:
    (small.folder / "view_defs/late.yaml").write_text(
        "view: z\npart: 1 minute\nupdate: SELECT k, x FROM s[j]\n---\nview: y\npart: 1 minute\nupdate: SELECT k, x FROM z[j]\n"
    )
    small.workspace.take_over(small.ledger, small.workspace.load(), small.now())
    done = run("query", f"SELECT * FROM y WHERE part = {FIRST}", "--settled")
    assert done.code == 1
    assert "at no sequence on record" in done.err or "had no complete content yet" in done.err
    assert f"z[{part_text(FIRST, 60)}]" in done.err


def test_it_waits_for_the_first_content(run: Run, tmp_path: Path) -> None:
    place = Small(tmp_path / "fresh")
    place.ingest({FIRST: {"k": 4}})
    words = ["query", f"SELECT x FROM a WHERE part = {FIRST}", "--workspace", str(place.folder), "--json"]
    assert run(*words, "--settled").code == 1

    def compute() -> None:
        time.sleep(1.0)
        other = Small(place.folder)
        other.step("a")
        other.close()

    runner = threading.Thread(target=compute)
    runner.start()
    done = run(*words, "--settled=wait")
    runner.join()
    assert (done.code, done.json) == (0, [{"x": 8}])
    assert "Waiting: --settled: a had no complete content yet" in done.err
    place.close()


@pytest.mark.parametrize("seed", range(3))
def test_settled_is_what_the_sources_of_that_moment_give(small: Small, seed: int) -> None:
    """Random late rows, steps in any order; after each of them, for every part of every view."""
    chance = random.Random(seed)
    moved = 0
    for n in range(25):
        if chance.random() < 0.4:
            small.ingest({FIRST + chance.randrange(6): {"k": chance.randrange(3), "m": n}})
        else:
            small.step(chance.choice("abcw"))
        for view in "abcw":
            p = FIRST + chance.randrange(6)
            found = settled(small, {view: Parts.single(p), "s": Parts.single(p)})
            if found.seq is None:
                continue
            versions = readable(small.ledger.database, ["s", view], ["s", view], found.seq)
            source = source_at(small, found.seq)
            exists = all(q in source for q in ((p - 2, p - 1, p) if view == "w" else (p,)))
            expected = recomputed(view, p, source) if exists else {}
            assert small.part(view, versions[view].version, p) == expected, (n, view, p, found)
            moved += found.seq > 0 and bool(found.in_the_way)
    assert moved  # some of them were not the present


def test_a_whole_table_settles_when_nothing_is_due(small: Small) -> None:
    everything = dict.fromkeys("sabcw", EVERYTHING)
    first = settled(small, everything)
    assert first.seq is not None
    assert first.in_the_way == ()
    small.ingest({FIRST: {"k": 5}})
    found = settled(small, everything)
    assert {item.table for item in found.in_the_way} == {"a", "b", "w"}
    assert found.seq is not None
    with small.ledger.database.reading() as r:
        assert versions_at(r, found.seq) == versions_at(r, first.seq)
