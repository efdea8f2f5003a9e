"""Differences of two states of a Delta table, from the actions between them, against the states themselves."""

from __future__ import annotations

import random
from typing import Any

from partwise.sources.foreign import difference, only_moved


def add(path: str, vector: str | None = None, change: bool = True) -> dict[str, Any]:
    found: dict[str, Any] = {"path": path, "dataChange": change, "partitionValues": {}}
    if vector:
        found["deletionVector"] = {"storageType": "u", "pathOrInlineDv": vector, "offset": 1}
    return {"add": found}


def remove(path: str, vector: str | None = None) -> dict[str, Any]:
    return {"remove": add(path, vector)["add"]}


def test_random_histories_equal_the_difference_of_states() -> None:
    rng = random.Random(5)
    for _ in range(300):
        live = {(f"f{i}", None) for i in range(3)}
        before, commits, number = set(live), [], 3
        for _ in range(rng.randint(1, 6)):
            actions: list[dict[str, Any]] = []
            for path, vector in rng.sample(sorted(live, key=repr), k=min(len(live), rng.randint(0, 2))):
                actions.append(remove(path, vector))
                live.discard((path, vector))
                if rng.random() < 0.5:  # the same file with another deletion vector
                    actions.append(add(path, f"v{number}"))
                    live.add((path, f"v{number}"))
                    number += 1
            back = sorted(before - live, key=repr)
            if back and rng.random() < 0.3:  # RESTORE
                actions.append(add(*back[0]))
                live.add(back[0])
            if rng.random() < 0.5:
                actions.append(add(f"f{number}"))
                live.add((f"f{number}", None))
                number += 1
            rng.shuffle(actions)
            commits.append([{"commitInfo": {}}, *actions])
        found = difference(commits)
        assert {f.path for f in found.added} == {path for path, _ in live - before}
        assert len(found.added) == len(live - before)
        assert {f.path for f in found.removed} == {path for path, _ in before - live}
        assert len(found.removed) == len(before - live)


def test_paths_are_decoded_and_moving_rows_is_no_change() -> None:
    assert difference([[add("a%20b")]]).added[0].path == "a b"
    moved = [[add("b", change=False), {"remove": {"path": "a", "dataChange": False}}]]
    assert only_moved(moved)
    assert not only_moved([*moved, [add("c")]])
    assert not difference([])
