"""A query in two: a join of some of its references, which can be kept, and the rest, which reads what was kept.

    SELECT .. FROM lineitem[j], orders[j], customer WHERE <conditions> GROUP BY ..

    kept    SELECT <columns that are used> FROM orders[j], customer WHERE <conditions on these alone>
    rest    SELECT .. FROM kept[j], lineitem[j] WHERE <all conditions> GROUP BY ..

The rest is the author's text: FROM is another one, and columns of what is kept are read from it. Its conditions hold
for kept rows as well, so none is taken out. Of conditions only those are evaluated in the kept join that never fail:
rows that others would have hidden must not raise errors there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from partwise.compile.state.flat import Flat, FlatCondition, Joined, NotSplit
from partwise.sql.text import quoted

ALIAS = "kept__"


@dataclass(frozen=True)
class JoinSplit:
    """`rest` reads the kept table by its name; `occurrences` says which reference of the query each of its own was,
    None for the kept one."""

    kept: frozenset[int]
    text: str
    rest: str
    occurrences: tuple[int | None, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class _KeptColumn:
    occurrence: int
    name: str
    stored: str


def split_off(flat: Flat, wanted: Collection[int], name: str) -> JoinSplit:
    """The query with these references kept in a table of this name. Raises NotSplit."""
    kept = frozenset(wanted)
    inside = tuple(each for each in flat.joined if each.occurrence in kept)
    outside = tuple(each for each in flat.joined if each.occurrence not in kept)
    if len(inside) < 2:
        raise NotSplit("a join has two references at least")
    if not outside:
        raise NotSplit("nothing would be left to be joined with what is kept")
    if not any(each.reference.brackets is not None for each in inside):
        raise NotSplit("none of it has parts: it would be the same for every part")
    if not is_connected(flat.conditions, kept):
        names = ", ".join(each.reference.table for each in inside)
        raise NotSplit(f"{names} are not joined with each other by equal columns", inside[0].reference.start)
    columns = _columns(flat, inside)
    if not columns:
        raise NotSplit("no column of it is used")
    rest, renamed = _edits(flat, inside, columns)
    _refuse_unnamed(flat, renamed)
    return JoinSplit(
        kept, _kept_text(flat, inside, columns), _rest_text(flat, outside, rest, name),
        _occurrences(flat, outside), tuple(c.stored for c in columns),
    )  # fmt: skip


def is_connected(conditions: tuple[FlatCondition, ...], occurrences: Collection[int]) -> bool:
    """Whether equal columns join all of these references with each other."""
    left, reached = set(occurrences), {min(occurrences)}
    edges = [{c.equal[0][0], c.equal[1][0]} for c in conditions if c.equal is not None]
    edges = [edge for edge in edges if len(edge) == 2 and edge <= left]
    while more := {n for edge in edges if edge & reached for n in edge} - reached:
        reached |= more
    return reached == left


def used_columns(flat: Flat) -> set[str]:
    """Names, in lower case, that the query may use as columns."""
    from sqlglot import exp

    return {part.name.lower() for column in flat.tree.find_all(exp.Column) for part in column.parts}


def _columns(flat: Flat, inside: tuple[Joined, ...]) -> tuple[_KeptColumn, ...]:
    """Columns of the kept references that the query may use, under names that stay unique."""
    used = used_columns(flat)
    counts: dict[str, int] = {}
    for each in flat.joined:
        for name, _ in each.columns:
            counts[name.lower()] = counts.get(name.lower(), 0) + 1
    taken = set(counts)
    found = []
    for each in inside:
        for name, _ in each.columns:
            if name.lower() not in used:
                continue
            stored = name
            if counts[name.lower()] > 1:
                stored = f"{each.alias}_{name}"
                while stored.lower() in taken:
                    stored += "_"
                taken.add(stored.lower())
            found.append(_KeptColumn(each.occurrence, name, stored))
    return tuple(found)


#: Texts that take the place of what stands from one offset to another.
_Edits = dict[tuple[int, int], str]


def _edits(flat: Flat, inside: tuple[Joined, ...], columns: tuple[_KeptColumn, ...]) -> tuple[_Edits, set[int]]:
    """Where the query names columns of kept references with their table, and where a name changes."""
    from sqlglot import exp

    by_alias = {each.alias.lower(): each for each in inside}
    stored = {(c.occurrence, c.name.lower()): c for c in columns}
    edits: _Edits = {}
    renamed: set[int] = set()
    items = {id(item) for item in flat.tree.expressions}
    for column in flat.tree.find_all(exp.Column):
        each = by_alias.get(column.parts[0].name.lower())
        if len(column.parts) < 2 or each is None or not each.has(column.parts[1].name):
            if each is not None and len(column.parts) > 1:
                raise NotSplit(f"{column.sql('spark')} is not followed")
            continue
        if len(column.parts) > 2:
            raise NotSplit(f"{column.sql('spark')} is not followed")
        table, name = column.parts
        if "start" not in table.meta or "start" not in name.meta:
            raise NotSplit(f"{column.sql('spark')} is not followed")
        known = stored[each.occurrence, name.name.lower()]
        text = f"{ALIAS}.{quoted(known.stored)}"
        if known.stored.lower() != name.name.lower():
            renamed.add(id(column))
            if id(column) in items:
                text += f" AS {quoted(name.name)}"
        edits[int(table.meta["start"]), int(name.meta["end"]) + 1] = text
    return edits, renamed


def _refuse_unnamed(flat: Flat, renamed: set[int]) -> None:
    """An expression without a name is called like its text, which may not change."""
    from sqlglot import exp

    for item in flat.tree.expressions:
        if not isinstance(item, exp.Alias | exp.Column) and any(id(c) in renamed for c in item.find_all(exp.Column)):
            raise NotSplit(f"{item.sql('spark')} has no name: write AS")


def _kept_text(flat: Flat, inside: tuple[Joined, ...], columns: tuple[_KeptColumn, ...]) -> str:
    aliases = {each.occurrence: quoted(each.alias) for each in inside}
    listed = ", ".join(f"{aliases[c.occurrence]}.{quoted(c.name)} AS {quoted(c.stored)}" for c in columns)
    tables = ", ".join(_read(each) for each in inside)
    kept = set(aliases)
    conditions = [c.sql for c in flat.conditions if c.total and c.occurrences is not None and c.occurrences <= kept]
    where = "\nWHERE " + "\n  AND ".join(f"({sql})" for sql in conditions) if conditions else ""
    return f"SELECT {listed}\nFROM {tables}{where}"


def _rest_text(flat: Flat, outside: tuple[Joined, ...], edits: _Edits, name: str) -> str:
    tables = ", ".join([*(_read(each) for each in outside), f"{name}[{flat.statement.index}] AS {ALIAS}"])
    head, tail = _edited(flat.statement.text, flat.head, edits), _edited(flat.statement.text, flat.tail, edits)
    # A comment may end a condition: the parenthesis stands on a line of its own.
    conditions = [f"({_edited(flat.statement.text, at, edits).strip()}\n)" for at in flat.places]
    where = "\nWHERE " + " AND ".join(conditions) if conditions else ""
    return f"{head}FROM {tables}{where}\n{tail}".rstrip()


def _read(each: Joined) -> str:
    return f"{each.reference.written} AS {quoted(each.alias)}"


def _edited(text: str, at: tuple[int, int], edits: _Edits) -> str:
    out, here = [], at[0]
    for (start, end), new in sorted(edits.items()):
        if here <= start and end <= at[1]:
            out += [text[here:start], new]
            here = end
    return "".join([*out, text[here : at[1]]])


def _occurrences(flat: Flat, outside: tuple[Joined, ...]) -> tuple[int | None, ...]:
    """In the order of the rest's text: references before FROM, those in FROM, the kept one, and those behind."""
    mine = {each.occurrence for each in flat.joined}
    found = flat.statement.found.tables
    before = [n for n, t in enumerate(found) if n not in mine and t.end <= flat.head[1]]
    behind = [n for n, t in enumerate(found) if n not in mine and t.end > flat.head[1]]
    return (*before, *(each.occurrence for each in outside), None, *behind)
