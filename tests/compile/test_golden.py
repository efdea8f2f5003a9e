"""Every stage of the translation as a file to read: tests/golden/patterns.txt and windows.txt.

A case is a query with its settings in the first lines, and what becomes of it: the clauses, the state machine or the
split of each aggregate, the layout, and the SQL. tests/golden/refused_queries.txt has what cannot be translated.
"""

from __future__ import annotations

import re

import pytest

from partwise.compile import InputTable, QueryView, Translation, translate
from partwise.compile.parse import Query, parse
from partwise.compile.pattern.plan import plan_pattern
from partwise.compile.window.plan import plan_window
from partwise.sql import find
from partwise.sql.parse import TranslationError
from tests.golden import Golden

STAGES = [Golden("patterns.txt"), Golden("windows.txt")]
REFUSED = Golden("refused_queries.txt")
TABLES = {
    "measurements": InputTable(
        "measurements", "source", 60,
        {"event_time": "timestamp", "seq": "bigint", "src": "string", "dest": "string", "loss": "double", "hops": "int",
         "cost": "decimal(10,2)", "bytes": "bigint"},
        "event_time", "seq",
    ),
    "untied": InputTable("untied", "source", 60, {"event_time": "timestamp", "src": "string", "loss": "double"}, "event_time"),
    "hourly": InputTable("hourly", "view", 3600, {"src": None, "total": None}),
    "nodes": InputTable("nodes", "dimension", None, {"node": "string", "region": "string"}),
}  # fmt: skip


def settings_of(text: str) -> QueryView:
    """`-- part: 60`, `-- gaps: carry` and the like in front of a query."""
    found = dict(re.findall(r"^-- (part|gaps|strategy|partial): *(\S+)", text, re.MULTILINE))
    return QueryView(
        "v", text, int(found.get("part", 60)), gaps=found.get("gaps", "break"), strategy=found.get("strategy"),
        partial=found.get("partial") == "true",
    )  # type: ignore[arg-type]  # fmt: skip


def described(view: QueryView) -> str:
    query = parse(view.query)
    stages = [("clauses", _clauses(query)), *_plan(view, query)]
    translation = translate(view, TABLES)
    stages += [("choice", f"{translation.choice.strategy}: {translation.choice.why}")]
    stages += [("notes", "\n".join(translation.notes)), ("warnings", "\n".join(translation.warnings))]
    stages += _sql(translation)
    return "\n\n".join(f"== {title}\n{text}" for title, text in stages if text) + "\n"


def _clauses(query: Query) -> str:
    lines = [f"select {item.body.text} as {item.alias}" for item in query.items]
    lines += [f"from {query.table} as {query.alias}"]
    lines += [f"joins {query.joins.text}"] if query.joins else []
    lines += [f"pattern {' '.join(v.name + '+' * v.plus for v in query.pattern)}"] if query.pattern else []
    lines += [f"window {query.window.length} s, slide {query.window.slide} s"] if query.window else []
    lines += [f"condition {piece.text}" for piece in (query.where.conjuncts() if query.where else [])]
    lines += [f"group by {piece.text}" for piece in query.group_by]
    lines += [f"having {query.having.text}"] if query.having else []
    return "\n".join([*lines, *(f"order by {piece.text}" for piece in query.order_by)])


def _plan(view: QueryView, query: Query) -> list[tuple[str, str]]:
    table = TABLES[query.table]
    if query.pattern is not None:
        plan = plan_pattern(view, query, table)
        names = [v.name for v in plan.machine.variables]
        registers = [f"{'/'.join(names[s] for s in r.states)}: {r.key}" for r in plan.shape.registers]
        return [("machine", plan.machine.describe()), ("registers", "\n".join(registers))]
    window = plan_window(view, query, table, TABLES)
    lines = []
    for call in window.selection.all_calls():
        split = window.split_of(call)
        how = "exact" if split.exact else "mergeable" if split.mergeable else f"recompute only: {split.why}"
        cells = [cell.rows for cell in split.cells] + ([f"counts of {split.values.value}"] if split.values else [])
        lines.append(f"{call.name} ({how}): {'; '.join(cells)} -> {split.final if split.cells else split.direct}")
    return [("aggregates", "\n".join(lines))]


def _sql(translation: Translation) -> list[tuple[str, str]]:
    stages = []
    for made in translation.views:
        about = f"{made.part} s" + (f", optional {', '.join(made.optional)}" if made.optional else "")
        for kind in ("initialize", "update", "fast_update", "unique_update", "single_pass"):
            text = getattr(made, kind)
            if text is not None:
                assert not find(text, "i" if kind == "initialize" else "j").problems
                stages.append((f"{made.name} {kind} ({about})", text))
    return stages


def complaint(view: QueryView) -> str:
    try:
        translate(view, TABLES)
    except TranslationError as error:
        return "".join(_pointed(view.query, p.start, f"{p.code}: {p.message}", p.hint) for p in error.problems)
    raise AssertionError(f"this should not be translated: {view.query}")


def _pointed(text: str, offset: int, message: str, hint: str) -> str:
    line = text.count("\n", 0, offset)
    column = offset - (text.rfind("\n", 0, offset) + 1)
    return f"{text.splitlines()[line]}\n{' ' * column}^ {message}\n" + (f"  hint: {hint}\n" if hint else "")


@pytest.mark.parametrize("golden, name", [(golden, name) for golden in STAGES for name in golden.cases])
def test_stages(golden: Golden, name: str) -> None:
    golden.check(name, described(settings_of(golden.cases[name])))


@pytest.mark.parametrize("name", REFUSED.cases)
def test_errors(name: str) -> None:
    REFUSED.check(name, complaint(settings_of(REFUSED.cases[name])))
