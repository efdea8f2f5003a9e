"""Generated views of queries over several streams against loops over the rows of their windows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from partwise.compile import InputTable, QueryView, translate
from tests.compile.duck import Duck, catch_up, repair
from tests.compile.several_oracle import FORMS, MEASURE, NODES, PARTS, Draw, Form, History

INPUTS = {
    name: InputTable(
        name, "source", part, {"k": "string", MEASURE[name]: "int", "ts": "bigint", "tie": "bigint"}, "ts", "tie"
    )
    for name, part in PARTS.items()
} | {"nodes": InputTable("nodes", "dimension", None, {"node": "string", "region": "string"})}


def check(form: Form, draw: Draw, strategy: str | None = None, late: int = 2) -> None:
    history = draw.history()
    view = QueryView("v", form.sql, form.view, strategy=strategy, output=form.output)  # type: ignore[arg-type]
    duck = Duck(translate(view, INPUTS), INPUTS.values())
    try:
        duck.insert("nodes", [{"node": node, "region": region} for node, region in NODES.items()])
        for stream, parts in history.items():
            duck.insert(stream, [{"part": p, **row} for p, rows in parts.items() for row in rows])
        catch_up(duck, {stream: set(parts) for stream, parts in history.items()})
        compare(duck, form, history)
        for _ in range(late):
            history, stream, part = draw.late(history)
            duck.con.execute(f"DELETE FROM {stream} WHERE part = {part}")
            duck.insert(stream, [{"part": part, **row} for row in history[stream][part]])
            repair(duck, {(stream, part)})
            compare(duck, form, history)
    finally:
        duck.close()


def compare(duck: Duck, form: Form, history: History) -> None:
    assert duck.built["v"] == form.whole(history), form.sql
    for part in duck.built["v"]:
        found = Counter(tuple(row.values()) for row in duck.rows("v", part))
        assert found == form.report(history, part), (form.sql, part)


@pytest.mark.parametrize("make", FORMS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("seed", range(3))
def test_every_part_equals_the_rows_of_its_windows(make: Callable[[Draw], Form], seed: int) -> None:
    rng = random.Random(f"{make.__name__}{seed}")
    for _ in range(10):
        draw = Draw(rng)
        check(make(draw), draw)
