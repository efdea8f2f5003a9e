"""The program: what authors wrote stays as they wrote it, and what runs means the same from release to release."""

from __future__ import annotations

import pickle
from dataclasses import fields
from pathlib import Path

import pytest

from partwise.compile import Choice
from partwise.compile.load import load, load_texts
from partwise.compile.model import Strategy
from partwise.compile.program import Program, Runnable
from partwise.definitions import View

EXAMPLE = Path(__file__).parents[2] / "view_defs"
SOURCE = """\
source: m
part: 1 minute
time: {column: t, tie: n}
columns: {t: timestamp, n: bigint, g: string, x: bigint, y: double}
files: a.csv
---
"""
WINDOW = """\
view: w
part: 1 minute
engine: submit
keep: 30 days
repair: manual
query: |
  SELECT g, SUM(x) AS a FROM m [WINDOW 10 minutes] GROUP BY g
checks:
  - expect_column_values_to_not_be_null: {column: g}
"""
#: As the first released ledgers have them. A fingerprint that changes makes every part of its table stale in every
#: workspace: only a definition that means something else may do that.
EXAMPLE_MARKS = {
    "high_loss": "e00ad7b10e08ebcd8b2b2c3ed7f8218b",
    "high_loss__helper": "e91b5d46c5a0dafac8e448dd4cd235c4",
    "high_loss_by_hand": "e4b095d3fd655707afe8f793686396b2",
    "loss_both_ways": "72bfee98bf8fdff559e8eec20d7728f3",
    "loss_by_region": "a645bfa0ee0e837e70fbecbf286fd606",
    "loss_runs": "7235639b5cb69875a7efc6981b630a98",
    "measurements": "d36d8af758fa1ae8c2e23a65fcb053af",
    "nodes": "a1f4f080d56b972fad0036b6fe0687c3",
    "total_loss": "51fc2e8cd311e593d2994cd194594fe0",
    "worst_ten_minutes": "6dbbdfc617e759fbc8d5e59823cffd25",
    "worst_ten_minutes__panes": "ae1a8181e316c8eda09d3dc83d5d5327",
}
WINDOW_MARKS = {
    "recompute": {
        "w": "456faaa63b6922fa1149958df6b3dab2",
    },
    "merge": {
        "w": "6f395cabdf3e5225fdc5976130487468",
        "w__panes": "dec363169dd0728747a6ba50bc1d9294",
    },
    "subtract": {
        "w": "dec6a19c45a122af23eafe7c627a7c38",
        "w__panes": "51eb16d3cfb4b16f35433f22fdf80b85",
        "w__rolling": "fdf56ff64fff1e8f94dd691e1e29ba29",
    },
}


def read(text: str) -> Program:
    return load_texts({"a.yaml": text.encode()})


def marks(program: Program) -> dict[str, str]:
    return {name: table.fingerprint for name, table in program.graph().tables.items()}


def test_the_fingerprints_of_the_example_stay() -> None:
    program = load(EXAMPLE)
    found = marks(program.with_own(program.views))
    assert {name: found.get(name) for name in EXAMPLE_MARKS} == EXAMPLE_MARKS


@pytest.mark.parametrize("strategy", sorted(WINDOW_MARKS))
def test_the_fingerprints_of_every_alternative_stay(strategy: Strategy) -> None:
    program = read(SOURCE + WINDOW).choosing({"w": Choice(strategy, "")}).with_own(["w"])
    found = marks(program)
    found.pop("m")
    assert found == WINDOW_MARKS[strategy]
    assert program.views["w"].mark == WINDOW_MARKS["recompute"]["w"], "what the query means, however it is kept"


def test_choosing_leaves_what_was_written() -> None:
    before = read(SOURCE + WINDOW)
    after = before.choosing({"w": Choice("subtract", "")})
    assert after.written is before.written
    assert after.views is before.views
    assert after.helpers != before.helpers


def test_what_is_written_holds_nothing_generated() -> None:
    """A field of the author's view is a key of its YAML (and its place).

    `repair` says when and by what; `state` what is kept, or what may be.
    """
    from partwise.definitions.yaml.model import ViewDocument

    keys = set(ViewDocument.model_fields) - {"view"}
    assert {f.name for f in fields(View)} == keys | {"name", "place", "repair_by", "may_keep"}


def test_a_helper_runs_as_its_view_without_checks_and_retention() -> None:
    program = read(SOURCE + WINDOW).with_own(["w"])
    view, helper = program.usable["w"], program.usable["w__panes"]
    assert isinstance(view, Runnable)
    assert isinstance(helper, Runnable)
    assert helper.written is view.written is program.tables["w"]
    assert (view.helper_of, helper.helper_of) == (None, "w")
    assert (len(view.checks), view.keep) == (1, 30 * 86400)
    assert (helper.checks, helper.keep) == ((), None)
    assert program.graph()["w__panes"].repair == "manual"


def test_nothing_is_packed_into_bytes() -> None:
    """What is compiled is plain data; it is for the cache to remember it quickly."""
    seen: set[int] = set()

    def look(value: object) -> None:
        if id(value) in seen:
            return
        seen.add(id(value))
        assert not isinstance(value, bytes)
        names = getattr(type(value), "__dataclass_fields__", {})
        inner = [getattr(value, name) for name in names]
        inner += list(value.values()) if isinstance(value, dict) else []
        inner += list(value) if isinstance(value, tuple | list | frozenset) else []
        for item in inner:
            look(item)

    program = read(SOURCE + WINDOW)
    look(program)
    assert pickle.loads(pickle.dumps(program)) == program
