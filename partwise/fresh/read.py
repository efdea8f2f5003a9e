"""A fresh answer from a workspace: states of parts and tables as of one sequence, without a JVM."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from partwise.compile.program import CompiledView, Program, Sampled
from partwise.compile.sample.generate import REMOVE, NotSampled, basis, key_of
from partwise.definitions.definitions import Sample
from partwise.fresh.adding.compared import Compared, in_parts
from partwise.fresh.adding.exactly import COMPUTED, NotAlike, among
from partwise.fresh.adding.rows import ComparedRows, exact_rows
from partwise.fresh.adding.totals import Adding, names_of
from partwise.fresh.answer import FreshAnswer, FreshCell, FreshRow
from partwise.fresh.asked.question import FreshQuestion, ask, views_of
from partwise.fresh.asked.refused import Refused
from partwise.fresh.deciding import Deciding
from partwise.fresh.few_keys import changed_keys, may_be_few
from partwise.fresh.listed_keys import computed, rows_of_listed, spelled
from partwise.fresh.look import Looked, Looking
from partwise.fresh.states import PartStates, SampleBehind
from partwise.ledger.ledger import Ledger
from partwise.ledger.read.as_of import readable
from partwise.ledger.records.estimates import coverage
from partwise.storage.paths import table_path
from partwise.storage.query import PinnedTable, connect

_PAUSE = 0.5  # seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from duckdb import DuckDBPyConnection

    from partwise.ledger.records.readers import Moment

    #: A registered read of a sequence, which upkeep spares.
    Registered = Callable[[int], AbstractContextManager[Moment]]


@dataclass(frozen=True)
class FreshRequest:
    """How an answer is wanted. `seq` or `moment`: as of which; `wait`: for the sample, if it is not up to date."""

    confidence: float = 0.95
    within: float | None = None
    ratio: float | None = None
    seq: int | None = None
    moment: float | None = None
    wait: bool = False


def fresh(
    program: Program, ledger: Ledger, warehouse: str, sql: str, registered: Registered, wanted: FreshRequest
) -> tuple[FreshAnswer, Moment]:
    """Raises Refused, and what DuckDB says of the query."""
    names = views_of(sql)
    if len(names) > 1:
        from partwise.fresh.read_joined import fresh_joined

        return fresh_joined(program, ledger, warehouse, sql, registered, wanted)
    view, sampled = sampled_view(program, names[0])
    refuse_ratio(view, sampled, wanted)
    question = ask(sql, sampled.key)
    rule = view.written.sample
    assert rule is not None
    looked = look(Looking(view.name, sampled, rule, question, view.written.part), ledger, wanted)
    states, seq = looked.states, looked.seq
    known = states.dirty and (question.keys is not None or question.pinned or may_be_few(sampled, states))
    inputs = [spelled(program, name) for name in basis(view).inputs] if known else []
    with registered(seq) as at, connected(ledger, warehouse, view.name, sampled, states, seq, inputs) as connection:
        deciding = Deciding(
            question, sampled, states, view.written.part, wanted.confidence, wanted.within, wanted.ratio,
            _published_rows(connection, view.name, states) if states.dirty else None,
        )  # fmt: skip
        if not states.dirty:
            whole = f"SELECT * FROM {_quoted(view.name)}"
            found = exact_rows(connection, deciding, whole) if question.rows else exact(connection, deciding, whole)
        elif (listed := rows_of_listed(connection, program, view, sampled, states, question)) is not None:
            found = exact_rows(connection, deciding, listed) if question.rows else exact(connection, deciding, listed)
        elif (some := _few(connection, ledger, warehouse, program, view, sampled, states, seq)) is not None:
            rows = _with_few(connection, view.name, sampled, states, some)
            found = exact_rows(connection, deciding, rows) if question.rows else exact(connection, deciding, rows)
            found = replace(found, keys=(0, len(some), len(some)))
        elif question.rows is not None:
            found = ComparedRows(connection, deciding, question.rows).answer()
        else:
            compared = Compared(connection, question, sampled, states, view.written.part, wanted.ratio)
            found = deciding.answer(Adding(compared).all())
        with ledger.database.reading() as r:
            checked = coverage(r, view.name, sampled.sample)
        return replace(found, note=looked.note, checked=checked, length=view.written.part), at


def refuse_ratio(view: CompiledView, sampled: Sampled, wanted: FreshRequest) -> None:
    """If more keys are wanted than the sample has."""
    if wanted.ratio is not None and wanted.ratio > sampled.ratio:
        message = (
            f"the sample of {view.name} has {sampled.ratio:.4g} of its keys, and --ratio {wanted.ratio:.4g} is more"
        )
        raise Refused("ratio", message, f"add `ratio: {100 * wanted.ratio:.4g} %` to its sample:, or leave --ratio out")


def look(looking: Looking, ledger: Ledger, wanted: FreshRequest) -> Looked:
    while True:
        try:
            found = looking.at(ledger, wanted.seq, wanted.moment)
        except SampleBehind:
            if not wanted.wait:
                raise
        else:
            if not (wanted.wait and found.note):
                return found
        time.sleep(_PAUSE)


def sampled_view(program: Program, name: str) -> tuple[CompiledView, Sampled]:
    view = next((v for n, v in program.views.items() if n.lower() == name.lower()), None)
    if view is None:
        known = ", ".join(n for n, v in program.views.items() if v.sampled is not None) or "none"
        raise Refused("no-view", f"there is no view {name}", f"views with a sample: {known}")
    if view.sampled is None or view.name not in program.usable:
        raise Refused("no-sample", f"{view.name} has no sample", _how_to_sample(program, view))
    return view, view.sampled


def _how_to_sample(program: Program, view: CompiledView) -> str:
    from partwise.compile.relations import Relations

    try:
        key = key_of(view.name, Sample(0.05), Relations(program).of(basis(view)))
    except NotSampled as why:
        return f"{why}; {why.hint}" if why.hint != REMOVE else str(why)
    would = " and ".join(column for column, _ in key)
    return f'add "sample: {{ratio: 5 %}}" to its definition (the key would be: {would})'


def connected(
    ledger: Ledger,
    warehouse: str,
    view: str,
    sampled: Sampled,
    states: PartStates,
    seq: int,
    inputs: Sequence[str] = (),
) -> DuckDBPyConnection:
    """`inputs` are read as well, as far as they have content."""
    return connected_to(ledger, warehouse, names_of(sampled, view) if states.dirty else [view], seq, inputs)


def connected_to(
    ledger: Ledger, warehouse: str, names: Sequence[str], seq: int, inputs: Sequence[str] = ()
) -> DuckDBPyConnection:
    found = readable(ledger.database, {*names, *inputs}, {*names, *inputs}, seq)
    if absent := [name for name in names if name not in found]:
        raise Refused("not-built", f"{' and '.join(absent)} has no parts yet", "`partwise run` builds them")
    if any(at.rebuilding for at in found.values()):
        raise Refused(
            "rebuilding", f"{names[0]} is being built again, and read as it was before", "wait until that is done"
        )
    pins = {
        name: PinnedTable(table_path(warehouse, name, at.version.generation), at.version.version, parts=at.parts)
        for name, at in found.items()
    }
    return connect(" ".join(pins), pins)


def _few(
    connection: DuckDBPyConnection,
    ledger: Ledger,
    warehouse: str,
    program: Program,
    view: CompiledView,
    sampled: Sampled,
    states: PartStates,
    seq: int,
) -> frozenset[str | None] | None:
    """All keys that may differ, with their fresh rows in a table, if they are few and can be computed for sure."""
    import duckdb

    try:
        keys = changed_keys(connection, ledger, warehouse, program, view, sampled, states, seq)
        if keys:
            wanted = among(*sampled.key[0], sorted(keys, key=lambda k: (k is None, k)))
            computed(connection, program, view, sampled, states, wanted)
    except (NotAlike, duckdb.Error):
        return None
    return keys


def _with_few(
    connection: DuckDBPyConnection, view: str, sampled: Sampled, states: PartStates, keys: frozenset[str | None]
) -> str:
    """Published rows, but of these keys those that were computed."""
    names = [str(row[0]) for row in connection.execute(f"DESCRIBE {_quoted(view)}").fetchall()]
    columns = ", ".join(map(_quoted, names))
    there = f"SELECT {columns} FROM {_quoted(view)} WHERE {in_parts(states.clean | states.stale)}"
    if not keys:
        return there
    ((key, kind),) = sampled.key
    changed = f"{in_parts(states.stale)} AND {among(key, kind, list(keys))}"
    return f"{there} AND NOT ({changed}) UNION ALL SELECT {columns} FROM {_quoted(COMPUTED)} WHERE {in_parts(states.stale)}"


def _published_rows(connection: DuckDBPyConnection, view: str, states: PartStates) -> int:
    there = in_parts(states.clean | states.stale)
    row = connection.execute(f"SELECT COUNT(*) FROM {_quoted(view)} WHERE {there}").fetchone()
    return int(row[0]) if row else 0


def exact(connection: DuckDBPyConnection, deciding: Deciding, rows: str) -> FreshAnswer:
    question = deciding.question
    found = _run(connection, question, rows)
    published = found
    if deciding.states.dirty:
        there = in_parts(deciding.states.clean | deciding.states.stale)
        published = _run(connection, question, f"SELECT * FROM {_quoted(question.view)} WHERE {there}")
    names = [name for name, _ in question.results]
    made = []
    for group, values in found.items():
        was = published.get(group, (None,) * len(names))
        cells = {name: FreshCell(w, v, v, v, "exact", 0, 0.0) for name, v, w in zip(names, values, was, strict=True)}
        made.append(FreshRow(dict(zip((n for n, _ in question.groups), group, strict=True)), cells))
    sampled = deciding.sampled
    return FreshAnswer(question.view, tuple(made), deciding.states, deciding.confidence, sampled.ratio)


def _run(connection: DuckDBPyConnection, question: FreshQuestion, rows: str) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """As DuckDB computes it: groups with their results."""
    groups = [text for _, text in question.groups]
    by = f" GROUP BY {', '.join(groups)}" if groups else ""
    order = [
        f"{groups[at]} {'DESC' if down else 'ASC'} NULLS {'FIRST' if nulls else 'LAST'}"
        for at, down, nulls in question.order
    ]
    sorted_ = f" ORDER BY {', '.join(order)}" if order else ""
    items = ", ".join([*groups, *question.written])
    text = f"SELECT {items} FROM ({rows}) AS {_quoted(question.alias)} WHERE {question.where}{by}{sorted_}"
    return {tuple(row[: len(groups)]): tuple(row[len(groups) :]) for row in connection.execute(text).fetchall()}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
