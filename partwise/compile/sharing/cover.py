"""Panes that hold more than one view needs: of a shorter time, of finer groups, of rows that others leave out.

    a   SELECT g, h, SUM(x) ...            [WINDOW 10 minutes] GROUP BY g, h      panes of a minute, by g and h
    b   SELECT g, SUM(x) ... WHERE h = 1   [WINDOW 1 hour]     GROUP BY g         reads them: h is a key, and what is
                                                                                  merged may be merged in fewer groups

A view whose panes are covered by those of another one reads these, and has none of its own. What it reads is written down
in the ledger with all that is needed to make it: it stays as it is when the other view changes or goes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from partwise.compile.model import PaneShape
from partwise.compile.program import Alternative, CompiledView, Runnable
from partwise.definitions.definitions import Statement
from partwise.definitions.yaml.places import Placed
from partwise.parts import Bound, Reference, duration_text
from partwise.sql.canonical import canonical_of
from partwise.sql.linear import fold
from partwise.sql.parse import tokenise
from partwise.sql.references import Analysis, FoundReference, FoundReferences


@dataclass(frozen=True)
class Cover:
    """The panes that a view reads: what makes them, and how they become its own.

    `mark` is that of the view. `columns` of its panes by those that it reads, `counts` which of them are never NULL, `where`
    which groups it reads. `whole`: it has a row also where there is none.
    """

    mark: str
    name: str
    meaning: str
    part: int
    text: str
    table: str
    alias: str | None
    start: int
    end: int
    brackets: str
    columns: tuple[tuple[str, str], ...]
    counts: tuple[str, ...]
    where: str
    whole: bool
    groups: tuple[str, ...]

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Cover:
        raw = json.loads(text)
        raw["columns"] = tuple((read, own) for read, own in raw["columns"])
        return cls(**{**raw, "counts": tuple(raw["counts"]), "groups": tuple(raw["groups"])})


def panes_of(view: CompiledView) -> Runnable | None:
    """The shared panes that merging reads, if they are its only helper."""
    merged = next((way for way in view.alternatives if way.strategy == "merge"), None)
    if view.panes is None or merged is None or len(merged.helpers) != 1 or merged.helpers[0].meaning is None:
        return None
    return merged.helpers[0]


def cover(view: CompiledView, other: CompiledView) -> Cover | None:
    """What it takes for `view` to read the panes of the other one; None if they do not hold what it needs, or are its own."""
    own, panes = panes_of(view), panes_of(other)
    if own is None or panes is None or view.panes is None or other.panes is None or own.name == panes.name:
        return None
    found = _matched(view.panes, other.panes)
    reads = panes.update.found.tables
    if found is None or not _alike(own, panes) or len(reads) != 1 or reads[0].brackets is None:
        return None
    columns, where = found
    return Cover(
        mark=view.mark,
        name=panes.name,
        meaning=str(panes.meaning),
        part=panes.part,
        text=panes.update.text,
        table=reads[0].table,
        alias=reads[0].alias,
        start=reads[0].start,
        end=reads[0].end,
        brackets=reads[0].brackets,
        columns=columns,
        counts=tuple(cell.name for cell in view.panes.cells if cell.counts),
        where=where,
        whole=not view.panes.keys and bool(other.panes.keys),
        groups=tuple(key.name for key in other.panes.keys),
    )


def _alike(own: Runnable, panes: Runnable) -> bool:
    """Begin and engine. Where a start is given, each helper begins where its own view needs it."""
    free = own.written.start.part is None and panes.written.start.part is None
    return free and own.start == panes.start and own.written.engine == panes.written.engine


def _matched(own: PaneShape, other: PaneShape) -> tuple[tuple[tuple[str, str], ...], str] | None:
    """Columns by columns, and the condition on groups."""
    if own.table != other.table or own.seconds % other.seconds:
        return None
    keys = {key.text: key for key in other.keys}
    cells = {cell.text: cell for cell in other.cells}
    conditions = {each.text for each in own.where}
    named = {key.column: key.name for key in other.keys if key.column is not None}
    if not all(key.text in keys or (key.columns and key.columns <= named.keys()) for key in own.keys):
        return None
    # The same cells: what nobody asked for could fail, and would make the view due when it alone changes.
    if {cell.text for cell in own.cells} != cells.keys():
        return None
    if not all(each.text in conditions for each in other.where):
        return None
    kept = {each.text for each in other.where}
    rest = [each for each in own.where if each.text not in kept]
    if not all(each.columns <= named.keys() for each in rest):
        return None
    # A key of others that is computed may fail where none of the view's own does.
    mine = {key.text for key in own.keys}
    if any(key.text not in mine and key.column is None for key in other.keys):
        return None
    columns = [(keys[key.text].name if key.text in keys else _over(key.written, named), key.name) for key in own.keys]
    columns += [(cells[cell.text].name, cell.name) for cell in own.cells]
    return tuple(columns), " AND ".join(_over(each.written, named) for each in rest)


def _over(written: tuple[str, ...], names: Mapping[str, str]) -> str:
    """An expression of rows as one of groups."""
    return "".join(names[piece] if at % 2 else piece for at, piece in enumerate(written))


def covered(view: CompiledView, found: Cover) -> Alternative | None:
    """Merging from the panes of a cover. None if the view cannot be merged any more."""
    own = panes_of(view)
    way = next((each for each in view.alternatives if each.strategy == "merge"), None)
    if own is None or way is None or found.mark != view.mark or own.part % found.part:
        return None
    helper = replace(own, name=found.name, meaning=found.meaning, part=found.part, update=_panes(own, found))
    table = replace(way.table, update=_reading(way.table.update, found, own.part // found.part))
    note = f"reads panes of {duration_text(found.part)}" + (f" by {', '.join(found.groups)}" if found.groups else "")
    note += f" where {found.where}" if found.where else ""
    return replace(way, table=table, helpers=(helper,), notes=(*way.notes, f"{note}, which others need as well"))


def _panes(own: Runnable, found: Cover) -> Statement:
    reference = fold(found.brackets, 0, "j")
    assert isinstance(reference, Reference)
    written = found.text[found.start : found.end]
    table = FoundReference(found.table, found.alias, reference, found.brackets, found.start, found.end, written)
    return _statement(own.update, found.text, FoundReferences((table,), (), "j"))


def _reading(final: Statement, found: Cover, ratio: int) -> Statement:
    """The view's query over the other panes, as if they were its own."""
    (read,) = final.found.tables
    assert read.reference is not None
    lo, hi = read.reference.lo, read.reference.hi
    reference = Reference(_scaled(lo, ratio, 0), _scaled(hi, ratio, ratio - 1))
    items = ", ".join(theirs if theirs == own else f"{theirs} AS {own}" for theirs, own in found.columns)
    before = f"(\n  SELECT {items} FROM "
    brackets = reference.text("j")
    written = found.name + brackets
    after = f" WHERE {found.where}" if found.where else ""
    if found.whole:
        nothing = (f"{'CAST(0 AS BIGINT)' if own in found.counts else 'NULL'} AS {own}" for _, own in found.columns)
        after += f"\n  UNION ALL SELECT {', '.join(nothing)}"
    text = f"{final.text[: read.start]}{before}{written}{after}\n){final.text[read.end :]}"
    start = read.start + len(before)
    table = FoundReference(found.name, None, reference, brackets[1:-1], start, start + len(written), written)
    return _statement(final, text, FoundReferences((table,), (), "j"))


def _scaled(bound: Bound, ratio: int, plus: int) -> Bound:
    return Bound(bound.times * ratio, bound.plus * ratio + plus, bound.over)


def _statement(like: Statement, text: str, found: FoundReferences) -> Statement:
    placed = Placed(text, like.placed.file, like.placed.runs, generated=True)
    return Statement(text, like.index, found, placed, canonical_of(text, Analysis(found, tokenise(text).tokens)))
