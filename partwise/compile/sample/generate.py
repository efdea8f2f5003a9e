"""A view with `sample:` to its helpers, as if a person had written them.

V__sizes    the largest keys of each part's inputs, and how large the others can be
V__sample   the view's own query, of keys that are sampled or exact
V__was      the published rows of the sampled keys

V__sample reads what the view reads, so it is due when the view is, and it does not wait for the view's policy. The
condition stands on top of the query, so it is right by construction; `restrict` repeats it where tables are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from partwise.compile.program import Alternative, CompiledView, Runnable, Sampled
from partwise.compile.relations import Relation
from partwise.compile.sample.hashing import can_hash, hash_sql, threshold
from partwise.compile.sample.restrict import KEY, PLACE, OwnKeyLost, own_rows, restricted
from partwise.compile.sample.sizes import NotMeasured, SizesQuery, sizes_query
from partwise.definitions.definitions import Definition, Sample, Statement, View
from partwise.definitions.yaml.places import Placed
from partwise.spelling import did_you_mean
from partwise.sql.canonical import canonical_of
from partwise.sql.references import analyse, splice
from partwise.sql.text import quoted
from partwise.sql.types.names import INTEGERS

EXACT, HASH = "sample_exact", "sample_hash"


class NotSampled(Exception):
    """Why a view cannot be sampled, what to do, and which key of `sample:` it is about."""

    def __init__(self, message: str, hint: str, key: str = "") -> None:
        super().__init__(message)
        self.hint, self.key = hint, key


@dataclass(frozen=True)
class _Made:
    """Texts of the helpers."""

    sampled: Sampled
    sample: str
    was: str
    sizes: str | None
    first: str | None = None  # the sample of INITIALIZE


def basis(view: CompiledView) -> Runnable:
    """The query that is sampled: plain SQL as it is, a window as it is computed from its inputs alone. NotSampled."""
    way = next((each for each in view.alternatives if each.strategy in (None, "recompute")), None)
    if way is None or any(not helper.beside for helper in way.helpers):
        what = "a pattern" if view.usual is not None and view.usual.strategy == "pattern" else "this query"
        raise NotSampled(f"{view.name} cannot be sampled: {what} is not computed from its inputs alone", REMOVE)
    if way.table.sketches:
        raise NotSampled(f"{view.name} cannot be sampled: its aggregates are approximate already", REMOVE)
    return way.table


REMOVE = "remove sample:"


def with_sample(view: CompiledView, relation: Relation, tables: Mapping[str, Definition]) -> CompiledView:
    """The view with the helpers of its sample beside each of its alternatives. Raises NotSampled."""
    rule = view.written.sample
    assert rule is not None
    table = basis(view)
    _refuse_stale_inputs(view.written, tables)
    made = _texts(view.name, rule, table, relation)
    texts = [(made.sampled.sizes, made.sizes), (made.sampled.sample, made.sample), (made.sampled.was, made.was)]
    about = {
        made.sampled.sizes: f"the largest keys of {view.name}, for fresh answers",
        made.sampled.sample: f"a sample of {view.name} that does not wait, for fresh answers",
        made.sampled.was: f"what is published of the sampled keys of {view.name}, for fresh answers",
    }
    helpers = tuple(
        replace(
            table,
            name=name,
            update=_statement(text, table.update),
            initialize=_first(made.first, table) if name == made.sampled.sample else None,
            description=about[name],
            optional=() if name == made.sampled.was else table.optional,
            fast_update=None,
            unique_update=None,
            unique_by=(),
            single_pass=None,
            beside=True,
        )
        for name, text in texts
        if name is not None and text is not None
    )
    ways, own = (
        tuple(Alternative(w.strategy, w.table, (*w.helpers, *helpers), w.notes) for w in each)
        for each in (view.alternatives, view.own)
    )
    return replace(view, alternatives=ways, own=own, sampled=made.sampled)


def _statement(text: str, of: Statement) -> Statement:
    here = of.placed.at(0)
    analysis = analyse(text, of.index)
    placed = Placed(text, here.file, ((0, here.line, here.column),), generated=True)
    return Statement(text, of.index, analysis.found, placed, canonical_of(text, analysis))


def _first(text: str | None, table: Runnable) -> Statement | None:
    return None if text is None or table.initialize is None else _statement(text, table.initialize)


def _texts(name: str, rule: Sample, table: Runnable, relation: Relation) -> _Made:
    tree = relation.tree
    types = _types(relation)
    if taken := {EXACT, HASH} & set(map(str.lower, tree.names)):
        message = f"{name} has a column {min(taken)}, which its sample needs"
        raise NotSampled(message, "call the column something else")
    key = key_of(name, rule, relation)
    listed = _listed(rule, key, "key_0")
    sizes = _sizes(name, rule, table, tree.names, types, key, listed)
    limit = threshold(rule.ratio)
    texts = [f"v.{quoted(c)}" for c, _ in key]
    own = hash_sql(list(zip(texts, (kind for _, kind in key), strict=True)))
    exact = _listed(rule, key, texts[0]) or "FALSE"
    largest, joined = None, ""
    if rule.keep:
        shown = ", ".join([f"place AS {PLACE}", *(f"key_{n} AS {KEY}{n}" for n in range(len(key)))])
        largest = f"SELECT {shown} FROM {name}__sizes[j] WHERE place <= {rule.keep}"
        joined = f"\nLEFT JOIN ({largest}) x ON " + " AND ".join(f"{t} <=> x.{KEY}{n}" for n, t in enumerate(texts))
        exact = f"({exact} OR x.{PLACE} IS NOT NULL)" if rule.exact else f"(x.{PLACE} IS NOT NULL)"

    def condition(texts: Sequence[str], joined: str) -> str:
        hashed = hash_sql(list(zip(texts, (kind for _, kind in key), strict=True)))
        ways = [
            f"{hashed} <= {limit}",
            _listed(rule, key, texts[0]),
            f"{joined}.{PLACE} IS NOT NULL" if joined else None,
        ]
        return " OR ".join(way for way in ways if way)

    def sample_of(text: str) -> str:
        shown = f"SELECT v.*, {own} AS {HASH}, {exact} AS {EXACT} FROM (\n{text.rstrip()}\n) v{joined}"
        return f"{shown}\nWHERE {condition(texts, 'x' if joined else '')}"

    try:
        update = restricted(table.update, name, tree, relation.carried, [c for c, _ in key], largest, condition)
    except OwnKeyLost:
        what = ", ".join(c for c, _ in key)
        message = f"{name} cannot be sampled by {what}: it reads its own earlier parts by something else"
        raise NotSampled(message, "sample by the column by which it reads them, or remove sample:", "key") from None
    sample = sample_of(update)
    first = None
    if table.initialize is not None:
        first = sample_of(_own_parts(table.initialize, name, tree.names))
    columns = hash_sql([(quoted(c), kind) for c, kind in key])
    was = f"SELECT *, {columns} AS {HASH} FROM {name}[j] WHERE {columns} <= {limit}"
    sampled = Sampled(
        sample=f"{name}__sample",
        was=f"{name}__was",
        sizes=None if sizes is None else f"{name}__sizes",
        key=key,
        ratio=rule.ratio,
        keep=rule.keep,
        exact=rule.exact,
        unique=relation.key is not None and {c.lower() for c in relation.key} <= {c.lower() for c, _ in key},
        sized=() if sizes is None else sizes.sized,
        summed=() if sizes is None else sizes.summed,
        row_key=tuple(relation.key or ()),
    )
    return _Made(sampled, sample, was, None if sizes is None else sizes.text, first)


def _own_parts(statement: Statement, name: str, columns: Sequence[str]) -> str:
    """INITIALIZE over the sample's own parts, should it read any."""
    return splice(
        statement.text,
        lambda found: own_rows(found, name, columns) if found.table.lower() == name.lower() else found.written,
        statement.index,
        statement.found,
    )


def _sizes(
    name: str,
    rule: Sample,
    table: Runnable,
    names: tuple[str, ...],
    types: Mapping[str, str | None],
    key: tuple[tuple[str, str], ...],
    listed: str | None,
) -> SizesQuery | None:
    by = rule.outliers
    if table.name.lower() in table.inputs:
        if rule.keep:
            message = f"the largest keys of {name} cannot be kept: its parts add up earlier ones, of other largest keys"
            raise NotSampled(message, "list keys instead: sample: {exact: [...]}", "outliers")
        return None  # what a key holds is not known before all parts are computed
    if by is not None:
        by = next((n for n in names if n.lower() == by.lower()), by)
    try:
        found = sizes_query(table.update.text, names, types, [c for c, _ in key], by, rule.keep, listed)
    except NotMeasured:
        message = f"the largest keys of {name} by {by} cannot be found: {by} is computed of more than one aggregate"
        raise NotSampled(message, "name a column that is summed, counted, or read", "outliers") from None
    if found is None and rule.keep:
        message = f"the largest keys of {name} cannot be found: its query is not one SELECT whose list has the key"
        raise NotSampled(message, "remove outliers:, or write the query as SELECT key, ... FROM ...", "outliers")
    return found


def _types(relation: Relation) -> dict[str, str | None]:
    return dict(zip(relation.tree.names, relation.tree.types, strict=False))


def key_of(name: str, rule: Sample, relation: Relation) -> tuple[tuple[str, str], ...]:
    """The hashed columns and their types. Raises NotSampled."""
    types = _types(relation)
    carrying = [
        frozenset(found) for n, found in relation.carried.items() if relation.statement.found.tables[n].brackets
    ]
    if rule.key:
        by_name = {c.lower(): c for c in types}
        for column in rule.key:
            if column.lower() not in by_name:
                known = ", ".join(types) or "not known"
                hint = did_you_mean(column, types, f"columns: {known}")
                raise NotSampled(f"{name} has no column {column}", hint, "key")
        columns = tuple(dict.fromkeys(by_name[c.lower()] for c in rule.key))
    else:
        found = relation.key
        if not found:
            message = f"{name} has no key that can be seen in its query"
            raise NotSampled(message, "say by which column it is sampled: sample: {key: customer}")
        best = max(
            (frozenset(found) & each for each in carrying), key=lambda c: (len(c), sorted(c)), default=frozenset()
        )
        columns = tuple(c for c in found if c in best) or found
    for column in columns:
        if not can_hash(types.get(column)):
            kind = types.get(column) or "not known"
            message = f"{name} cannot be sampled by {column}, whose type is {kind}"
            raise NotSampled(message, "sample by text, whole numbers, decimals, dates or times", "key")
    if not any(set(columns) <= each for each in carrying):
        what = ", ".join(columns)
        message = f"{name} cannot be sampled by {what}: no input has it in its rows"
        raise NotSampled(message, "sample by a column that rows are grouped or joined by, or remove sample:", "key")
    return tuple((c, types[c] or "") for c in columns)


def _listed(rule: Sample, key: tuple[tuple[str, str], ...], column: str) -> str | None:
    """A condition that is true for keys in `exact`, never NULL."""
    if not rule.exact:
        return None
    if len(key) > 1 or not (key[0][1] == "string" or key[0][1] in INTEGERS):
        message = "exact lists keys of one column of text or whole numbers"
        raise NotSampled(message, "remove exact:, or sample by one such column", "exact")
    texts = ", ".join("'" + e.replace("\\", "\\\\").replace("'", "\\'") + "'" for e in rule.exact)
    return f"coalesce(CAST({column} AS STRING) IN ({texts}), FALSE)"


def _refuse_stale_inputs(view: View, tables: Mapping[str, Definition]) -> None:
    """What waits on purpose is read as it was: a sample of its readers would be old and look fresh."""
    from partwise.definitions.definitions import inputs_of

    todo, seen = [*inputs_of(view)], {view.name.lower()}
    while todo:
        name = todo.pop()
        other = tables.get(name)
        if name in seen or not isinstance(other, View):
            continue
        seen.add(name)
        if other.repair == "manual" or other.refresh is not None:
            what = "repair: manual" if other.repair == "manual" else "refresh:"
            message = f"a sample of {view.name} would not be fresh: it reads {other.name}, which waits ({what})"
            raise NotSampled(message, f"sample {other.name} instead, or let it be repaired at once")
        todo += inputs_of(other)
