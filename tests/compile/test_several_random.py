"""Generated views of queries over several streams against loops over the rows of their windows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from partwise.compile import GeneratedView, InputTable, QueryView, Translation, translate
from partwise.compile.single_pass import FIRST, LAST
from partwise.sql.references import splice
from tests.compile.duck import Duck, catch_up, repair, to_duckdb
from tests.compile.passes import single_pass_text
from tests.compile.several_oracle import FORMS, MEASURE, NODES, PARTS, Draw, Form, History, pairs, top

INPUTS = {
    name: InputTable(
        name, "source", part, {"k": "string", MEASURE[name]: "int", "ts": "bigint", "tie": "bigint"}, "ts", "tie"
    )
    for name, part in PARTS.items()
} | {"nodes": InputTable("nodes", "dimension", None, {"node": "string", "region": "string"})}


def check(form: Form, draw: Draw, strategy: str | None = None, late: int = 2) -> None:
    history = draw.history()
    view = QueryView("v", form.sql, form.view, strategy=strategy, partial=form.partial, output=form.output)  # type: ignore[arg-type]
    duck = Duck(as_it_runs(translate(view, INPUTS)), INPUTS.values())
    try:
        duck.insert("nodes", [{"node": node, "region": region} for node, region in NODES.items()])
        for stream, parts in history.items():
            duck.insert(stream, [{"part": p, **row} for p, rows in parts.items() for row in rows])
        catch_up(duck, {stream: set(parts) for stream, parts in history.items()})
        compare(duck, form, history)
        compare_at_once(duck, form, history)
        for _ in range(late):
            history, stream, part = draw.late(history, [w.stream for w in form.streams])
            duck.con.execute(f"DELETE FROM {stream} WHERE part = {part}")
            duck.insert(stream, [{"part": part, **row} for row in history[stream][part]])
            repair(duck, {(stream, part)})
            compare(duck, form, history)
    finally:
        duck.close()


def as_it_runs(made: Translation) -> Translation:
    """With helpers that are made for several views, where there are such."""
    views = next((way.views for way in made.shared if way.strategy == made.choice.strategy), made.views)
    return replace(made, views=views)


def compare(duck: Duck, form: Form, history: History) -> None:
    assert duck.built["v"] == form.whole(history), form.sql
    for part in duck.built["v"]:
        found = Counter(tuple(row.values()) for row in duck.rows("v", part))
        assert found == form.report(history, part), (form.sql, part)


def compare_at_once(duck: Duck, form: Form, history: History) -> None:
    """What computes many parts in one query gives the rows of each, wherever they begin and end."""
    for helper in duck.views:
        if helper.initialize is not None and helper.single_pass is not None:
            compare_pass(duck, helper)
        elif helper.single_pass is not None:
            compare_many(duck, form, history, helper)


def compare_many(duck: Duck, form: Form, history: History, view: GeneratedView) -> None:
    """Pairs, or the grid of a view: by one join of rows that are near enough."""
    text, parts = view.single_pass, sorted(duck.built[view.name])
    assert text is not None
    first, last = parts[len(parts) // 4], parts[-1 - len(parts) // 4]
    text = splice(text, lambda found: found.table)
    text = text.replace(FIRST, f"CAST({first} AS BIGINT)").replace(LAST, f"CAST({last} AS BIGINT)")
    cursor = duck.con.execute(to_duckdb(text))
    found: Counter[tuple[object, ...]] = Counter(cursor.fetchall())
    wanted: Counter[tuple[object, ...]] = Counter()
    for part in range(first, last + 1):
        rows = form.report(history, part) if view.name == "v" else rows_of(duck, view.name, part)
        wanted += Counter({(*row, part): n for row, n in rows.items()})
    assert found == wanted, form.sql


def rows_of(duck: Duck, name: str, part: int) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in duck.rows(name, part))


def compare_pass(duck: Duck, helper: GeneratedView) -> None:
    """One pass gives what the update gives part after part."""
    parts = sorted(duck.built[helper.name])
    first, last = parts[0] + 1 + len(parts) // 4, parts[-1]
    if first > last:
        return
    text = to_duckdb(single_pass_text(helper, first, last)).replace("UNNEST(GENERATE_SERIES", "UNNEST(GENERATE_SERIES")
    cursor = duck.con.execute(text)
    names = [d[0] for d in cursor.description]
    found = Counter(repr(dict(zip(names, row, strict=True))) for row in cursor.fetchall())
    wanted = Counter(repr({**row, "__j": p}) for p in range(first, last + 1) for row in duck.rows(helper.name, p))
    assert found == wanted, text


@pytest.mark.parametrize("make", FORMS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("seed", range(3))
def test_every_part_equals_the_rows_of_its_windows(make: Callable[[Draw], Form], seed: int) -> None:
    rng = random.Random(f"{make.__name__}{seed}")
    for _ in range(7):
        draw = Draw(rng)
        form = make(draw)
        check(form, draw, rng.choice(form.strategies) if form.output == "snapshot" else None)


@pytest.mark.parametrize("make", [make for make in dict.fromkeys(FORMS) if make is not pairs], ids=lambda m: m.__name__)
def test_windows_that_are_not_complete(make: Callable[[Draw], Form]) -> None:
    rng = random.Random(f"partial {make.__name__}")
    for _ in range(4):
        draw = Draw(rng)
        check(replace(make(draw), partial=True), draw, late=1)


def test_the_largest_groups_by_cells_from_the_first_part_on() -> None:
    """The first part is computed by a statement of its own."""
    rng = random.Random(3)
    for _ in range(6):
        draw = Draw(rng)
        form = top(draw)
        while "cells" not in form.strategies or not form.sql.endswith("LIMIT 1"):
            form = top(draw)
        check(form, draw, "cells", late=0)
