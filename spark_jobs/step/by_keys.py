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

from partwise.choose import repair
from partwise.choose.repair import Figures, RepairDecision, choose, is_small
from partwise.compile.relations import Relation, Relations
from partwise.ledger.read.pin import Past
from partwise.ledger.records.repairs import MeasuredRepair, outcomes
from partwise.parts import Parts
from partwise.relation.restriction import Restriction, restriction, to_columns
from partwise.sql.references import FoundReference
from partwise.sql.types.names import INTEGERS, normal
from partwise.storage import File, Handle, StorageError
from partwise.storage import schema as schemas
from spark_jobs.retry import SPARK_ERRORS, is_infrastructure, message_of
from spark_jobs.step import read
from spark_jobs.step.by_merging import Merging
from spark_jobs.step.changed_rows import Changed, changed
from spark_jobs.step.compute import Computing
from spark_jobs.step.keys import MOST, AnyOf, TouchedKeys

log = logging.getLogger("partwise.step")

#: Types whose values come back from the driver as they went there.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPES = INTEGERS | {"string", "boolean", "date"}


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

    def filtered(self, occurrence: int, rows: DataFrame) -> DataFrame:
        """What a reference has to read."""
        by = self.plan.filters.get(occurrence)
        return rows if by is None else self.keys.inside(rows, by)


@dataclass
class Repairs:
    """The repairs of one step."""

    computing: Computing
    #: How the parts that were looked at last are repaired, if there was a choice.
    chosen: tuple[RepairDecision, Figures] | None = None

    @cached_property
    def _past(self) -> list[MeasuredRepair]:
        with self.computing.engine.ledger.database.reading() as r:
            return outcomes(r, self.computing.view.name)

    def touching(self, parts: list[int]) -> Touching | None:
        """What to compute of these parts; None: all of it."""
        self.chosen = None
        view, pin = self.computing.view, self.computing.pin
        pasts = [replace(past, parts=past.parts & Parts.single(*parts)) for past in pin.past]
        covered = sum(past.parts.count for past in pasts)
        wanted = self.computing.engine.repair_by or view.written.repair_by
        # INITIALIZE is another query, and whether it made a part cannot be seen from the part.
        if (
            wanted == "recompute"
            or covered < len(parts)
            or view.initialize is not None
            or pin.table.self_references
            or pin.table.rolling
        ):
            return None
        read = sum(self._rows(Parts.single(*parts)).values())
        if wanted == "auto" and (not repair.AUTOMATIC or is_small(read, self._result(parts))):
            return None  # before the query is looked at, which takes time as well
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
        for name in self.computing.pin.inputs:
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
        )

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
                values = change.values(spark)
                rows = change.rows(spark) if values is None else values
                rows = rows.selectExpr(*wanted)
                rows = rows.distinct().limit(MOST + 1) if values is None else rows
                found |= dict.fromkeys(tuple(row) for row in rows.collect())
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
