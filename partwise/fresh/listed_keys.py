"""WHERE lists the keys: their rows exactly, from the sample or by the view's own query, instead of an estimate."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, product
from typing import TYPE_CHECKING

from partwise.compile.program import CompiledView, Program, Sampled
from partwise.compile.sample.generate import basis
from partwise.compile.sample.hashing import hash_of, threshold
from partwise.fresh.adding.compared import in_parts, quoted
from partwise.fresh.adding.exactly import COMPUTED, NotAlike, among, compute
from partwise.fresh.asked.question import FreshQuestion
from partwise.fresh.asked.refused import Refused
from partwise.fresh.states import PartStates
from partwise.parts import Parts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Combinations of values that are looked up one by one.
_MOST = 1_000


def rows_of_listed(
    connection: DuckDBPyConnection,
    program: Program,
    view: CompiledView,
    sampled: Sampled,
    states: PartStates,
    question: FreshQuestion,
) -> str | None:
    """All rows of the keys that WHERE lists, published and fresh, as SQL. None if it does not list them, or lists a part of
    the key alone and its rows cannot be computed: these are many keys, to be estimated. Raises Refused."""
    pinned = question.pinned if question.keys is None else ((sampled.key[0][0], question.keys),)
    if not pinned:
        return None
    whole = len(pinned) == len(sampled.key)
    keys = list(islice(product(*(values for _, values in pinned)), _MOST + 1)) if whole else []
    unknown = _unknown(connection, keys, sampled, states) if keys and len(keys) <= _MOST else ()
    if unknown is None:
        return _of_known_keys(connection, view.name, sampled.sample, states)
    import duckdb

    kinds = dict(sampled.key)
    wanted = " AND ".join(among(name, kinds[name], values) for name, values in pinned)
    try:
        computed(connection, program, view, sampled, states, wanted)
    except (NotAlike, duckdb.Error) as why:
        if not unknown:  # a part of the key, or too many to look up
            return None
        name = " and ".join(name for name, _ in pinned)
        said, first = ", ".join(unknown), str(why).partition("\n")[0]
        message = f"{name} = {said} is not in the sample, and its fresh rows cannot be computed here ({first})"
        exact = f"add it to sample: {{exact: [{said}]}}, or " if len(pinned) == 1 else ""
        raise Refused("key-not-sampled", message, f"{exact}refresh the view") from None
    return _of_known_keys(connection, view.name, COMPUTED, states)


def _unknown(
    connection: DuckDBPyConnection, keys: Sequence[tuple[str, ...]], sampled: Sampled, states: PartStates
) -> tuple[str, ...] | None:
    """The first key that is not known: neither sampled, nor exact in every dirty part."""
    limit = threshold(sampled.ratio)
    same = " AND ".join(f"CAST(key_{n} AS VARCHAR) = ?" for n in range(len(sampled.key)))
    for key in keys:
        if hash_of(key) <= limit or (len(key) == 1 and key[0] in sampled.exact):
            continue
        exact: set[int] = set()
        if sampled.keep:
            text = f"SELECT part FROM {quoted(sampled.sizes or '')} WHERE place <= {sampled.keep} AND {same}"
            exact = {int(row[0]) for row in connection.execute(text, list(key)).fetchall()}
        if states.dirty - Parts.single(*exact):
            return key
    return None


def computed(
    connection: DuckDBPyConnection,
    program: Program,
    view: CompiledView,
    sampled: Sampled,
    states: PartStates,
    wanted: str,
) -> None:
    """Makes a table of the wanted rows, by the view's own query. Raises NotAlike."""
    graph = program.graph()
    if forward := [name for name in graph.upstream([view.name]) if graph[name].forward]:
        raise NotAlike(f"{forward[0]} has a version for each part")
    if timed := [name for name in graph.upstream([view.name]) if graph[name].timed]:
        raise NotAlike(f"rows of {timed[0]} are valid for a time")
    compute(
        connection, basis(view), sampled, view.name, states.dirty, wanted, lambda name: spelled(program, name.lower())
    )


def spelled(program: Program, name: str) -> str:
    return next((known for known in program.usable if known.lower() == name), name)


def _of_known_keys(connection: DuckDBPyConnection, view: str, fresh: str, states: PartStates) -> str:
    """Rows of keys that are known in full: published ones of clean parts, fresh ones of the others."""
    names = [str(row[0]) for row in connection.execute(f"DESCRIBE {quoted(view)}").fetchall()]
    columns = ", ".join(map(quoted, names))
    clean, dirty = (in_parts(parts) for parts in (states.clean, states.dirty))
    return (
        f"SELECT {columns} FROM {quoted(view)} WHERE {clean} "
        f"UNION ALL SELECT {columns} FROM {quoted(fresh)} WHERE {dirty}"
    )
