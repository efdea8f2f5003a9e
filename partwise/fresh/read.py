"""A fresh answer from a workspace: states of parts and tables as of one sequence, without a JVM."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from partwise.compile.program import CompiledView, Program, Sampled
from partwise.compile.sample.hashing import hash_of, threshold
from partwise.fresh.answer import Deciding, FreshAnswer, FreshCell, FreshRow
from partwise.fresh.question import FreshQuestion, ask, view_of
from partwise.fresh.refused import Refused
from partwise.fresh.states import PartStates, states_of, with_stand_ins
from partwise.fresh.totals import Adding, chosen_parts, names_of
from partwise.ledger.facts import LedgerFacts
from partwise.ledger.ledger import Ledger
from partwise.ledger.read.as_of import readable
from partwise.parts import Parts
from partwise.storage.paths import table_path
from partwise.storage.query import PinnedTable, connect

if TYPE_CHECKING:
    from collections.abc import Callable

    from duckdb import DuckDBPyConnection

    from partwise.ledger.records.readers import Moment

    #: A registered read of a sequence, which upkeep spares.
    Registered = Callable[[int], AbstractContextManager[Moment]]


def fresh(
    program: Program,
    ledger: Ledger,
    warehouse: str,
    sql: str,
    registered: Registered,
    confidence: float = 0.95,
    within: float | None = None,
) -> tuple[FreshAnswer, Moment]:
    """Raises Refused, and what DuckDB says of the query."""
    import duckdb

    view, sampled = _sampled(program, view_of(sql))
    question = ask(sql, sampled.key)
    rule = view.written.sample
    assert rule is not None
    with ledger.database.reading() as r:
        graph, facts, seq = ledger.graph_at(r), LedgerFacts(r), r.seq
        if view.name not in graph.tables or sampled.sample not in graph.tables:
            raise Refused("sample-behind", f"the sample of {view.name} is not built yet", "`partwise run` builds it")
        states = states_of(graph, facts, time.time(), view.name, sampled.sample)
        with duckdb.connect(":memory:") as clock:
            clock.execute("SET TimeZone = 'UTC'")
            everything = states.clean | states.dirty | states.beyond
            states = states.within(chosen_parts(clock, question, everything, view.written.part))
        if states.dirty:
            states = with_stand_ins(states, graph, facts, view.name, sampled.sample, sampled.was, rule)
    with registered(seq) as at, _connected(ledger, warehouse, view.name, sampled, states, seq) as connection:
        deciding = Deciding(question, sampled, states, view.written.part, confidence, within)
        if not states.dirty:
            return _exact(connection, deciding, f"SELECT * FROM {_quoted(view.name)}"), at
        if question.keys is not None:
            _refuse_unknown(connection, question.keys, sampled, states)
            return _exact(connection, deciding, _of_known_keys(connection, view.name, sampled, states)), at
        adding = Adding(connection, question, sampled, states, view.written.part)
        return deciding.answer(adding.all()), at


def _sampled(program: Program, name: str) -> tuple[CompiledView, Sampled]:
    view = next((v for n, v in program.views.items() if n.lower() == name.lower()), None)
    if view is None:
        known = ", ".join(n for n, v in program.views.items() if v.sampled is not None) or "none"
        raise Refused("no-view", f"there is no view {name}", f"views with a sample: {known}")
    if view.sampled is None or view.name not in program.usable:
        raise Refused("no-sample", f"{view.name} has no sample", 'add "sample: 5 %" to its definition')
    return view, view.sampled


def _connected(
    ledger: Ledger, warehouse: str, view: str, sampled: Sampled, states: PartStates, seq: int
) -> DuckDBPyConnection:
    names = names_of(sampled, view) if states.dirty else [view]
    found = readable(ledger.database, names, names, seq)
    if absent := [name for name in names if name not in found]:
        raise Refused("not-built", f"{' and '.join(absent)} has no parts yet", "`partwise run` builds them")
    if any(at.rebuilding for at in found.values()):
        raise Refused(
            "rebuilding", f"{view} is being built again, and read as it was before", "wait until that is done"
        )
    pins = {
        name: PinnedTable(table_path(warehouse, name, at.version.generation), at.version.version, parts=at.parts)
        for name, at in found.items()
    }
    return connect(" ".join(names), pins)


def _refuse_unknown(
    connection: DuckDBPyConnection, keys: tuple[str, ...], sampled: Sampled, states: PartStates
) -> None:
    """A key is known if it is sampled, or exact in every dirty part."""
    limit = threshold(sampled.ratio)
    for key in keys:
        if hash_of([key]) <= limit or key in sampled.exact:
            continue
        exact: set[int] = set()
        if sampled.keep:
            text = (
                f"SELECT part FROM {_quoted(sampled.sizes or '')} "
                f"WHERE place <= {sampled.keep} AND CAST(key_0 AS VARCHAR) = ?"
            )
            exact = {int(row[0]) for row in connection.execute(text, [key]).fetchall()}
        if states.dirty - Parts.single(*exact):
            name = sampled.key[0][0]
            message = f"{name} = {key} is not in the sample, so nothing is known of its fresh rows"
            raise Refused("key-not-sampled", message, f"add it to sample: {{exact: [{key}]}}, or refresh the view")


def _of_known_keys(connection: DuckDBPyConnection, view: str, sampled: Sampled, states: PartStates) -> str:
    """Rows of keys that are known in full: published ones of clean parts, fresh ones of the others."""
    names = [str(row[0]) for row in connection.execute(f"DESCRIBE {_quoted(view)}").fetchall()]
    columns = ", ".join(map(_quoted, names))
    clean, dirty = (_among(parts) for parts in (states.clean, states.dirty))
    return (
        f"SELECT {columns} FROM {_quoted(view)} WHERE {clean} "
        f"UNION ALL SELECT {columns} FROM {_quoted(sampled.sample)} WHERE {dirty}"
    )


def _exact(connection: DuckDBPyConnection, deciding: Deciding, rows: str) -> FreshAnswer:
    question = deciding.question
    found = _run(connection, question, rows)
    published = found
    if deciding.states.dirty:
        there = _among(deciding.states.clean | deciding.states.stale)
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
    order = [f"{groups[at]} {'DESC' if down else 'ASC'}" for at, down in question.order]
    sorted_ = f" ORDER BY {', '.join(order)}" if order else ""
    items = ", ".join([*groups, *question.written])
    text = f"SELECT {items} FROM ({rows}) AS {_quoted(question.alias)} WHERE {question.where}{by}{sorted_}"
    return {tuple(row[: len(groups)]): tuple(row[len(groups) :]) for row in connection.execute(text).fetchall()}


def _among(parts: Parts) -> str:
    return "(" + (" OR ".join(f"part BETWEEN {lo} AND {hi}" for lo, hi in parts.ranges) or "FALSE") + ")"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
