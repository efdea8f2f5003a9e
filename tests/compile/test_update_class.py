"""Update classes: of single queries, and against the lifetimes of rows in random histories of random queries."""

from __future__ import annotations

import random
from collections.abc import Hashable
from dataclasses import dataclass, field

import pytest

from partwise.relation.update_class import ORDER, Classified, classify
from partwise.sql.references import analyse

HISTORIES = 400
LENGTH = 16


def class_of(sql: str) -> Classified:
    analysis = analyse(sql)
    found = {t.start: t for t in analysis.found.tables}
    assert analysis.tree is not None

    def leaf(node: object) -> Classified:
        table = found[node.this.meta["start"]]  # type: ignore[attr-defined]
        if table.reference is None:
            return Classified("strict", table.table, "it changes", table.start)
        size = table.reference.hi.plus - table.reference.lo.plus + 1
        if size == 1:
            return Classified("monotonic", table.table, "", table.start)
        return Classified("weakest", table.table, "", table.start, window=size)

    return classify(analysis.tree, leaf)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT k FROM a[j] WHERE x > 1", "monotonic"),
        ("SELECT k, COUNT(*) AS n FROM a[j] GROUP BY k", "monotonic"),
        ("SELECT k FROM a[j] x LEFT ANTI JOIN b[j] y ON x.k = y.k", "monotonic"),
        ("SELECT k FROM a[j-4..j] WHERE x > 1", "weakest"),
        ("SELECT k FROM a[j-4..j] UNION ALL SELECT k FROM b[j-4..j]", "weakest"),
        ("SELECT k FROM a[j-4..j] UNION ALL SELECT k FROM b[j-3..j]", "weak"),  # published as weakest: not sound
        ("SELECT k FROM a[j-4..j] UNION ALL SELECT k FROM b[j]", "weak"),
        ("SELECT a.k FROM a[j-4..j] a JOIN b[j] b ON a.k = b.k", "weak"),  # published as weakest: not sound
        ("SELECT a.k FROM a[j-4..j] a JOIN b[j-4..j] b ON a.k = b.k", "weak"),
        ("SELECT DISTINCT k FROM a[j-4..j]", "weak"),
        ("SELECT k FROM a[j-4..j] INTERSECT SELECT k FROM b[j-4..j]", "weak"),
        ("SELECT k, MAX(x) AS m FROM a[j-4..j] GROUP BY k", "weak"),
        ("SELECT MAX(x) AS m FROM a[j-4..j]", "weak"),
        ("SELECT k FROM a[j-4..j] a WHERE EXISTS (SELECT 1 FROM b[j-4..j] b WHERE a.k = b.k)", "weak"),
        ("SELECT k FROM a[j-4..j] a WHERE x > 1 AND NOT EXISTS (SELECT 1 FROM b[j-4..j] b WHERE a.k = b.k)", "strict"),
        ("SELECT k FROM a[j-4..j] EXCEPT SELECT k FROM b[j]", "strict"),
        ("SELECT a.k FROM a[j-4..j] a LEFT JOIN b[j-4..j] b ON a.k = b.k", "strict"),
        ("SELECT a.k FROM a[j-4..j] a JOIN d ON a.k = d.k", "strict"),
        ("SELECT k FROM (SELECT k FROM a[j-4..j] EXCEPT SELECT k FROM b[j]) x GROUP BY k", "strict"),
        ("SELECT k, COUNT(*) AS n FROM a[j-4..j] GROUP BY k ORDER BY n DESC LIMIT 3", "strict"),
        ("WITH w AS (SELECT k FROM a[j-4..j]) SELECT k FROM w WHERE k > 1", "weakest"),
        ("SELECT k, ROW_NUMBER() OVER (ORDER BY x) AS r FROM a[j-4..j]", "strict"),
    ],
)
def test_class(sql: str, expected: str) -> None:
    assert class_of(sql).name == expected


def test_the_operator_that_is_to_blame() -> None:
    found = class_of("SELECT DISTINCT k FROM (SELECT a.k FROM a[j-4..j] a LEFT JOIN b[j-4..j] b ON a.k = b.k) x")
    assert found.culprit("weak").operator == "LEFT JOIN"
    assert found.culprit("weakest").operator == "LEFT JOIN"
    assert [line.strip().split(":")[0] for line in found.lines()] == ["DISTINCT", "LEFT JOIN", "a", "b"]


# -- lifetimes ----------------------------------------------------------------------------------------

Id = Hashable
#: stream -> part -> keys of its rows
Streams = dict[str, list[list[int]]]


@dataclass
class Node:
    """An operator with what it remembers: which row stands for a key at present."""

    kind: str
    inputs: tuple[Node, ...] = ()
    stream: str = ""
    window: int = 0
    standing: dict[Id, Id] = field(default_factory=dict)

    def sql(self) -> str:
        inner = [f"({node.sql()})" for node in self.inputs]
        if self.kind == "window":
            return f"SELECT k FROM {self.stream}[j-{self.window - 1}..j]"
        if self.kind == "filter":
            return f"SELECT k FROM {inner[0]} x WHERE k < 2"
        if self.kind == "distinct":
            return f"SELECT DISTINCT k FROM {inner[0]} x"
        if self.kind == "union":
            return f"{inner[0]} UNION ALL {inner[1]}"
        if self.kind == "join":
            return f"SELECT x.k FROM {inner[0]} x JOIN {inner[1]} y ON x.k = y.k"
        word = "SEMI" if self.kind == "semi" else "ANTI"
        return f"SELECT x.k FROM {inner[0]} x LEFT {word} JOIN {inner[1]} y ON x.k = y.k"

    def step(self, streams: Streams, j: int) -> dict[Id, int]:
        """Present rows, by identity, with their key."""
        if self.kind == "window":
            parts = range(max(0, j - self.window + 1), j + 1)
            return {(self.stream, p, n): k for p in parts for n, k in enumerate(streams[self.stream][p])}
        sides = [node.step(streams, j) for node in self.inputs]
        if self.kind == "filter":
            return {i: k for i, k in sides[0].items() if k < 2}
        if self.kind == "union":
            return {(at, i): k for at, side in enumerate(sides) for i, k in side.items()}
        if self.kind == "join":
            return {(a, b): k for a, k in sides[0].items() for b, other in sides[1].items() if k == other}
        if self.kind == "anti":
            return {i: k for i, k in sides[0].items() if k not in sides[1].values()}
        if self.kind == "distinct":
            rows = {k: k for k in sides[0].values()}
            return {(k, self._stands(k, k, sides[0])): k for k in rows}
        found = {i: k for i, k in sides[0].items() if k in sides[1].values()}
        return {(i, self._stands(i, k, sides[1])): k for i, k in found.items()}

    def _stands(self, row: Id, key: int, others: dict[Id, int]) -> Id:
        """The partner that keeps a row there: the one it had as long as that stays, then another."""
        if self.standing.get(row) not in others:
            self.standing[row] = max((i for i, k in others.items() if k == key), key=repr)
        return self.standing[row]


def random_tree(rng: random.Random, depth: int) -> Node:
    if depth == 0 or rng.random() < 0.2:
        return Node("window", stream=rng.choice("ab"), window=rng.choice([2, 3, 3, 5]))
    kind = rng.choice(["filter", "distinct", "union", "union", "join", "semi", "anti"])
    count = 1 if kind in ("filter", "distinct") else 2
    return Node(kind, tuple(random_tree(rng, depth - 1) for _ in range(count)))


def fresh(node: Node) -> Node:
    return Node(node.kind, tuple(map(fresh, node.inputs)), node.stream, node.window)


def random_streams(rng: random.Random, before: Streams | None = None, until: int = 0) -> Streams:
    """With the same rows as another history before a part."""
    found: Streams = {}
    for name in "ab":
        rows = [[rng.randrange(3) for _ in range(rng.choice([0, 1, 1, 2]))] for _ in range(LENGTH)]
        found[name] = rows if before is None else [*before[name][:until], *rows[until:]]
    return found


def lifetimes(tree: Node, streams: Streams) -> dict[Id, tuple[int, int]]:
    """When each row came and left, of those that left."""
    node, came, found = fresh(tree), {}, {}
    present: dict[Id, int] = {}
    for j in range(LENGTH):
        now = node.step(streams, j)
        found.update({i: (came.pop(i), j) for i in present if i not in now})
        came.update({i: j for i in now if i not in came})
        present = now
    return found


def is_first_in_first_out(lives: dict[Id, tuple[int, int]]) -> bool:
    ordered = sorted(lives.values())
    latest = 0
    for at, (came, left) in enumerate(ordered):
        latest = max((gone for c, gone in ordered[:at] if c < came), default=latest)
        if left < latest:
            return False
    return True


def test_lifetimes_never_contradict_the_class() -> None:
    rng = random.Random(18)
    out_of_order, decided_later = set(), set()
    for _ in range(HISTORIES):
        tree = random_tree(rng, rng.choice([1, 2, 3]))
        name = class_of(tree.sql()).name
        streams, until = random_streams(rng), LENGTH // 2
        lives, others = lifetimes(tree, streams), lifetimes(tree, random_streams(rng, streams, until))
        if not is_first_in_first_out(lives):
            assert name not in ("monotonic", "weakest"), tree.sql()
            out_of_order.add(tree.kind)
        both = [i for i, (came, _) in lives.items() if came < until and i in others]
        if any(lives[i][1] != others[i][1] for i in both):
            assert name == "strict", tree.sql()
            decided_later.add(tree.kind)
    assert {"join", "union"} <= out_of_order, "the published rules for these would be caught"
    assert "anti" in decided_later


def test_classes_are_ordered() -> None:
    assert ORDER == ("monotonic", "weakest", "weak", "strict")
