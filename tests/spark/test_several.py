"""Several streams end to end on Spark and Delta, against loops over the rows of their windows; `verify` agrees."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.verify.verify import verify
from tests.compile import several_oracle as oracle
from tests.compile.several_oracle import MEASURE, NODES, PARTS, Draw, Form, History

from .workspace import Workspace

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("several")]

SOURCES = "".join(
    f"""source: {name}
part: {part} seconds
time: {{column: ts, unit: seconds, tie: tie}}
columns: {{k: string, {MEASURE[name]}: int, ts: bigint, tie: bigint}}
files: {name}/*.csv
---
"""
    for name, part in PARTS.items()
)
NODE = "dimension: nodes\ncolumns: {node: string, region: string}\nfiles: nodes.csv\n"
#: Each form of query once, inner joins and pairs twice.
MAKERS: tuple[Callable[[Draw], Form], ...] = tuple(dict.fromkeys(oracle.FORMS))

#: Views of which rows and groups, or joined rows, are counted before their first part.
COUNTED = "counted_"
#: Those that can be kept in several ways, and some others, once more in another way.
AGAIN = "again_"
KEPT = (oracle.inner, oracle.inner, oracle.band, oracle.grouped, oracle.grouped, oracle.sets, oracle.top)
#: Views that show windows which are not complete.
PARTIAL = "partial_"
EARLY = (oracle.inner, oracle.sets, oracle.frequent, oracle.last_rows)
#: Views that hold what their windows give now.
ROLLING = "rolling_"


def there(name: str, form: Form, history: History) -> set[int]:
    whole = form.whole(history)
    return {max(whole)} if name.startswith(ROLLING) else whole


def document(name: str, form: Form) -> str:
    if name.startswith(ROLLING):
        return f"---\nview: {name}\npart: {form.view} seconds\noutput: rolling\nquery: |\n  {form.sql}\n"
    way = form.strategies[len(form.strategies) // 2 if name.startswith(AGAIN) else -1]
    way = "" if form.partial else f"strategy: {way}\n"
    strategy = way if form.output == "snapshot" else "output: pairs\n"
    strategy = "" if name.startswith(COUNTED) else strategy
    strategy += "partial: true\n" if form.partial else ""
    return f"---\nview: {name}\npart: {form.view} seconds\n{strategy}query: |\n  {form.sql}\n"


def compare(workspace: Workspace, forms: dict[str, Form], history: History) -> None:
    for name, form in forms.items():
        found = workspace.rows(name)
        assert set(found) == there(name, form, history), form.sql
        for part, rows in found.items():
            assert Counter(tuple(row.values()) for row in rows) == form.report(history, part), (form.sql, part)


def test_every_form(spark: SparkSession, tmp_path: Path) -> None:
    draw = Draw(random.Random(7))
    forms = {f"v{at}_{make.__name__}": make(draw) for at, make in enumerate((*MAKERS, oracle.pairs))}
    forms |= {f"{AGAIN}{at}": make(draw) for at, make in enumerate(KEPT)}
    forms |= {f"{ROLLING}{make.__name__}": make(draw) for make in MAKERS if make is not oracle.pairs}
    forms |= {f"{PARTIAL}{make.__name__}": replace(make(draw), partial=True) for make in EARLY}
    kept_so = {"last": oracle.distinct, "cells": oracle.grouped}
    for way, make in kept_so.items():
        forms[COUNTED + way] = next(form for form in iter(partial(make, draw), None) if way in form.strategies)
    views = "".join(document(name, form) for name, form in forms.items())
    workspace = Workspace(spark, tmp_path, SOURCES + NODE + views)
    workspace.dimension("nodes", [{"node": node, "region": region} for node, region in NODES.items()])
    history = draw.history()
    for stream, parts in history.items():
        workspace.replace(stream, parts)
    workspace.run()
    compare(workspace, forms, history)
    settled = workspace.ledger.strategies()
    assert all(settled[COUNTED + way].groups is not None for way in kept_so)
    for _ in range(3):
        history, stream, part = draw.late(history)
        workspace.replace(stream, {part: history[stream][part]})
    workspace.run()
    compare(workspace, forms, history)
    checked = verify(workspace.engine)
    assert checked.different == ()
    assert checked.checked == sum(len(there(name, form, history)) for name, form in forms.items())
    assert len(forms) > 30


def test_the_largest_sums_of_fractions(spark: SparkSession, tmp_path: Path) -> None:
    """Sums of bigint are made exact when they are checked, and those of other types are left alone."""
    query = "SELECT k, SUM(x) AS s, SUM(n) AS t FROM f [WINDOW 120 seconds] GROUP BY k ORDER BY s DESC LIMIT 1"
    columns = "{k: string, x: double, n: bigint, ts: bigint}"
    source = f"source: f\npart: 60 seconds\ntime: {{column: ts, unit: seconds}}\ncolumns: {columns}\nfiles: f/*.csv\n"
    workspace = Workspace(spark, tmp_path, f"{source}---\nview: v\npart: 60 seconds\nquery: |\n  {query}\n")
    fractions = {"a": 0.25, "b": 0.375}
    workspace.replace(
        "f", {p: [{"k": k, "x": x, "n": p, "ts": p * 60} for k, x in fractions.items()] for p in range(3)}
    )
    workspace.run()
    assert workspace.rows("v") == {1: [{"k": "b", "s": 0.75, "t": 1}], 2: [{"k": "b", "s": 0.75, "t": 3}]}
    assert verify(workspace.engine).different == ()
