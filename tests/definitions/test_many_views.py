"""Reading many definitions, and telling the ledger of them, costs as much more as there are more of them: counted, not timed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from partwise.compile import translated
from partwise.compile.sharing import text
from partwise.ledger.open import in_memory
from partwise.workspace import Workspace, open_workspace

SOURCE = "source: s\npart: 1 minute\ntime: t\ncolumns: {t: timestamp, g: string, x: double}\nfiles: s/*.csv\n"
NODES = "dimension: n\ncolumns: {g: string, region: string}\nfiles: n.csv\n"
PLAIN = "view: a%d\npart: 1 minute\nupdate: SELECT g, SUM(x) AS x FROM %s[j] m WHERE x > %d GROUP BY g\n"
WINDOW = """\
view: w%d
part: 1 minute
query: SELECT r.region, SUM(a.x) AS x FROM a%d a [WINDOW 3 minutes] JOIN n r ON r.g = a.g WHERE a.x > %d GROUP BY r.region
"""


def workspace(folder: Path, views: int) -> Workspace:
    """Half of the views are windows over the other half, of which each reads the one before."""
    (folder / "view_defs").mkdir(parents=True)
    (folder / "partwise.yaml").write_text("{}\n")
    documents = [SOURCE, NODES]
    for k in range(views // 2):
        documents += [PLAIN % (k, f"a{k - 1}" if k else "s", k), WINDOW % (k, k, k)]
    (folder / "view_defs" / "all.yaml").write_text("---\n".join(documents))
    return open_workspace(str(folder))


def lines(run: Callable[[], object]) -> Counter[str]:
    """How many lines ran, by function of Partwise."""
    found: Counter[str] = Counter()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if "/partwise/" not in code.co_filename:
            return None
        if event == "line":
            found[f"{Path(code.co_filename).name}:{code.co_qualname}"] += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return found


def test_definitions_are_read_in_time_that_grows_with_their_number(tmp_path: Path) -> None:
    few, many = workspace(tmp_path / "few", 20), workspace(tmp_path / "many", 80)
    assert few.load().ok, few.load().problems  # and everything is imported
    counts = []
    for loaded in (few, many):
        for remembered in (translated._read, text._tokens):
            remembered.cache_clear()
        counts.append(lines(loaded.load))
    before, after = counts
    # Four times as many views: a function whose lines run more than six times as often looks at all of them for each.
    assert {name: (before[name], n) for name, n in after.items() if n > 6 * max(before[name], 60)} == {}


def test_the_ledger_is_told_of_them_in_such_a_time(tmp_path: Path) -> None:
    class Name(str):
        """Sets of names that are made for each table again show in how often names are hashed."""

        __slots__ = ()
        hashed = 0

        def __hash__(self) -> int:
            Name.hashed += 1
            return super().__hash__()

    from dataclasses import replace

    from partwise.tables import Graph

    def hashes(views: int) -> int:
        graph = workspace(tmp_path / str(views), views).load().graph()
        named = {Name(name): replace(table, name=Name(name)) for name, table in graph.tables.items()}
        Name.hashed = 0
        in_memory().define(Graph(named), 1000.0)
        return Name.hashed

    assert hashes(80) <= 6 * hashes(20)
