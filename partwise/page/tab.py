"""A table's own tab: its definition, what was made of it, how its parts and steps were, how late its sources are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import bindparam, select

from partwise.cli.views.explained import explained
from partwise.compile.program import Program, Runnable
from partwise.definitions import Source
from partwise.ledger.read.snapshot import Snapshot
from partwise.ledger.records import checks
from partwise.ledger.schema import part, step
from partwise.page.checked import CheckLine, lines_of
from partwise.page.lateness import Lateness, lateness
from partwise.parts import duration_text, part_text
from partwise.tables import Table

POINTS = 300
CHECKED = 20
_PARTS = (
    select(part.c.part, part.c.rows, part.c.revision, part.c.updated_at)
    .where(part.c.table == bindparam("t"))
    .order_by(part.c.part.desc())
    .limit(POINTS)
)
_STEPS = (
    select(step.c.at, step.c.parts, step.c.rows, step.c.seconds)
    .where(step.c.table == bindparam("t"))
    .order_by(step.c.seq.desc())
    .limit(POINTS)
)


@dataclass(frozen=True, slots=True)
class TabQuery:
    """A query as it runs, of the view or of one of its helpers."""

    table: str
    title: str
    sql: str


@dataclass(frozen=True, slots=True)
class PartPoint:
    part: str
    begin: int
    rows: int
    revision: int


@dataclass(frozen=True, slots=True)
class StepPoint:
    at: float
    parts: int
    rows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Tab:
    """`choice` says which strategy was taken for a window or pattern, and why; `advice` where counts speak for another;
    `many` how many parts are computed at once; `problem` why there is no definition."""

    table: str
    kind: str
    description: str | None
    owner: str | None
    tags: tuple[str, ...]
    length: str | None
    start: str | None
    file: str | None
    definition: str | None
    queries: tuple[TabQuery, ...]
    choice: str
    advice: str
    many: str
    notes: tuple[str, ...]
    requires: tuple[str, ...]
    feeds: tuple[str, ...]
    parts: tuple[PartPoint, ...]
    steps: tuple[StepPoint, ...]
    lateness: tuple[Lateness, ...]
    expectations: tuple[str, ...]
    checks: tuple[CheckLine, ...]
    problem: str | None


def tab(snapshot: Snapshot, program: Program, table: Table, folder: Path | None = None) -> Tab:
    """`folder`: the workspace, from which the file of the definition is named."""
    served = table.helper_of or table.name
    written = program.tables.get(served)
    found = explained(snapshot, program, table.name, None, snapshot.now) if table.kind == "view" else []
    own = next((item for item in found if item.view.name == table.name), None)
    queries = tuple(query for item in found for query in _queries(item.view))
    sources = [n for n in snapshot.graph.order if n in snapshot.graph.upstream([table.name])]
    return Tab(
        table=table.name,
        kind="helper" if table.helper_of else table.kind,
        description=written.description if written else None,
        owner=written.owner if written else None,
        tags=written.tags if written else (),
        length=None if table.kind == "dimension" else duration_text(table.length),
        start=own.start if own else None,
        file=_named(written.place.file, folder) if written else None,
        definition=_document(written.place.file, written.place.line) if written else None,
        queries=queries,
        choice=next((item.choice for item in found if item.choice), ""),
        advice=next((item.advice for item in found if item.advice), ""),
        many=own.many if own else "",
        notes=tuple(dict.fromkeys(note for item in found for note in item.notes)),
        requires=own.requires if own else (),
        feeds=own.feeds if own else tuple(snapshot.graph.consumers.get(table.name, ())),
        parts=tuple(reversed(list(_parts(snapshot, table)))),
        steps=tuple(reversed([StepPoint(*row) for row in snapshot.r.on.execute(_STEPS, {"t": table.name})])),
        lateness=tuple(
            lateness(snapshot.r, snapshot.graph[n], _refused_after(program.tables.get(n)))
            for n in sources
            if snapshot.graph[n].kind == "source"
        ),
        expectations=tuple(_expectation(check.name, check.severity) for check in written.checks) if written else (),
        checks=tuple(_checks(snapshot, table)),
        problem=None if written else f"The definition of {served} cannot be read now; see `partwise validate`.",
    )


def _refused_after(source: object) -> float | None:
    """The age from which on rows of a source are quarantined."""
    if not isinstance(source, Source):
        return None
    return min((bound for bound in (source.late.accept, source.keep) if bound is not None), default=None)


def _queries(view: Runnable) -> Iterator[TabQuery]:
    query = view.written.query
    if query is not None and view.helper_of is None:
        yield TabQuery(view.name, "as written", query.text.strip())
    generated = query is not None
    for title, statement in (("INITIALIZE", view.initialize), ("UPDATE", view.update)):
        if statement is not None:
            yield TabQuery(view.name, f"{title}, generated" if generated else title, statement.text.strip())


def _named(file: str, folder: Path | None) -> str:
    path, within = Path(file).absolute(), folder.absolute() if folder else Path.cwd()
    return str(path.relative_to(within)) if path.is_relative_to(within) else path.name


def _document(file: str, line: int) -> str | None:
    """The YAML document around a line."""
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    first = next((n + 1 for n in range(min(line, len(lines)) - 1, -1, -1) if lines[n].startswith("---")), 0)
    last = next((n for n in range(line, len(lines)) if lines[n].startswith("---")), len(lines))
    return "\n".join(lines[first:last]).strip()


def _parts(snapshot: Snapshot, table: Table) -> Iterator[PartPoint]:
    if table.kind == "dimension":
        return
    for row in snapshot.r.on.execute(_PARTS, {"t": table.name}):
        yield PartPoint(part_text(row.part, table.length), row.part * table.length, row.rows, row.revision)


def _expectation(name: str, severity: str) -> str:
    return name if severity == "error" else f"{name} (warns only)"


def _checks(snapshot: Snapshot, table: Table) -> Iterator[CheckLine]:
    for kept in checks.newest(snapshot.r, table.name, CHECKED):
        yield from lines_of(table, kept)
