"""Definitions to DAG files: one small stub per table, so that each has its own version and its own import error."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from pprint import pformat
from typing import Any

from partwise.choose.settled import settled
from partwise.compile.load import load
from partwise.compile.program import Program, Runnable
from partwise.definitions import Dimension, Problem, Source, View
from partwise.definitions.yaml.text import document_at
from partwise.parts import duration_text
from partwise.plan.urgency import USUAL
from partwise.tables import Graph, Input
from partwise.workspace import Workspace
from partwise_airflow.specs import SourceSpec, TableSpec, ViewSpec

#: Seconds between looks for new data, unless the definition says otherwise.
POLL = 30

_HEAD = '"""Airflow DAG of {what}. Made by Partwise from {file}; changes here are lost."""\n\n'

_VIEW = """from partwise_airflow.dags import view_dag
from spark_jobs.airflow import company, submit, tasks

dag = view_dag(
    {spec},
    run=tasks.run_table,
    done=company.already_done,
    submit=submit,
)
"""

_SOURCE = """from partwise_airflow.dags import source_dag
from spark_jobs.airflow import tasks

dag = source_dag(
    {spec},
    run=tasks.load_source,
    look=tasks.anything_new,
)
"""

_UPKEEP = """from partwise_airflow.service.{module} import {name}
from spark_jobs.airflow import submit, tasks

dag = {name}({spec}, run=tasks, submit=submit)
"""

_BROKEN = """from partwise_airflow.dags import BadDefinition

# There is no dag here until this is repaired.
raise BadDefinition({text})
"""


def render(workspace: Workspace) -> dict[str, str]:
    """File names with their contents. Never raises for what stands in a definition; LedgerProblem, though."""
    definitions = _definitions(workspace)
    urgent = {"deadlines": True} if definitions.graph().allowed else {}
    graph, where = definitions.graph(), str(workspace.folder.absolute())
    texts = _texts(definitions)
    found: dict[str, str] = {}
    for name, table in definitions.tables.items():
        file = _relative(table.place.file, workspace)
        if name not in definitions.usable:
            continue
        written = _written(file, document_at(texts.get(table.place.file, ""), table.place.line))
        if isinstance(table, View):
            spec = _view(where, definitions, graph, table, written, _engine(workspace, table))
            found[f"{name}.py"] = _stub(f"view {name}", file, _VIEW, spec)
        else:
            kind = "source" if isinstance(table, Source) else "dimension"
            found[f"{name}.py"] = _stub(
                f"{kind} {name}", file, _SOURCE, _source(where, kind, table, written, bool(urgent))
            )
    found |= dict(_broken(workspace, definitions))
    depth = _depth(graph)
    tables = [name for name in graph.order if graph[name].helper_of is None and graph[name].kind == "view"]
    views = [table for table in definitions.usable.values() if isinstance(table, Runnable)]
    submitted = sorted(view.name for view in views if _engine(workspace, view.written) == "submit")
    limits = {view.name: view.written.timeout for view in views if view.written.timeout}
    backfill = {"workspace": where, "depth": depth, "tables": tables, "submit": submitted, "timeouts": limits}
    for module, name, own in (
        ("reconcile", "reconcile_dag", {"workspace": where, **urgent}),
        ("backfill", "backfill_dag", {**backfill, **urgent}),
        ("upkeep", "upkeep_dag", {"workspace": where}),
    ):
        text = _UPKEEP.format(module=module, name=name, spec=_literal(own))
        found[f"partwise_{module}.py"] = _HEAD.format(what=module, file="the workspace") + text
    return found


def _engine(workspace: Workspace, view: View) -> str:
    return view.engine or workspace.settings.spark.engine or "connect"


def _definitions(workspace: Workspace) -> Program:
    """As they run here. A new workspace has no ledger yet: the first task makes it."""
    written = load(workspace.definitions_folder.absolute())
    if not workspace.has_ledger():
        return written
    ledger = workspace.open_ledger(time.time())
    try:
        return settled(written, ledger.strategies())
    finally:
        ledger.database.close()


def _stub(what: str, file: str, text: str, spec: ViewSpec | SourceSpec) -> str:
    return _HEAD.format(what=what, file=file) + text.format(spec=_literal(spec.to_json()))


def _literal(raw: Mapping[str, Any]) -> str:
    """Python text for plain data, the same for the same data."""
    plain = json.loads(json.dumps(raw))
    return pformat(plain, width=110, sort_dicts=False).replace("\n", "\n    ")


def _texts(definitions: Program) -> dict[str, str]:
    """The files as they are written, for people."""
    found = {}
    for file in {table.place.file for table in definitions.usable.values()}:
        try:
            found[file] = Path(file).read_text(encoding="utf-8-sig", errors="replace")
        except OSError:
            pass  # it has just gone: the next look finds no table in it either
    return found


def _written(file: str, text: str) -> str:
    """Whatever is changed in a definition changes this, and with it the version of its DAG."""
    return f"Defined in `{file}`:\n\n{_code(text, 'yaml')}"


def _view(where: str, definitions: Program, graph: Graph, view: View, written: str, engine: str) -> ViewSpec:
    # What reads the view itself comes after it.
    order = [name for name in graph.order if view.name in graph[name].for_views]
    helpers = [name for name in order if name != view.name]
    tables = tuple(TableSpec(name, graph[name].length) for name in order)
    return ViewSpec(
        name=view.name,
        tables=tables,
        workspace=where,
        description=view.description or f"View {view.name}",
        docs=_view_docs(definitions, graph, view, helpers, written),
        owner=view.owner or "partwise",
        tags=view.tags,
        engine=engine,
        timeout=view.timeout,
        freshness=graph.allowed.get(view.name, USUAL) if graph.allowed else None,
    )


def _view_docs(definitions: Program, graph: Graph, view: View, helpers: list[str], written: str) -> str:
    told = [f"### {view.name}", view.description or "", _parts_of(view), written]
    for name in (*helpers, view.name):
        table = definitions.usable[name]
        assert isinstance(table, Runnable)
        what = "helper, generated" if name in helpers else "view"
        told.append(f"#### {name} ({what})")
        told.append(f"Requires: {', '.join(_general(item) for item in graph[name].inputs) or 'nothing'}")
        told.append(_counting(graph, name))
        if view.query is None:
            continue  # nothing is generated: what runs stands in the definition
        if table.initialize is not None:
            told += ["For the first part:", _code(table.initialize.text)]
        told += ["For part j:", _code(table.update.text)]
    told.append(f"`partwise explain {view.name}` shows more, `partwise status {view.name}` shows its parts.")
    return "\n\n".join(text for text in told if text)


def _parts_of(view: View) -> str:
    length = duration_text(view.part)
    if view.output == "rolling":
        return f"One table without parts: what its windows give now, moved on every {length}."
    return f"Parts of {length}."


def _code(text: str, language: str = "sql") -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def _counting(graph: Graph, name: str) -> str:
    """Which version of a dimension counts, where that is not the newest one for every part."""
    read = [n for n in graph[name].input_names if n in graph.forward]
    if not read:
        return ""
    what = " and ".join(f"`{n}`" for n in read)
    return (
        f"Of {what} each part reads the version that was current when the last of its source parts came to exist. "
        "The note and the log of a run name it, and so does `partwise why`."
    )


def _general(item: Input) -> str:
    return f"`{item.table}` (all of it)" if item.reference is None else f"`{item.table}{item.reference.text()}`"


def _source(where: str, kind: str, table: Source | Dimension, written: str, urgent: bool) -> SourceSpec:
    origin = ", ".join(f"`{pattern}`" for pattern in table.files) or f"the Delta table `{table.delta}`"
    told = [f"### {table.name}", table.description or "", f"Loaded from {origin}."]
    if isinstance(table, Source):
        told.append(f"Parts of {duration_text(table.part)}, by `{table.time.column}`.")
    told += [written, f"`partwise status {table.name}` shows its state."]
    return SourceSpec(
        name=table.name,
        kind=kind,
        workspace=where,
        description=table.description or f"{kind.capitalize()} {table.name}",
        docs="\n\n".join(text for text in told if text),
        owner=table.owner or "partwise",
        tags=table.tags,
        poll=POLL if table.poll is None else table.poll or None,
        deadlines=urgent or None,
    )


def _broken(workspace: Workspace, definitions: Program) -> Iterator[tuple[str, str]]:
    """A stub that fails for every file with errors, and for every table that reads one which cannot be used."""
    files: dict[str, list[Problem]] = {}
    for problem in definitions.problems:
        if problem.severity == "error":
            files.setdefault(problem.file, []).append(problem)
    names = Counter(_file_name(_relative(file, workspace)) for file in files)
    for file, problems in files.items():
        shown = _relative(file, workspace)
        name = _file_name(shown)
        if names[name] > 1:  # x-y.yaml and x_y.yaml: each has an import error of its own
            name = f"{name}_{hashlib.sha256(shown.encode()).hexdigest()[:8]}"
        yield f"{name}.py", _failing(shown, shown, [_problem(p, workspace) for p in problems])
    named = {problem.table.lower() for found in files.values() for problem in found if problem.table}
    for name, table in definitions.tables.items():
        if name not in definitions.usable and name.lower() not in named:
            shown = _relative(table.place.file, workspace)
            yield (
                f"{name}.py",
                _failing(
                    name, shown, [f"{name} reads a table whose definition has problems; see `partwise validate`."]
                ),
            )


def _failing(what: str, file: str, lines: list[str]) -> str:
    return _HEAD.format(what=what, file=file) + _BROKEN.format(text=repr("\n".join(["", *lines])))


def _problem(problem: Problem, workspace: Workspace) -> str:
    text = f"{_relative(problem.file, workspace)}:{problem.line}:{problem.column}: {problem.code}: {problem.message}"
    return f"{text}\n    {problem.hint}" if problem.hint else text


def _relative(file: str, workspace: Workspace) -> str:
    try:
        return str(Path(file).relative_to(workspace.folder.absolute()))
    except ValueError:
        return file


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_") + "_problems"


def _depth(graph: Graph) -> int:
    """Tables on the longest way from a source to a view: so many waves a backfill may take."""
    deep: dict[str, int] = {}
    for name in graph.order:
        above = [deep[other] for other in graph[name].input_names if other in deep]
        deep[name] = (max(above, default=0) + 1) if graph[name].kind == "view" else 0
    return max(deep.values(), default=0)
