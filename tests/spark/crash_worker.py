"""Runs steps in processes that are killed, or stopped, at a named point; a new process then finishes the work.

Tables are in a folder, or, for cases that say so, in an object store, which is known by its URL and a bucket.

Reads cases as JSON, one a line, and answers each with a line of JSON. Every case runs in a process of its own,
forked before anything of Spark is connected: a client that dies costs a second, and dies as any other would.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from deltalake import DeltaTable
from workspace import Workspace

import partwise.ledger.ledger
import partwise.storage.table
import spark_jobs.engine
from partwise import object_store, storage
from partwise.ledger.ledger import Ledger
from partwise.ledger.records.files import quarantined
from partwise.storage.files import RemoteFolder, folder
from partwise.storage.remote import Bucket
from partwise.workspace import open_workspace
from spark_jobs.ingest.api import ingest
from spark_jobs.ingest.result import Ingested
from spark_jobs.run import run_all
from spark_jobs.session.session import session
from spark_jobs.step import copies
from spark_jobs.step.run_step import run_step

BUCKET = "s3://crash"
VIEWS = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, g: string, x: bigint}
files: landing/*.csv
---
view: sums
part: 1 minute
update: SELECT g, SUM(x) AS s, COUNT(*) AS n FROM m[j] GROUP BY g
---
view: counted
part: 1 minute
update: SELECT g, COUNT(*) AS n, SUM(x) AS s, COUNT(x) AS c FROM m[j] GROUP BY g
---
view: seen
part: 1 minute
update: SELECT DISTINCT g FROM m[j-1..j]
---
view: total
part: 1 minute
initialize: SELECT g, SUM(x) AS x FROM m[i] GROUP BY g
update: |
  SELECT COALESCE(p.g, n.g) AS g, COALESCE(p.x, 0) + COALESCE(n.x, 0) AS x
  FROM total[j-1] p FULL JOIN (SELECT g, SUM(x) AS x FROM m[j] GROUP BY g) n ON n.g <=> p.g
"""
FIRST = {0: [("a", 1), ("b", 2)], 1: [("a", 10)], 2: [("b", 5), ("b", 5)]}
LATE = ("c", 7)  # for part 1


def rows(values: list[tuple[str, int]]) -> list[dict[str, Any]]:
    return [{"t": datetime(1970, 1, 1, tzinfo=UTC), "g": g, "x": x} for g, x in values]


def copied(at: Path, begin: str, name: str, store: str | None) -> Path:
    """A workspace as another one is, with tables of its own."""
    shutil.copytree(at / begin, at / name)
    if store is not None:
        place(at / name, store)
        bucket = Bucket(BUCKET)
        for each in bucket.below(begin):
            bucket.copy_from(f"{BUCKET}/{each.name}", _plain(name) + each.name.removeprefix(begin))
    return at / name


def _plain(name: str) -> str:
    return name.replace(" ", "-")


def place(at: Path, store: str | None) -> Path:
    """A workspace whose tables are in the store, if there is one."""
    at.mkdir(parents=True, exist_ok=True)
    lines = f"warehouse: {BUCKET}/{_plain(at.name)}/warehouse\nstore: {{endpoint: '{store}'}}\n" if store else ""
    (at / "partwise.yaml").write_text(lines)
    return at


def prepare(at: Path, spark: Any, store: str | None = None) -> None:
    """`first`: rows have arrived, nothing is built. `late`: all is built, then late rows came."""
    first = Workspace(spark, place(at / "first", store), VIEWS)
    first.replace("m", {p: rows(values) for p, values in FIRST.items()})
    first.ledger.database.close()
    late = Workspace(spark, copied(at, "first", "late", store))
    late.run()
    late.replace("m", {1: rows([*FIRST[1], LATE])})
    # What `seen` shows of part 2 stays as it was if the late row is of a group that it shows already.
    same = Workspace(spark, copied(at, "first", "unchanged", store))
    same.run()
    same.replace("m", {2: rows([*FIRST[2], ("b", 1)])})


def prepare_files(at: Path, spark: Any, store: str | None = None) -> None:
    """A file was loaded; since then it was corrected, another one came, and one of its rows has no time."""
    space = place(at / "files", store)
    (space / "landing").mkdir()
    Workspace(spark, space, VIEWS).ledger.database.close()
    land(space, "a.csv", [(0, "a", 1), (0, "b", 2), (1, "a", 10), (2, "b", 5)])
    assert take_in_files(space, spark).rows == 4
    land(space, "a.csv", [(0, "a", 1), (0, "b", 2), (1, "a", 11), (2, "b", 5)])
    land(space, "b.csv", [(1, "c", 7), (3, "d", 1), (None, "bad", 1)])


def land(space: Path, name: str, values: list[tuple[int | None, str, int]]) -> None:
    times = ["soon" if p is None else datetime.fromtimestamp(60 * p, UTC).isoformat() for p, _, _ in values]
    lines = [f"{time},{g},{x}" for time, (_, g, x) in zip(times, values, strict=True)]
    (space / "landing" / name).write_text("\n".join(["t,g,x", *lines]) + "\n")


def take_in_files(at: Path, spark: Any, **given: Any) -> Ingested:
    return ingest(Workspace(spark, at, **given).engine, open_workspace(str(at), {}), ["m"], settle=0)[0]


#: Held while the lease is renewed, which another thread does all the while. A process that is stopped in the middle of that
#: would keep the whole SQLite file locked, and nobody could overtake it: that is not what is looked at here.
RENEWING = threading.Lock()


def renew(ledger: Ledger, *given: Any, renew: Callable[..., Any] = Ledger.renew) -> Any:
    with RENEWING:
        return renew(ledger, *given)


Ledger.renew = renew  # type: ignore[method-assign]


def stopper(point: str, nth: int, number: signal.Signals) -> Callable[[str], None]:
    passed = 0

    def stop(name: str) -> None:
        nonlocal passed
        passed += name == point
        if name == point and passed == nth:
            with RENEWING if number == signal.SIGSTOP else nullcontext():
                os.kill(os.getpid(), number)

    return stop


def also_inside(stop: Callable[[str], None]) -> None:
    """Places that the engine itself does not tell of: inside staging and of both commits."""

    def told(owner: Any, name: str, point: str, before: bool = False) -> None:
        work = getattr(owner, name)

        def wrapped(*given: Any, **named: Any) -> Any:
            if before:
                stop(point)
            found = work(*given, **named)
            if not before:
                stop(point)
            return found

        setattr(owner, name, wrapped)

    told(storage, "begin", "noted")  # nothing is written yet
    told(partwise.storage.table, "_add_actions", "looked at")  # staged files were checked, the log is not written
    told(DeltaTable, "create_write_transaction", "written")  # the log is, and nobody knows
    told(RemoteFolder, "create", "written")  # the same in a store
    told(partwise.ledger.ledger, "record", "recording")  # inside the ledger's transaction
    told(storage, "finish", "finishing", before=True)
    told(storage, "discard", "discarding", before=True)


def one_step(case: dict[str, Any], spark: Any, number: signal.Signals) -> None:
    """The step that gets killed or stopped. Says how it ended, if it got that far."""
    stop = stopper(case["point"], case["nth"], number)
    also_inside(stop)
    at = Path(case["at"])
    try:
        if case["begin"] == "files":
            done = take_in_files(at, spark, passed=stop)
            ended = "done" if done.files else "nothing"
        else:
            report = run_step(Workspace(spark, at, passed=stop, repair_by=case["repair"]).engine, case["table"])
            assert report is None or case["repair"] in (None, report.repair and report.repair.by), report
            ended = "nothing" if report is None else "done"
    except Exception as why:
        ended = type(why).__name__
    (Path(case["at"]) / "ended").write_text(ended)


def finish(case: dict[str, Any], spark: Any) -> None:
    """What anybody does after a crash: run what is due. Then sweep, and run once more."""
    at, table = Path(case["at"]), case["table"]
    space = Workspace(spark, at, repair_by=case["repair"])
    files = [take_in_files(at, spark).files] if case["begin"] == "files" else []
    reports = run_all(space.engine, [table])
    with space.engine.leased(table):
        path = space.engine.path(table, 0)
        swept = storage.sweep(path, (), older_than=timedelta(0), now=datetime.now(UTC) + timedelta(seconds=5))
    again = run_all(space.engine, [table])
    files += [take_in_files(at, spark).files] if case["begin"] == "files" else []
    named = {file.path.split("/")[0] for entry in _versions(path) for file in storage.open_at(path, entry).files}
    root = folder(path)
    left = [f.name for f in root.listing("") if f.name.startswith("s-") and f.name not in named]
    found = {
        "reports": [[list(r.parts), list(r.changed), r.failed] for r in reports],
        "again": len(again),
        "swept": len(swept.steps),
        "left": left + [f.name for f in root.listing("_staged")],
        "audit": list(space.ledger.audit()),
        "due": [step.table for step in space.ledger.plan(space.engine.now(), [table]).steps],
        "rows": _loaded(path) if files else {p: [list(r.values()) for r in rs] for p, rs in space.rows(table).items()},
        "revisions": _revisions(space, table),
        "files": files,
        "aside": _aside(space, table),
        "links": (at / ".ingest").exists(),
    }
    (at / "finished").write_text(json.dumps(found))


def _loaded(path: str) -> dict[int, list[list[Any]]]:
    """Rows of all parts, of open ones too."""
    found: dict[int, list[list[Any]]] = {}
    for row in storage.open_at(path).table.to_pyarrow_table().to_pylist():
        found.setdefault(row["part"], []).append([row["g"], row["x"]])
    return found


def _aside(space: Workspace, table: str) -> list[str]:
    with space.ledger.database.reading() as r:
        return [row.row for row in quarantined(r, table)]


def _versions(path: str) -> range:
    return range(storage.open_at(path).version + 1)


def _revisions(space: Workspace, table: str) -> dict[int, int]:
    from sqlalchemy import select

    from partwise.ledger.schema import part

    with space.ledger.database.reading() as r:
        found = r.on.execute(select(part.c.part, part.c.revision).where(part.c.table == table))
        return {row.part: row.revision for row in found}


def forked(work: Callable[[Any], Any], remote: str | None = None) -> int:
    """A process of its own, with a Spark client of its own if it needs one."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work(None if remote is None else session(remote=remote))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def ended(child: int) -> int:
    """The signal that ended it, negative, or its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def as_on_a_cluster(spark: Any) -> bool:
    """Spark writes and reads the store itself."""
    return False


def killed(case: dict[str, Any], remote: str) -> dict[str, Any]:
    code = ended(forked(lambda spark: one_step(case, spark, signal.SIGKILL), remote))
    return {"code": code}


def overtaken(case: dict[str, Any], remote: str) -> dict[str, Any]:
    """Stopped until its lease has expired and somebody else has done the work; then it goes on."""
    spark_jobs.engine.LEASE = 1.0
    child = forked(lambda spark: one_step(case, spark, signal.SIGSTOP), remote)
    _, status = os.waitpid(child, os.WUNTRACED)
    stopped = os.WIFSTOPPED(status)
    time.sleep(1.2)
    other = ended(forked(lambda spark: the_same(case, spark), remote))
    if stopped:
        os.kill(child, signal.SIGCONT)
        code = ended(child)
    else:
        code = os.waitstatus_to_exitcode(status)
    spark_jobs.engine.LEASE = 60.0
    return {"stopped": stopped, "other": other, "code": code, "ended": (Path(case["at"]) / "ended").read_text()}


def the_same(case: dict[str, Any], spark: Any) -> None:
    """What another process does that finds the same work to do."""
    if case["begin"] == "files":
        take_in_files(Path(case["at"]), spark)
    else:
        run_all(Workspace(spark, Path(case["at"]), repair_by=case["repair"]).engine, [case["table"]])


def warm(at: Path) -> None:
    """Imports what children need, and connects to nothing: they start in no time."""
    import pandas  # noqa: F401
    import pyspark.sql.connect.session  # noqa: F401

    from partwise.compile.load import load

    at.mkdir()
    (at / "all.yaml").write_text(VIEWS)
    assert load(str(at)).ok


def main(remote: str, base: str, store: str) -> None:
    warm(Path(base) / "warm")
    object_store.remember(object_store.Store(store), BUCKET)
    places: dict[bool, tuple[Path, str | None]] = {
        False: (Path(base) / "folder", None),
        True: (Path(base) / "store", store),
    }
    prepared: set[bool] = set()
    seen_here = copies.runs_here
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        case = json.loads(line)
        at, endpoint = places[in_store := case["store"] is not None]
        if in_store not in prepared:
            code = ended(forked(lambda spark, at=at, to=endpoint: prepare(at, spark, to), remote))
            code = code or ended(forked(lambda spark, at=at, to=endpoint: prepare_files(at, spark, to), remote))
            assert code == 0
            prepared.add(in_store)
        copies.runs_here = as_on_a_cluster if case["store"] == "cluster" else seen_here
        case["at"] = str(at / case["name"])
        # In a child: the store's client does not survive a fork.
        copying = forked(lambda spark, at=at, case=case, to=endpoint: copied(at, case["begin"], case["name"], to))
        assert ended(copying) == 0
        answer = (killed if case["kind"] == "kill" else overtaken)(case, remote)
        answer["finish"] = ended(forked(lambda spark, case=case: finish(case, spark), remote))
        done = Path(case["at"]) / "finished"
        answer |= json.loads(done.read_text()) if done.exists() else {}
        shutil.rmtree(case["at"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
