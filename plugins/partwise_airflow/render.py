"""Definitions to DAG files: one small stub per table, so that each has its own version and its own import error."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from pprint import pformat
from typing import Any

from partwise.definitions import Definitions, Dimension, Problem, Source, View, load
from partwise.parts import duration_text
from partwise.settled import settled
from partwise.tables import Graph, Input
from partwise.workspace import Workspace
from partwise_airflow.specs import SourceSpec, TableSpec, ViewSpec

#: Seconds between looks for new data, unless the definition says otherwise.
POLL = 30

_HEAD = '"""Airflow DAG of {what}. Made by Partwise from {file}; changes here are lost."""\n\n'

_VIEW = """from partwise_airflow.dags import view_dag
from spark_jobs import airflow_step, airflow_submit

dag = view_dag(
    {spec},
    run=airflow_step.run_table,
    submit=airflow_submit,
)
"""

_SOURCE = """from partwise_airflow.dags import source_dag
from spark_jobs import airflow_step

dag = source_dag(
    {spec},
    run=airflow_step.load_source,
    look=airflow_step.anything_new,
)
"""

_UPKEEP = """from partwise_airflow.{module} import {name}
from spark_jobs import airflow_step, airflow_submit

dag = {name}({spec}, run=airflow_step, submit=airflow_submit)
"""

_BROKEN = """from partwise_airflow.dags import BadDefinition

# There is no dag here until this is repaired.
raise BadDefinition({text})
"""


def render(workspace: Workspace) -> dict[str, str]:
    """File names with their contents. Never raises for what stands in a definition; LedgerProblem, though."""
    definitions = _definitions(workspace)
    graph, where = definitions.graph(), str(workspace.folder.absolute())
    found: dict[str, str] = {}
    for name, table in definitions.tables.items():
        file = _relative(table.place.file, workspace)
        if name not in definitions.usable:
            continue
        if isinstance(table, View):
            spec = _view(where, definitions, graph, table, _engine(workspace, table))
            found[f"{name}.py"] = _stub(f"view {name}", file, _VIEW, spec)
        else:
            kind = "source" if isinstance(table, Source) else "dimension"
            found[f"{name}.py"] = _stub(f"{kind} {name}", file, _SOURCE, _source(where, kind, table))
    found |= dict(_broken(workspace, definitions))
    depth = _depth(graph)
    tables = [name for name in graph.order if graph[name].helper_of is None and graph[name].kind == "view"]
    views = [table for table in definitions.usable.values() if isinstance(table, View)]
    submitted = sorted(view.name for view in views if _engine(workspace, view) == "submit")
    limits = {view.name: view.timeout for view in views if view.timeout}
    backfill = {"workspace": where, "depth": depth, "tables": tables, "submit": submitted, "timeouts": limits}
    for module, name, own in (
        ("reconcile", "reconcile_dag", {"workspace": where}),
        ("backfill", "backfill_dag", backfill),
        ("upkeep", "upkeep_dag", {"workspace": where}),
    ):
        text = _UPKEEP.format(module=module, name=name, spec=_literal(own))
        found[f"partwise_{module}.py"] = _HEAD.format(what=module, file="the workspace") + text
    return found


def _engine(workspace: Workspace, view: View) -> str:
    return view.engine or workspace.settings.spark.engine or "connect"


def _definitions(workspace: Workspace) -> Definitions:
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


def _view(where: str, definitions: Definitions, graph: Graph, view: View, engine: str) -> ViewSpec:
    helpers = [name for name in graph.order if graph[name].helper_of == view.name]
    tables = tuple(TableSpec(name, graph[name].length) for name in (*helpers, view.name))
    return ViewSpec(
        name=view.name,
        tables=tables,
        workspace=where,
        description=view.description or f"View {view.name}",
        docs=_view_docs(definitions, graph, view, helpers),
        owner=view.owner or "partwise",
        tags=view.tags,
        engine=engine,
        timeout=view.timeout,
    )


def _view_docs(definitions: Definitions, graph: Graph, view: View, helpers: list[str]) -> str:
    told = [f"### {view.name}", view.description or "", f"Parts of {duration_text(view.part)}."]
    for name in (*helpers, view.name):
        table = definitions.usable[name]
        assert isinstance(table, View)
        what = "helper, generated" if name in helpers else "view"
        told.append(f"#### {name} ({what})")
        told.append(f"Requires: {', '.join(_general(item) for item in graph[name].inputs) or 'nothing'}")
        if name == view.name and view.query is not None:
            told += ["Query:", _code(view.query.text)]
        if table.initialize is not None:
            told += ["For the first part:", _code(table.initialize.text)]
        if table.update is not None:
            told += ["For part j:", _code(table.update.text)]
    told.append(f"`partwise explain {view.name}` says more, `partwise status {view.name}` shows its parts.")
    return "\n\n".join(text for text in told if text)


def _code(text: str) -> str:
    return f"```sql\n{text.rstrip()}\n```"


def _general(item: Input) -> str:
    return f"`{item.table}` (all of it)" if item.reference is None else f"`{item.table}{item.reference.text()}`"


def _source(where: str, kind: str, table: Source | Dimension) -> SourceSpec:
    origin = ", ".join(f"`{pattern}`" for pattern in table.files) or f"the Delta table `{table.delta}`"
    told = [f"### {table.name}", table.description or "", f"Loaded from {origin}."]
    if isinstance(table, Source):
        told.append(f"Parts of {duration_text(table.part)}, by `{table.time.column}`.")
    told.append(f"`partwise status {table.name}` shows its state.")
    return SourceSpec(
        name=table.name,
        kind=kind,
        workspace=where,
        description=table.description or f"{kind.capitalize()} {table.name}",
        docs="\n\n".join(text for text in told if text),
        owner=table.owner or "partwise",
        tags=table.tags,
        poll=POLL if table.poll is None else table.poll or None,
    )


def _broken(workspace: Workspace, definitions: Definitions) -> Iterator[tuple[str, str]]:
    """A stub that fails for every file with errors, and for every table that reads one which cannot be used."""
    files: dict[str, list[Problem]] = {}
    for problem in definitions.problems:
        if problem.severity == "error":
            files.setdefault(problem.file, []).append(problem)
    for file, problems in files.items():
        shown = _relative(file, workspace)
        yield f"{_file_name(shown)}.py", _failing(shown, shown, [_problem(p, workspace) for p in problems])
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
