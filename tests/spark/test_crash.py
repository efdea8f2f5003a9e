"""A process killed at any point of a step, or stopped until others have done its work, does no harm.

Each case is a real process that gets SIGKILL (or SIGSTOP) at a point; a new one then runs to the end.
What the tables should hold is computed here, in plain Python.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from partwise.object_store import Access, spark_settings
from spark_jobs.session.connect import server
from tests.object_store.store import KEYS, Server, s3a_keys
from tests.spark.sessions import small

pytestmark = [pytest.mark.spark, pytest.mark.own_process, pytest.mark.xdist_group("crash")]
HERE = Path(__file__).parent

FIRST = {0: [("a", 1), ("b", 2)], 1: [("a", 10)], 2: [("b", 5), ("b", 5)]}
#: The source after each beginning.
SOURCES = {
    "first": FIRST,
    "late": {**FIRST, 1: [("a", 10), ("c", 7)]},
    "unchanged": {**FIRST, 2: [("b", 5), ("b", 5), ("b", 1)]},
}


def expected(table: str, source: dict[int, list[tuple[str, int]]]) -> dict[int, Counter[tuple[Any, ...]]]:
    found: dict[int, Counter[tuple[Any, ...]]] = {}
    total: Counter[str] = Counter()
    for p, rows in sorted(source.items()):
        groups = {g: [x for h, x in rows if h == g] for g, _ in rows}
        total.update({g: sum(xs) for g, xs in groups.items()})
        if table == "sums":
            found[p] = Counter((g, sum(xs), len(xs)) for g, xs in groups.items())
        elif table == "counted":
            found[p] = Counter((g, len(xs), sum(xs), len(xs)) for g, xs in groups.items())
        elif table == "total":
            found[p] = Counter(total.items())
        elif p - 1 in source:
            found[p] = Counter({(g,): 1 for g, _ in (*rows, *source[p - 1])})
    return found


@dataclass(frozen=True)
class Case:
    begin: str
    table: str
    point: str
    nth: int = 1
    kind: str = "kill"
    repair: str | None = None
    store: str | None = None  # where the tables are; `cluster`: in the store, which Spark reads and writes itself

    @property
    def name(self) -> str:
        more = "".join(f"-{word}" for word in (self.repair, self.store) if word)
        return f"{self.kind}-{self.begin}-{self.table}-{self.point}-{self.nth}{more}"


EARLY, LATER = ("leased", "adopted", "pinned"), ("staged", "digested", "checked", "ready", "committed", "recorded")
DATA_COMMITTED = ("written", "committed", "recording", "recorded", "finishing")
#: Inside of staging, of the data's commit, of the ledger's, and of what comes after.
INSIDE = ("noted", "looked at", "written", "finishing")
KILLS = [
    *(Case("first", "sums", point) for point in (*EARLY, "made", "created", *LATER, *INSIDE)),
    *(Case("first", "total", point) for point in ("created", "staged", "ready", "committed")),
    *(Case("late", "sums", point) for point in (*EARLY, *LATER, *INSIDE)),
    *(Case("late", "total", point) for point in ("adopted", "digested", "staged", "ready", "written", "recorded")),
    # Of a new table the ledger is told first that it was made, then of its parts.
    *(Case("first", table, "recording", nth) for table in ("sums", "total") for nth in (1, 2)),
    Case("late", "sums", "recording"),
    Case("first", "total", "staged", 2),
    Case("late", "total", "digested", 2),
    # The result is what it was: there is no commit, so nothing is ever "ready".
    *(Case("unchanged", "seen", point) for point in ("staged", "discarding", "committed", "recording", "recorded")),
    # Repaired by keys. Part 2 shares its file with the others, whose rows are copied; a new group has a file of its own.
    *(Case("unchanged", "sums", point, repair="keys") for point in ("pinned", *LATER, *INSIDE, "recording")),
    Case("unchanged", "sums", "noted", 2, repair="keys"),
    *(Case("late", "sums", point, repair="keys") for point in ("staged", "ready", "written")),
    *(Case("unchanged", "seen", point, repair="keys") for point in ("discarding", "committed", "recorded")),
    # A running total, by keys from part to part.
    *(Case("late", "total", point, repair="keys") for point in ("digested", "staged", "ready", "written", "recorded")),
    Case("late", "total", "digested", 2, repair="keys"),
    # Repaired by merging: whoever goes on must not merge a second time.
    *(Case("unchanged", "counted", point, repair="merge") for point in ("pinned", *LATER, *INSIDE, "recording")),
    *(Case("late", "counted", point, repair="merge") for point in ("staged", "ready", "written")),
]
ZOMBIES = [
    *(Case("late", "sums", point, kind="stop") for point in ("leased", "pinned", "staged", "ready", "committed")),
    *(Case("first", "sums", point, kind="stop") for point in ("pinned", "created", "ready")),
    *(Case("first", "total", point, kind="stop") for point in ("digested", "committed")),
    Case("unchanged", "seen", "committed", kind="stop"),
    Case("late", "total", "recorded", kind="stop"),
    *(Case("late", "total", point, kind="stop", repair="keys") for point in ("digested", "committed")),
    *(Case("unchanged", "sums", point, kind="stop", repair="keys") for point in ("pinned", "ready", "committed")),
    *(Case("unchanged", "counted", point, kind="stop", repair="merge") for point in ("pinned", "ready", "committed")),
]


#: A correction, a new file and a row that cannot be placed, in one ingest.
FILES = {0: [("a", 1), ("b", 2)], 1: [("a", 11), ("c", 7)], 2: [("b", 5)], 3: [("d", 1)]}
INGEST_KILLS = [
    Case("files", "m", point)
    for point in (
        *("leased", "adopted", "noted", "staged", "digested", "quarantined", "kept", "looked at"),
        *("ready", "written", "committed", "recording", "recorded", "finishing"),
    )
]
INGEST_ZOMBIES = [Case("files", "m", point, kind="stop") for point in ("staged", "ready", "committed")]

#: Of all points those that `make test` tries in an object store, too; `make test-slow` tries all of them there.
QUICK = {
    *("kill-first-sums-created-1", "kill-late-sums-staged-1", "kill-late-sums-looked at-1", "kill-late-sums-written-1"),
    *("kill-late-total-recorded-1", "kill-unchanged-seen-discarding-1", "kill-unchanged-sums-written-1-keys"),
    *("stop-late-sums-ready-1", "stop-first-total-committed-1"),
    *("kill-files-m-staged-1", "kill-files-m-written-1", "stop-files-m-committed-1"),
}


def everywhere(cases: list[Case]) -> list[ParameterSet | Case]:
    """On the disk, and in the store: in turn where Spark sees the disk of the step, and where it does not."""
    there = [replace(case, store=("cluster", "store")[number % 2]) for number, case in enumerate(cases)]
    pairs = zip(cases, there, strict=True)
    return [*cases, *(c if here.name in QUICK else pytest.param(c, marks=pytest.mark.slow) for here, c in pairs)]


class Worker:
    def __init__(self, remote: str, base: Path, store: str) -> None:
        self.log = base / "worker.log"
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "crash_worker.py"), remote, str(base), store],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log.open("w"),
            text=True,
            cwd=HERE.parents[1],
            env={**os.environ, **KEYS, "PYTHONPATH": str(HERE.parents[1])},
        )
        assert self._answer() == {"ready": True}, self.log.read_text()

    def run(self, case: Case) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({**vars(case), "name": case.name}) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory, s3: Server) -> Iterator[Worker]:
    base = tmp_path_factory.mktemp("crash")
    s3.make_bucket("crash")
    store = spark_settings(Access(s3.url, "us-east-1")) | s3a_keys()
    with server(conf=small() | store, log=base / "server.log") as remote:
        found = Worker(remote, base, s3.url)
        yield found
        found.close()


def check(worker: Worker, case: Case, answer: dict[str, Any]) -> None:
    """Exactly the right rows, a ledger in order, nothing left behind, nothing more to do."""
    assert answer["finish"] == 0, worker.log.read_text()
    rows = {int(p): Counter(map(tuple, members)) for p, members in answer["rows"].items()}
    assert rows == expected(case.table, SOURCES[case.begin])
    assert (answer["audit"], answer["due"], answer["again"], answer["left"]) == ([], [], 0, [])
    assert not any(failed for _, _, failed in answer["reports"])


@pytest.mark.parametrize("case", everywhere(KILLS), ids=lambda case: case.name)
def test_killed_at_any_point(worker: Worker, case: Case) -> None:
    answer = worker.run(case)
    assert answer["code"] == -signal.SIGKILL, worker.log.read_text()
    check(worker, case, answer)
    computed = {p for parts, _, _ in answer["reports"] for p in parts}
    after = ("recorded", "finishing") if (case.begin, case.table) == ("unchanged", "seen") else DATA_COMMITTED
    only_made = (case.begin, case.point, case.nth) == ("first", "recording", 1)
    if case.point in after and not only_made:
        # The data were committed: the new process completes the ledger and computes nothing again.
        assert computed == set()
    else:
        assert computed != set()
    # Every part changed as often as its content did, however often it was computed.
    changes = {
        "first": {},
        "late": {"sums": [1], "counted": [1], "total": [1, 2]},
        "unchanged": {"sums": [2], "counted": [2]},
    }[case.begin].get(case.table, [])
    assert answer["revisions"] == {str(p): 1 + (p in changes) for p in expected(case.table, SOURCES[case.begin])}


@pytest.mark.parametrize("case", everywhere(ZOMBIES), ids=lambda case: case.name)
def test_overtaken_by_another_process(worker: Worker, case: Case) -> None:
    answer = worker.run(case)
    assert (answer["stopped"], answer["other"], answer["code"]) == (True, 0, 0), worker.log.read_text()
    # "recorded" is past everything; whoever has not recorded is refused.
    assert answer["ended"] in (("done",) if case.point == "recorded" else ("Conflict", "Fenced", "nothing"))
    check(worker, case, answer)


def check_files(worker: Worker, answer: dict[str, Any]) -> None:
    assert answer["finish"] == 0, worker.log.read_text()
    assert {int(p): sorted(map(tuple, rows)) for p, rows in answer["rows"].items()} == FILES
    assert [row.split(",")[0] for row in answer["aside"]] == ["soon"]
    # Minute 3 holds the newest event time and is open; only minute 1 has other rows than before.
    assert answer["revisions"] == {"0": 1, "1": 2, "2": 1}
    assert (answer["files"][1], answer["audit"], answer["left"], answer["links"]) == (0, [], [], False)


@pytest.mark.parametrize("case", everywhere(INGEST_KILLS), ids=lambda case: case.name)
def test_an_ingest_killed_at_any_point_loads_every_file_once(worker: Worker, case: Case) -> None:
    answer = worker.run(case)
    assert answer["code"] == -signal.SIGKILL, worker.log.read_text()
    check_files(worker, answer)
    assert answer["files"][0] == (0 if case.point in DATA_COMMITTED else 2)


@pytest.mark.parametrize("case", everywhere(INGEST_ZOMBIES), ids=lambda case: case.name)
def test_an_ingest_overtaken_by_another_process_doubles_nothing(worker: Worker, case: Case) -> None:
    answer = worker.run(case)
    assert (answer["stopped"], answer["other"], answer["code"]) == (True, 0, 0), worker.log.read_text()
    assert answer["ended"] in ("Conflict", "Fenced", "nothing")
    check_files(worker, answer)
    assert answer["files"] == [0, 0]
