"""Windows beside dimensions that change forward, by every strategy, against loops over the rows of their windows.

Each part of a stream is joined with the version that counts for that part; late rows are joined with the same version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from partwise.compile import GeneratedView, InputTable, QueryView, Translation, translate
from partwise.compile.dimensions import FORWARD
from partwise.compile.dimensions.forward import translated_apart
from partwise.sql.parse import TranslationError
from tests.compile.duck import Duck, catch_up, repair

PARTS = 9
INPUTS = {
    "m": InputTable("m", "source", 60, {"k": "string", "x": "bigint", "ts": "bigint", "tie": "bigint"}, "ts", "tie"),
    "n": InputTable("n", "source", 30, {"k": "string", "y": "bigint", "ts": "bigint", "tie": "bigint"}, "ts", "tie"),
    "rates": InputTable("rates", "dimension", None, {"k": "string", "rate": "bigint"}),
}
Rows = dict[str, dict[int, list[tuple[Any, ...]]]]  # by stream and part: key, value
Versions = dict[str, dict[int, dict[str, int]]]  # by stream and part: what the dimension held for it


def rated(history: Rows, versions: Versions, stream: str, left: bool, lo: int, hi: int) -> Iterator[tuple[Any, ...]]:
    """Rows of the stream with the rate of then, and their part."""
    for p in range(lo, hi + 1):
        for k, v in history[stream].get(p, ()):
            rate = versions[stream][p].get(k)
            if rate is not None or left:
                yield k, v, rate, p


def grouped(history: Rows, versions: Versions, j: int) -> Counter[tuple[Any, ...]]:
    found: dict[Any, list[int]] = {}
    for _, x, rate, _ in rated(history, versions, "m", False, j - 2, j):
        found.setdefault(rate, []).append(x)
    return Counter((rate, len(values), sum(values), max(values)) for rate, values in found.items())


def outer(history: Rows, versions: Versions, j: int) -> Counter[tuple[Any, ...]]:
    return Counter({(k, rate) for k, _, rate, _ in rated(history, versions, "m", True, j - 3, j)})


def both(history: Rows, versions: Versions, j: int) -> Counter[tuple[Any, ...]]:
    return Counter(
        (a[0], a[2], b[1], b[2])
        for a in rated(history, versions, "m", False, j - 2, j)
        for b in rated(history, versions, "n", True, 2 * j - 2, 2 * j + 1)
        if a[0] == b[0] and b[1] >= a[2]
    )


def both_pairs(history: Rows, versions: Versions, j: int) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for a in rated(history, versions, "m", False, j - 2, j):
        for b in rated(history, versions, "n", True, 2 * j - 2, 2 * j + 1):
            if a[0] == b[0] and b[1] >= a[2] and max(a[3], b[3] // 2) == j:
                found[a[0], a[2], b[1], b[2]] += 1
    return found


def largest(history: Rows, versions: Versions, j: int) -> Counter[tuple[Any, ...]]:
    counts = Counter(rate for _, _, rate, _ in rated(history, versions, "m", False, j - 2, j))
    return Counter(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:2])


_BOTH = (
    "SELECT m.k, r.rate, n.y, q.rate AS other FROM m [WINDOW 3 minutes] m JOIN n [WINDOW 2 minutes] n ON n.k = m.k "
    "JOIN rates r ON r.k = m.k LEFT JOIN rates q ON q.k = n.k WHERE n.y >= r.rate"
)
Case = tuple[str, str, str, int, Callable[[Rows, Versions, int], Counter[tuple[Any, ...]]]]
_GROUPED = (
    "SELECT r.rate, COUNT(*) AS n, SUM(x) AS s, MAX(m.x) AS most "
    "FROM m [WINDOW 3 minutes] m JOIN rates r ON r.k = m.k GROUP BY r.rate"
)
CASES: dict[str, Case] = {
    **{f"grouped-{way}": (_GROUPED, way, "snapshot", 2, grouped) for way in ("recompute", "merge", "subtract")},
    **{
        f"distinct-{way}": (
            "SELECT DISTINCT m.k, rate FROM m [WINDOW 4 minutes] LEFT JOIN rates ON m.k = rates.k",
            way, "snapshot", 3, outer,
        )
        for way in ("recompute", "last")
    },
    "join-recompute": (_BOTH, "recompute", "snapshot", 2, both),
    "join-grid": (_BOTH, "grid", "snapshot", 2, both),
    "pairs": (_BOTH, "", "pairs", 2, both_pairs),
    "top": (
        "SELECT r.rate, COUNT(*) AS n FROM m [WINDOW 3 minutes] m JOIN rates r ON r.k = m.k "
        "GROUP BY r.rate ORDER BY n DESC LIMIT 2",
        "merge", "snapshot", 2, largest,
    ),
}  # fmt: skip


class Versioned(Duck):
    """Before a part of a helper is computed the dimension holds what counts for that part, as steps read it."""

    versions: Versions

    def build(self, view: GeneratedView, part: int) -> bool:
        if "__dated" in view.name:
            stream = "n" if "FROM n[" in view.update else "m"
            self.con.execute("DELETE FROM rates")
            self.insert("rates", [{"k": k, "rate": rate} for k, rate in self.versions[stream][part].items()])
        else:
            self.con.execute("DELETE FROM rates")  # nothing else may read it
        return super().build(view, part)


def made(query: str, strategy: str, output: str) -> Translation:
    view = QueryView("v", query, 60, strategy=strategy or None, output=output)  # type: ignore[arg-type]
    return translated_apart(view, INPUTS, {"rates": FORWARD}, translate)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(4))
def test_every_strategy_reads_the_version_of_each_part(name: str, seed: int) -> None:
    query, strategy, output, first, oracle = CASES[name]
    rng = Random(f"{name}{seed}")

    def draw() -> list[tuple[Any, ...]]:
        return [(rng.choice("abc"), rng.randrange(4)) for _ in range(rng.randrange(5))]

    def version() -> dict[str, int]:
        return {k: rng.randrange(3) for k in "abc" if rng.random() < 0.8}

    history: Rows = {"m": {p: draw() for p in range(PARTS)}, "n": {p: draw() for p in range(2 * PARTS)}}
    current, versions = version(), dict[str, dict[int, dict[str, int]]](m={}, n={})
    for p in range(PARTS):
        for stream, part in (("m", p), ("n", 2 * p), ("n", 2 * p + 1)):
            current = version() if rng.random() < 0.3 else current
            versions[stream][part] = current
    duck = Versioned(made(query, strategy, output), INPUTS.values())
    duck.versions = versions
    value = {"m": "x", "n": "y"}
    try:

        def put(stream: str, p: int) -> None:
            duck.con.execute(f"DELETE FROM {stream} WHERE part = {p}")
            rows = enumerate(history[stream][p])
            duck.insert(stream, [{"part": p, "k": k, value[stream]: v, "ts": p, "tie": at} for at, (k, v) in rows])

        for stream, parts in history.items():
            for p in parts:
                put(stream, p)
        catch_up(duck, {stream: set(parts) for stream, parts in history.items()})
        for late in range(3):
            if late:
                stream = rng.choice("mn")
                p = rng.choice(list(history[stream]))
                history[stream][p] = draw()
                put(stream, p)
                repair(duck, {(stream, p)})
            assert duck.built["v"] >= set(range(first, PARTS))
            for j in range(first, PARTS):
                found = Counter(tuple(row.values()) for row in duck.rows("v", j))
                assert found == oracle(history, versions, j), (name, seed, j)
    finally:
        duck.close()


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT DISTINCT r.rate FROM m [WINDOW 3 minutes] m, rates r WHERE r.k = m.k", "only be joined by JOIN"),
        (
            "SELECT m.k, n.y FROM m [WINDOW 3 minutes] m LEFT JOIN n [WINDOW 2 minutes] n ON n.k = m.k "
            "JOIN rates r ON r.k = n.k",
            "LEFT JOIN, so some rows have none",
        ),
        (
            "SELECT m.k, n.y FROM m [WINDOW 3 minutes] m JOIN n [WINDOW 2 minutes] n ON n.k = m.k "
            "JOIN rates r ON r.k = n.k AND r.rate = m.x",
            "columns of one table",
        ),
        ("SELECT m.k, r.rate FROM m [ROWS 2 PER k WITHIN 3 minutes] m JOIN rates r ON r.k = m.k", "chosen before"),
        (
            "SELECT DISTINCT m.k FROM m [WINDOW 3 minutes] m WHERE EXISTS (SELECT 1 FROM rates r WHERE r.k = m.k)",
            "only be joined by JOIN",
        ),
    ],
)
def test_what_would_not_be_the_same_is_refused(query: str, what: str) -> None:
    with pytest.raises(TranslationError) as caught:
        made(query, "", "snapshot")
    (problem,) = caught.value.problems
    assert problem.code == "forward-query"
    assert what in problem.message
    assert query[problem.start :].startswith("rates")


def test_only_what_is_needed_is_kept_and_names_stay() -> None:
    *_, helper, view = made(
        "SELECT r.k, MAX(r.rate) AS rate FROM m [WINDOW 3 minutes] JOIN rates r ON r.k = m.k GROUP BY r.k", "recompute", "snapshot"
    ).views  # fmt: skip
    assert helper.update == "SELECT m.k, m.ts, m.tie, r.k AS r__k, r.rate\nFROM m[j]\nJOIN rates r ON r.k = m.k"
    assert view.update.startswith("SELECT m.r__k AS k, MAX(m.rate) AS rate\nFROM v__dated[j-2..j] m")
