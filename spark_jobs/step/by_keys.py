"""Which repair a change of the inputs allows. By keys, rows that it can touch are computed again, the others stay:

    changed rows of the inputs -> touched keys -> the query over inputs with these keys -> rows that replace

The text of the query is untouched: what each reference reads is filtered, and so is the result. Whatever speaks
against it (an input that carries nothing, files that are gone, too many keys) leads to computing the parts again.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sqlalchemy import bindparam, select

from partwise.choose.repair import Figures, RepairDecision, choose, is_small
from partwise.compile.relations import Relation, Relations
from partwise.ledger.read.pin import Past
from partwise.ledger.records.repairs import MeasuredRepair, outcomes
from partwise.ledger.schema import part
from partwise.parts import FOREVER, Parts, Range
from partwise.relation.restriction import Restriction, restriction, to_columns
from partwise.sql.columns import named_in
from partwise.sql.references import FoundReference
from partwise.sql.types.names import INTEGERS, normal
from partwise.storage import File, Handle, StorageError
from partwise.storage import schema as schemas
from spark_jobs.retry import SPARK_ERRORS, is_infrastructure, message_of
from spark_jobs.step import read
from spark_jobs.step.by_merging import Merging
from spark_jobs.step.changed_rows import Changed, changed
from spark_jobs.step.compute import Computing
from spark_jobs.step.keys import MOST, AnyOf, TouchedKeys, distinct_values, rows_with

log = logging.getLogger("partwise.step")

#: Types whose values come back from the driver as they went there.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPES = INTEGERS | {"string", "boolean", "date"}
_OWN = select(part.c.part, part.c.changed_seq, part.c.self_as_of).where(
    part.c.table == bindparam("t"), part.c.part.between(bindparam("a"), bindparam("b"))
)
#: What the ledger calls views of which Spark refused a repair: they are computed again for a while.
REPAIR = "repair"


@dataclass(frozen=True)
class Touching:
    """Keys that a change touches in some parts, and how they restrict what is read."""

    parts: Parts
    keys: AnyOf
    plan: Restriction
    decision: RepairDecision
    figures: Figures
    merging: Merging | None = None
    unique: bool = False  # a key has at most one row in a part

    def is_small(self, rows: int) -> bool:
        """Whether at most so many rows come of it, as far as can be told before."""
        if self.figures.result <= rows and self.figures.changed <= rows:
            return True
        return self.unique and self.keys.count * self.parts.count <= rows

    def few(self, occurrence: int, handle: Handle, wanted: Parts | None, text: str) -> DataFrame | None:
        """What a reference of the query `text` has to read, if that are a few rows that are found without Spark."""
        by = self.plan.filters.get(occurrence)
        if by is None:
            return None
        listed = handle.files if wanted is None else handle.files_of(wanted)
        files = [file for file in listed if self.may_matter(occurrence, file)]
        named = {schemas.PART, *named_in(text, handle.columns)}
        return rows_with(
            self.keys.spark, handle, files, wanted, self.keys, by, [c for c in handle.columns if c in named]
        )

    def filtered(self, occurrence: int, rows: DataFrame) -> DataFrame:
        """What a reference has to read."""
        by = self.plan.filters.get(occurrence)
        return rows if by is None else self.keys.inside(rows, by)

    def may_matter(self, occurrence: int, file: File) -> bool:
        """Whether a file may hold rows that a reference has to read, by the statistics of plain columns."""
        by = self.plan.filters.get(occurrence)
        return by is None or any(keys.may_be_in(file, each) for keys, each in zip(self.keys.sets, by, strict=True))


@dataclass
class Repairs:
    """The repairs of one step."""

    computing: Computing
    #: How the parts that were looked at last are repaired, if there was a choice.
    chosen: tuple[RepairDecision, Figures] | None = None
    #: Whether one could not be carried out: the rest of the step computes parts again.
    failed: bool = False

    @cached_property
    def _past(self) -> list[MeasuredRepair]:
        with self.computing.engine.ledger.database.reading() as r:
            return outcomes(r, self.computing.view.name)

    @property
    def are_possible(self) -> bool:
        """Whether anything but computing parts again comes into question."""
        view, table = self.computing.view, self.computing.pin.table
        # INITIALIZE is another query, and whether it made a part cannot be seen from the part.
        never = view.initialize is not None or table.self_references or table.rolling
        return not self.failed and bool(self.computing.pin.past) and self._wanted != "recompute" and not never

    @cached_property
    def repairable(self) -> Parts:
        """Due parts that may be repaired from what they hold; new parts that are due with them are computed for themselves,
        or these would be computed again as well."""
        parts = Parts.of(*(span for past in self.computing.pin.past for span in past.parts.ranges))
        return parts if parts and self.are_possible and not self._recomputed_by_default(parts) else Parts()

    def _recomputed_by_default(self, parts: Parts) -> bool:
        """Whether `auto` computes parts again before it looks at the query, which takes time as well."""
        rows = self._rows(parts)
        read = sum(rows.values()) + self._spread(parts, rows)
        return self._wanted == "auto" and (is_small(read, self._result(parts)) or REPAIR in self.computing.careful)

    @property
    def _wanted(self) -> str:
        return self.computing.engine.repair_by or self.computing.view.written.repair_by

    def along(self) -> Touching | None:
        """The keys that changes of other tables touch in all due parts of a view that reads its own parts before, and how
        they restrict what is read of it. None: parts are computed whole.

        What such a part holds follows from the keys of the part before only if each of its own references carries them as
        they are, and if the parts before are what the due parts were computed from.
        """
        self.chosen = None
        view, pin, wanted = self.computing.view, self.computing.pin, self._wanted
        never = view.single_pass is not None or view.checks or pin.table.rolling
        if wanted not in ("auto", "keys") or never:
            return None
        other = pin.due - Parts.of(*(span for past in pin.past for span in past.parts.ranges))
        parts = (pin.due | pin.reach).within(pin.start + 1, other.first - 1 if other else FOREVER)
        if not parts or parts.first > pin.due.first or pin.due.first <= pin.start:
            return None
        small = is_small(sum(self._rows(parts).values()), self._result(parts))
        if wanted == "auto" and (small or REPAIR in self.computing.careful):
            return None
        if self._own_changed(pin.due & parts):
            return None
        try:
            return self._along(parts, wanted)
        except (StorageError, *SPARK_ERRORS) as why:
            if isinstance(why, SPARK_ERRORS) and is_infrastructure(why):
                raise
            log.info("%s is computed again: %s", view.name, message_of(why).partition("\n")[0])
            return None

    def _along(self, parts: Parts, wanted: str) -> Touching | None:
        pasts = [replace(past, parts=past.parts & parts) for past in self.computing.pin.past]
        found = self._changes([past for past in pasts if past.parts])
        moved = {n: some for n, changes in (found or {}).items() if (some := [c for c in changes if c])}
        own = [n for n, reference in enumerate(self._references()) if self._is_own(reference)]
        if found is None or not moved or any(c.most_rows is None for changes in moved.values() for c in changes):
            return None
        plan = restriction(self._carried, [*moved, *own], self._relation.key or ())
        if plan is None or len(plan.sets) > 1:
            return None
        (only,) = plan.sets
        if any(only.taken[n] != tuple(f"`{c}`" for c in only.columns) for n in own):
            return None
        figures = self._figures(parts, moved, plan)
        if figures is None:
            return None
        decision = choose(wanted, figures, ("keys",), self._past)
        self.chosen = decision, figures
        if decision.by != "keys":
            return None
        keys = AnyOf(self.computing.engine.spark, (self._taken(plan, 0, moved),))
        if len(keys.sets[0].values) > MOST:
            return None
        return Touching(parts, keys, plan, decision, figures)

    def _is_own(self, reference: FoundReference) -> bool:
        return self.computing.spelled(reference.table) == self.computing.pin.table.name

    def _own_changed(self, due: Parts) -> bool:
        """Whether a due part reads another part of the view that has changed since."""
        pin = self.computing.pin
        spans = [
            reference.requires(j) for reference in pin.table.self_references for j in (pin.due.first, pin.due.last)
        ]
        given = {"t": pin.table.name, "a": min(s.lo for s in spans), "b": pin.due.last}
        with self.computing.engine.ledger.database.reading() as r:
            rows = {row.part: row for row in r.on.execute(_OWN, given)}
        return any(
            p in rows and rows[p].changed_seq > rows[j].self_as_of
            for j in due
            for reference in pin.table.self_references
            for p in range(*_half_open(reference.requires(j)))
        )

    def touching(self, parts: list[int]) -> Touching | None:
        """What to compute of these parts; None: all of it."""
        self.chosen = None
        if not self.are_possible:
            return None
        view, pin, wanted = self.computing.view, self.computing.pin, self._wanted
        pasts = [replace(past, parts=past.parts & Parts.single(*parts)) for past in pin.past]
        if sum(past.parts.count for past in pasts) < len(parts):
            return None
        if self._recomputed_by_default(Parts.single(*parts)):
            return None
        try:
            return self._touching(Parts.single(*parts), [past for past in pasts if past.parts], wanted)
        except (StorageError, *SPARK_ERRORS) as why:
            if isinstance(why, SPARK_ERRORS) and is_infrastructure(why):
                raise
            log.info("%s is computed again: %s", view.name, message_of(why).partition("\n")[0])
            return None

    def _touching(self, parts: Parts, pasts: list[Past], wanted: str) -> Touching | None:
        relation = self._relation
        found = self._changes(pasts)
        if found is None:
            return None
        moved = {n: some for n, changes in found.items() if (some := [c for c in changes if c])}
        if not moved:
            return None  # something else made the part stale
        plan = restriction(self._carried, moved, relation.key or ())
        # Parts that were computed at different times miss different rows.
        merging = self._merging(moved) if len(pasts) == 1 else None
        figures = self._figures(parts, moved, plan)
        possible = [by for by, way in (("keys", plan), ("merge", merging)) if way is not None]
        if not possible or figures is None:
            return None
        decision = choose(wanted, figures, possible, self._past)
        self.chosen = decision, figures
        spark = self.computing.engine.spark
        if decision.by == "merge" and merging is not None:
            return Touching(
                parts,
                AnyOf(spark, ()),
                to_columns(self._carried, merging.delta.groups or ()),
                decision,
                figures,
                merging,
                unique=merging.delta.groups is not None,
            )
        if decision.by != "keys" or plan is None:
            return None
        keys = AnyOf(spark, tuple(self._taken(plan, at, moved) for at in range(len(plan.sets))))
        if any(len(each.values) > MOST for each in keys.sets) or not keys.can_be_joined:
            return None
        own = set(relation.key or ())
        unique = relation.key is not None and all(own <= set(each.columns) for each in keys.sets)
        return Touching(parts, keys, plan, decision, figures, unique=unique)

    def _merging(self, moved: Mapping[int, list[Changed]]) -> Merging | None:
        """Changed rows can be merged if one reference changed, and the groups can be named."""
        if len(moved) != 1 or not self._relation.repair("merge").possible:
            return None
        if self.computing.view.single_pass is not None:
            return None  # many parts at once are another text, in which references have other numbers
        groups = self._relation.delta.groups or ()
        if not set(groups) <= self._followed:
            return None
        ((occurrence, changes),) = moved.items()
        return Merging(occurrence, changes, self._relation.delta)

    # -- what is known of the query

    @cached_property
    def _relation(self) -> Relation:
        """With the types that the inputs really have."""
        definitions = self.computing.engine.definitions
        stored: dict[str, Mapping[str, str]] = {}
        for name in (*self.computing.pin.inputs, self.computing.pin.table.name):
            if (handle := self.computing.handle(name)) is not None:
                stored[name] = columns_of(handle)
        return Relations(definitions, stored).of(self.computing.view)

    @cached_property
    def _carried(self) -> dict[int, dict[str, str]]:
        """Without columns whose values do not travel, or that the table stores as another type than the query gives."""
        found = self._relation.carried.items()
        return {n: {c: sql for c, sql in columns.items() if c in self._followed} for n, columns in found}

    @cached_property
    def _followed(self) -> set[str]:
        """Columns of the result whose values can be named to Spark."""
        assert self.computing.own is not None
        tree, stored = self._relation.tree, columns_of(self.computing.own)
        kinds = dict(zip(tree.names, tree.types, strict=True))
        return {n for n, kind in kinds.items() if kind in _TYPES and normal(stored.get(n)) == kind}

    @property
    def layout(self) -> tuple[str, ...]:
        """Columns by which the rows of a part are sorted: those by which late rows of the first reference that carries any
        are repaired."""
        view, relation = self.computing.view, self._relation
        if view.initialize is not None or self.computing.pin.table.self_references:
            return ()
        kinds = dict(zip(relation.tree.names, relation.tree.types, strict=True))
        for n, reference in enumerate(self._references()):
            found = {
                c: sql for c, sql in relation.carried.get(n, {}).items() if kinds[c] in _TYPES and _PLAIN.fullmatch(c)
            }
            if reference.reference is not None and found:
                plan = restriction({n: found}, [n], relation.key or ())
                return plan.sets[0].columns if plan is not None else ()
        return ()

    # -- what changed

    def _references(self) -> tuple[FoundReference, ...]:
        return self.computing.view.update.found.tables

    def _changes(self, pasts: list[Past]) -> dict[int, list[Changed]] | None:
        """By occurrence in the text; None where it cannot be told."""
        found: dict[int, list[Changed]] = {}
        for n, reference in enumerate(self._references()):
            table = self.computing.spelled(reference.table)
            if table == self.computing.pin.table.name:
                continue
            new = self.computing.handle(table)
            for past in pasts:
                then, now = past.inputs[table], self.computing.pin.inputs[table]
                wanted, touched = _wanted(reference, past.parts), past.changed[table]
                wanted = None if wanted is None else wanted & touched
                if not touched or (wanted is not None and not wanted):
                    continue
                if new is None or then.version is None or then.generation != now.generation:
                    return None
                old = self.computing.engine.open(table, then)
                difference = None if old is None else changed(new, old, wanted)
                if difference is None:
                    return None
                found.setdefault(n, []).append(difference)
        return found

    def _figures(self, parts: Parts, moved: Mapping[int, list[Changed]], plan: Restriction | None) -> Figures | None:
        rows = self._rows(parts)
        most = [c.most_rows for changes in moved.values() for c in changes]
        if None in most:
            return None
        filtered = plan.filters if plan is not None else {}
        return Figures(
            carrying=sum(count for n, count in rows.items() if n in filtered),
            whole=sum(count for n, count in rows.items() if n not in filtered),
            result=self._result(parts),
            changed=sum(m or 0 for m in most),
            joined=sum(count for n, count in rows.items() if n not in moved),
            spread=self._spread(parts, rows),
            saved=self._saved(parts, rows),
        )

    def _saved(self, parts: Parts, rows: Mapping[int, int]) -> int:
        """Rows that are not read because what is kept is read instead: only where that holds for every part."""
        less = 0
        numbers: frozenset[int] | None = None
        for j in parts:
            state = self.computing.kept_output(j)
            if state is None or numbers not in (None, state.kept):
                return 0
            numbers = state.kept
            less += sum(self.computing.pin.kept[name].rows[j] for name in state.helpers)
        return max(0, sum(rows[n] for n in numbers or () if n in rows) - less)

    def _spread(self, parts: Parts, rows: Mapping[int, int]) -> int:
        """By how much the rows are more that each of these parts reads for itself. A single pass reads them once."""
        found = 0
        for n, reference in enumerate(self._references() if self.computing.view.single_pass is None else ()):
            wanted = _wanted(reference, parts)
            if wanted and reference.reference is not None:
                times = sum(reference.reference.requires(j).size for j in parts)
                found += rows[n] * (times - wanted.count) // wanted.count
        return found

    def _rows(self, parts: Parts) -> dict[int, int]:
        """Rows in the files that a reference reads, by its number."""
        rows: dict[int, int] = {}
        for n, reference in enumerate(self._references()):
            handle, wanted = self.computing.handle(self.computing.spelled(reference.table)), _wanted(reference, parts)
            files = () if handle is None else handle.files if wanted is None else handle.files_of(wanted)
            rows[n] = sum(file.rows or 0 for file in files)
        return rows

    def _result(self, parts: Iterable[int]) -> int:
        """Rows that these parts hold."""
        return sum(self.computing.pin.before[j].rows for j in parts)

    def _taken(self, plan: Restriction, at: int, moved: Mapping[int, list[Changed]]) -> TouchedKeys:
        """The values of one set, from the changed rows."""
        spark, touched = self.computing.engine.spark, plan.sets[at]
        assert self.computing.own is not None
        stored = columns_of(self.computing.own)
        types = tuple(stored[c] for c in touched.columns)
        found: dict[tuple[object, ...], None] = {}
        for n, sql in touched.taken.items():
            wanted = [f"CAST({e} AS {t}) AS k{i}" for i, (e, t) in enumerate(zip(sql, types, strict=True))]
            for change in moved.get(n, ()):
                few = change.few()
                values = None if few is None else distinct_values(few, sql)
                if values is None:
                    # Of values in memory it needs no job.
                    rows = change.rows(spark) if few is None else read.in_memory(spark, few)
                    rows = rows.selectExpr(*wanted)
                    values = [
                        tuple(row) for row in (rows.distinct().limit(MOST + 1) if few is None else rows).collect()
                    ]
                found |= dict.fromkeys(values)
        return TouchedKeys(touched.columns, types, tuple(found)[: MOST + 1])


def layout_of(computing: Computing) -> tuple[str, ...]:
    """By which columns the rows of a part of this view are sorted; none where its query is not understood."""
    try:
        return Repairs(computing).layout
    except Exception as why:  # the order of rows is worth nothing against a view that is not built
        log.info("%s is not sorted by its keys: %s", computing.view.name, message_of(why).partition("\n")[0])
        return ()


def touched_files(handle: Handle, paths: list[str]) -> tuple[File, ...]:
    """The files of the table among paths as Spark names them."""
    from urllib.parse import unquote

    ends = {unquote(path) for path in paths}
    return tuple(file for file in handle.files if any(path.endswith(f"/{file.path}") for path in ends))


def _half_open(span: Range) -> tuple[int, int]:
    return span.lo, span.hi + 1


def _wanted(reference: FoundReference, parts: Parts) -> Parts | None:
    if reference.reference is None:
        return None
    bounds = reference.reference
    return Parts.of(*((bounds.lo.at(lo), bounds.hi.at(hi)) for lo, hi in parts.ranges))


def columns_of(handle: Handle) -> dict[str, str]:
    """Content columns and their types as SQL writes them."""
    hidden = {schemas.PART, schemas.PART_TIMESTAMP, "_file"}
    return {name: schemas.sql_type(kind) for name, kind in schemas.fields(handle.schema) if name not in hidden}


def part_rows(rows: DataFrame, parts: Parts) -> DataFrame:
    return rows.where(read.in_parts(parts) if parts else F.lit(False))
