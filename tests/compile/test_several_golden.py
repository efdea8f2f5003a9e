"""Every form of query over several streams as it is translated, and every refusal with its place."""

from __future__ import annotations

import os
import re
from pathlib import Path

from partwise.compile import InputTable, QueryView, translate
from partwise.sql import find
from tests.compile.test_golden import TABLES as OTHERS
from tests.compile.test_golden import _pointed

FOLDER = Path(__file__).parents[1] / "golden" / "several"
TABLES = OTHERS | {
    "alarms": InputTable(
        "alarms", "source", 60, {"event_time": "timestamp", "src": "string", "level": "string"}, "event_time"
    ),
    "pings": InputTable("pings", "source", 30, {"event_time": "timestamp", "src": "string", "ms": "int"}, "event_time"),
}


def settings(text: str) -> QueryView:
    found = dict(re.findall(r"^-- (part|strategy|output|partial): *(\S+)", text, re.MULTILINE))
    query = "\n".join(line for line in text.split("\n") if not line.startswith("-- "))
    return QueryView(
        "v",
        query,
        int(found.get("part", 60)),
        strategy=found.get("strategy"),  # type: ignore[arg-type]
        partial="partial" in found,
        output=found.get("output", "snapshot"),  # type: ignore[arg-type]
    )


def cases(name: str) -> list[str]:
    return [case.strip() for case in (FOLDER / f"{name}.sql").read_text().split("\n;\n")]


def compare(name: str, found: str) -> None:
    path = FOLDER / f"{name}.txt"
    if os.environ.get("PARTWISE_WRITE_GOLDEN"):
        path.write_text(found)
    assert found == path.read_text()


def test_forms() -> None:
    blocks = []
    for case in cases("forms"):
        made = translate(settings(case), TABLES)
        lines = [
            f"==== {case.splitlines()[0].removeprefix('-- title: ')}",
            f"{made.choice.strategy}: {made.choice.why}",
        ]
        lines += [f"types: {', '.join(f'{name} {kind}' for name, kind in made.types)}"] if made.types else []
        for view in made.views:
            optional = f", optional {', '.join(view.optional)}" if view.optional else ""
            for kind in ("initialize", "update", "single_pass"):
                if (text := getattr(view, kind)) is not None:
                    assert not find(text, "i" if kind == "initialize" else "j").problems
                    lines += [f"-- {view.name} {kind} ({view.part} s{optional})", text]
        blocks.append("\n".join(lines))
    compare("forms", "\n\n".join(blocks) + "\n")


def test_errors() -> None:
    from partwise.sql.parse import TranslationError

    blocks = []
    for case in cases("errors"):
        view = settings(case)
        try:
            translate(view, TABLES)
        except TranslationError as error:
            said = "".join(_pointed(view.query, p.start, f"{p.code}: {p.message}", p.hint) for p in error.problems)
            blocks.append(said)
        else:
            raise AssertionError(f"this should not be translated: {case}")
    compare("errors", "\n".join(blocks))
