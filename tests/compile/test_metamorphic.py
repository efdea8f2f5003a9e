"""What says nothing changes nothing: comments, white space and strings in random definitions.

Neither plan nor content nor fingerprint may follow them, and many parts at once equal one part at a time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from partwise.compile.load import load_texts
from partwise.compile.many_parts import NotLiftable
from partwise.compile.many_parts.text import lift
from partwise.sql import find
from tests.compile import pattern_oracle, window_oracle
from tests.compile.noise import with_comments, with_strings
from tests.many_parts.duck import Duck
from tests.many_parts.queries import query

TABLES = """\
source: m
part: 1 minute
time: t
columns: {t: timestamp, k: bigint, v: bigint}
files: m.csv
---
source: n
part: 1 minute
time: t
columns: {t: timestamp, k: bigint, v: bigint}
files: n.csv
---
source: s
part: 1 minute
time: {column: ts, tie: tie}
columns: {g: string, h: int, ts: timestamp, tie: bigint, x: int, y: 'decimal(6,1)', z: int, d: 'decimal(8,2)', b: bigint, f: double}
files: s.csv
---
dimension: d
columns: {k: bigint, v: bigint}
files: d.csv
---
dimension: nodes
columns: {node: string, region: string}
files: nodes.csv
---
view: v
part: %d minutes
%s: |
%s
"""


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTWISE_CACHE", "off")


def plan(text: str, key: str = "update", part: int = 1) -> tuple[object, object]:
    """Everything that was decided about the view: problems, tables with their inputs; and the fingerprints."""
    lines = "".join(f"  {line}\n" for line in text.splitlines())
    program = load_texts({"a.yaml": (TABLES % (part, key, lines)).encode()})
    graph = program.graph() if program.ok else None
    tables = graph.tables if graph is not None else {}
    decided = sorted(p.code for p in program.problems), {n: (t.inputs, t.initial, t.start) for n, t in tables.items()}
    return decided, {name: table.fingerprint for name, table in tables.items()}


def lifted(text: str) -> str | None:
    try:
        return lift(text).text
    except NotLiftable:
        return None


@pytest.fixture(scope="module")
def duck() -> Duck:
    return Duck()


@pytest.mark.parametrize("block", range(4))
def test_comments_and_strings_change_no_update(duck: Duck, block: int) -> None:
    for seed in range(100 + 25 * block, 125 + 25 * block):
        rng = random.Random(seed)
        text, tables = query(seed)
        noisy, strings = with_comments(text, rng), with_comments(with_strings(text, rng), rng)
        planned, together = plan(text), lifted(text)
        assert plan(noisy) == planned, noisy
        assert lifted(noisy) == together, noisy
        assert plan(strings)[0] == planned[0], strings
        assert find(strings).names_part == find(text).names_part
        assert (lifted(strings) is None) == (together is None), strings
        if together is not None and seed % 8 == 0:
            duck.fill(tables)
            names, bags = duck.part_by_part(text)
            assert duck.part_by_part(noisy) == (names, bags), noisy
            assert duck.lifted(lift(strings)) == ([*names, "__j"], bags), strings


def queries(rng: random.Random) -> Iterator[tuple[str, int]]:
    """Text and minutes of a part."""
    window = window_oracle.random_query(rng, rng.sample(window_oracle.ALL, rng.randint(1, 3)))
    yield window.sql(), window.slide
    pattern = pattern_oracle.random_pattern(rng)
    yield pattern.sql(), pattern.ratio


@pytest.mark.parametrize("block", range(4))
def test_comments_and_strings_change_no_query(block: int) -> None:
    for seed in range(6 * block, 6 * block + 6):
        rng = random.Random(seed)
        for text, minutes in queries(rng):
            expected = plan(text, "query", minutes)
            noisy = with_comments(text, rng)
            assert plan(noisy, "query", minutes) == expected, noisy
