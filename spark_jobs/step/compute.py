"""The query of one part: the text as written, with each reference replaced by exactly the parts it means.

Of many parts it is the lifted text, or that of a single pass, over rows that know the part they go to.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import count

from pyspark.sql import DataFrame

from partwise.compile import MANY_ROWS
from partwise.compile.many_parts import INDEX, PARTS, Lifted, spread
from partwise.compile.program import Runnable
from partwise.compile.single_pass import FIRST, LAST
from partwise.definitions import Placed, Statement
from partwise.ledger.read.pin import Pin
from partwise.ledger.records import careful
from partwise.parts import Parts, Range, Reference
from partwise.sql.references import FoundReference, FoundReferences, find, splice
from partwise.storage import File, Handle
from partwise.storage import schema as schemas
from partwise.storage.unique import unique
from spark_jobs.engine import Engine
from spark_jobs.retry import SPARK_ERRORS, message_of
from spark_jobs.step import read
from spark_jobs.step.stage import with_part

#: Columns that are about storage, not content. A query that names them sees the first two; `*` alone does not.
PART_COLUMNS = (schemas.PART, schemas.PART_TIMESTAMP)
HIDDEN = (*PART_COLUMNS, "_file")
_NAMED = re.compile(r"\bpart(_timestamp)?\b", re.IGNORECASE)
_names = count()
#: A line of the query as it ran, perhaps cut, and below it the marks under what failed.
_CONTEXT = re.compile(r"== SQL \(line \d+, position \d+\) ==\n([^\n]+)\n( *)(\^+)")
_WHERE = re.compile(r"[Ll]ine (\d+),? pos(?:ition)? (\d+)")


class QueryFailed(Exception):
    """A view's query cannot be run; the message names the place in its YAML file."""


@dataclass
class Computing:
    """The work on one pinned step. Parts of the view itself that the step made are read from where they were staged."""

    engine: Engine
    pin: Pin
    own: Handle | None
    made: dict[int, tuple[File, ...]] = field(default_factory=dict)
    _handles: dict[str, Handle | None] = field(default_factory=dict)
    _views: dict[tuple[str, Range | None, bool], str] = field(default_factory=dict)
    _kept: list[str] = field(default_factory=list)

    @property
    def view(self) -> Runnable:
        found = self.engine.definition(self.pin.table.name)
        assert isinstance(found, Runnable)
        return found

    def rows(self, j: int) -> DataFrame:
        """The result of part j with its part columns, not yet computed. Raises QueryFailed."""
        statement = self.statement(j)
        text, found = statement.text, statement.found
        if (fast := self._fast(j)) is not None:
            text, found = fast, _found(fast)
        try:
            named = _NAMED.search(text) is not None
            rows = self.engine.spark.sql(splice(text, lambda f: self._name(f, j, named), found=found))
            return with_part(rows.drop(*PART_COLUMNS) if named else rows, j, self.pin.table.length)
        except SPARK_ERRORS as why:
            raise QueryFailed(explained(why, statement.placed)) from why

    def _fast(self, j: int) -> str | None:
        """The update for parts with at most one row in each group, where there is one and nothing speaks against it."""
        if j == self.pin.start or self.view.fast_update is None:
            return None
        if (known := self._unique(j)) is not None:
            return self.view.unique_update if known else None
        return None if "fast" in self.careful else self.view.fast_update

    def _unique(self, j: int) -> bool | None:
        """Whether no group has two rows in the part; None if only trying tells."""
        if self.view.unique_update is None:
            return None
        read_by = next(f for f in _found(self.view.unique_update).parts if self._spelled(f.table) in self.pin.inputs)
        handle = self._handle(self._spelled(read_by.table))
        if handle is None or read_by.reference is None:
            return None
        return unique(handle, Parts.of(read_by.reference.requires(j)), self.view.unique_by)

    def many_rows(self, why: Exception) -> bool:
        """Whether the fast update failed only because a group has several rows. It is then left alone for a while."""
        if MANY_ROWS not in message_of(why) or self.view.fast_update is None:
            return False
        self.give_up("fast", MANY_ROWS)
        return True

    @cached_property
    def careful(self) -> set[str]:
        """Short ways that failed, in this process or another one."""
        with self.engine.ledger.database.reading() as r:
            table = self.pin.table
            return set(careful.not_to_be_tried(r, table.name, table.fingerprint, self.engine.now()))

    def give_up(self, way: str, why: str) -> None:
        """A short way failed: it is left alone for a while, by whoever computes this table."""
        self.careful.add(way)
        with self.engine.ledger.database.writing(self.engine.now()) as w:
            careful.remember(w, self.pin.table.name, way, self.pin.table.fingerprint, why)

    # -- many parts

    def lifted(self, lifted: Lifted, parts: Parts) -> DataFrame:
        """The result of many parts, from the update query rewritten for them. Raises what Spark raises."""
        named = _NAMED.search(lifted.text) is not None
        names = {PARTS: self._keep(self.engine.spark.sql(_listed(parts)))}
        for item in lifted.inputs:
            rows = self._spread(item.table, item.reference, parts, item.column or INDEX, named)
            names[item.name] = self._keep(rows)
        return self._placed(self.engine.spark.sql(lifted.named(names)))

    def single_pass(self, text: str, parts: Range) -> DataFrame:
        """The result of consecutive parts of a view that reads its own part before. Raises what Spark raises."""
        named = _NAMED.search(text) is not None

        def name(found: FoundReference) -> str:
            if self._spelled(found.table) == self.pin.table.name:
                before = self._own(Range(parts.lo - 1, parts.lo - 1))
                return self._keep(before.drop(*HIDDEN))
            return self._keep(self._spread(found.table, found.reference, Parts.of(parts), INDEX, named))

        text = splice(text, name, found=_found(text)).replace(FIRST, f"{parts.lo}L").replace(LAST, f"{parts.hi}L")
        return self._placed(self.engine.spark.sql(text))

    def near(self, text: str, parts: Parts) -> DataFrame:
        """The result of many parts from rows as they are: the text itself finds the part of each. Raises what Spark raises."""
        first, last = parts.first, parts.last

        def name(found: FoundReference) -> str:
            reference = found.reference
            wanted = None if reference is None else Parts.of((reference.lo.at(first), reference.hi.at(last)))
            return self._keep(self._input(self._spelled(found.table), wanted).drop("_file"))

        text = splice(text, name, found=_found(text)).replace(FIRST, f"{first}L").replace(LAST, f"{last}L")
        return self._placed(self.engine.spark.sql(text).where(read.in_parts(parts, INDEX)))

    def _placed(self, rows: DataFrame) -> DataFrame:
        """With the columns that every table stores, made of the index."""
        hidden = {INDEX, *PART_COLUMNS}
        content = [schemas.quoted(name) for name in rows.columns if name.lower() not in hidden]
        stamp = f"timestamp_seconds({INDEX} * {self.pin.table.length}L) AS {schemas.PART_TIMESTAMP}"
        return rows.selectExpr(f"{INDEX} AS {schemas.PART}", stamp, *content)

    def _spread(self, table: str, reference: Reference | None, parts: Parts, column: str, named: bool) -> DataFrame:
        """Rows of an input, each once for every part that reads it, which it has as its last column."""
        hidden = HIDDEN[2 if named else 0 :]
        if reference is None:
            return self._input(self._spelled(table), None).drop(*hidden)
        spans = [(reference.lo.at(lo), reference.hi.at(hi)) for lo, hi in parts.ranges]
        rows, way = self._input(self._spelled(table), Parts.of(*spans)), spread(reference)
        rows = rows.where(way.where) if way.gaps else rows
        rows = rows.selectExpr("*", way.column(column)).where(read.in_parts(parts, column))
        return rows.drop(*hidden)

    def _keep(self, rows: DataFrame) -> str:
        """A temporary view, until the step ends."""
        name = f"__part_{next(_names)}"
        rows.createOrReplaceTempView(name)
        self._kept.append(name)
        return name

    def statement(self, j: int) -> Statement:
        view = self.view
        return view.initialize if j == self.pin.start and view.initialize is not None else view.update

    def _name(self, found: FoundReference, j: int, named: bool) -> str:
        """A temporary view with exactly the rows that a reference means."""
        table = self._spelled(found.table)
        span = None if found.reference is None else found.reference.requires(j)
        own = table == self.pin.table.name
        key = (table, span, named)
        if own or key not in self._views:
            wanted = None if span is None else Parts.of(span)
            rows = self._own(span) if own and span is not None else self._input(table, wanted)
            self._views[key] = self._keep(rows.drop(*HIDDEN[2 if named else 0 :]))
        return self._views[key]

    def _spelled(self, name: str) -> str:
        known = (*self.pin.inputs, self.pin.table.name)
        return next(k for k in known if k.lower() == name.lower())

    def _handle(self, table: str) -> Handle | None:
        if table not in self._handles:
            self._handles[table] = self.engine.open(table, self.pin.inputs[table])
        return self._handles[table]

    def _input(self, table: str, wanted: Parts | None) -> DataFrame:
        handle = self._handle(table)
        if handle is None:
            raise QueryFailed(f"{table} has no content yet")
        return read.parts(self.engine.spark, handle, wanted)

    def _own(self, span: Range) -> DataFrame:
        """Earlier parts of the view: those of this step as staged, others as pinned, none before its start."""
        assert self.own is not None
        wanted = Parts.of((max(span.lo, self.pin.start), span.hi))
        fresh = Parts.single(*(p for p in self.made if p in wanted))
        rows = read.parts(self.engine.spark, self.own, wanted - fresh)
        files = dict.fromkeys(file for p in fresh for file in self.made[p])
        if not files:
            return rows
        # What was staged together with these parts may hold others.
        return rows.unionByName(read.staged(self.engine.spark, self.own, files).where(read.in_parts(fresh)))

    def close(self) -> None:
        for name in self._kept:
            self.engine.spark.catalog.dropTempView(name)


@cache
def _found(text: str) -> FoundReferences:
    return find(text)


def _listed(parts: Parts) -> str:
    """A query with the column j: these parts."""
    spans = ", ".join(f"sequence({lo}L, {hi}L)" for lo, hi in parts.ranges)
    return f"SELECT explode(flatten(array({spans}))) AS j"


def schema_of(rows: DataFrame) -> str:
    """The schema of a result as its table stores it. Raises BadSchema."""
    return schemas.normal(json.dumps(rows.schema.jsonValue()))


def explained(why: Exception, placed: Placed) -> str:
    """Spark's message, with its line and column as those of the YAML file."""
    said = message_of(why)
    first = said.split(";\n")[0].split("\n== SQL")[0].strip()
    if context := _CONTEXT.search(said):
        # What failed while running is quoted, and may be an expression of ours around the author's.
        line, before, marks = context.groups()
        place = placed.at(max(0, placed.text.find(line[len(before) : len(before) + len(marks)])))
    else:
        match = _WHERE.search(said)
        place = placed.at_line(int(match[1]), int(match[2]) + 1) if match else placed.at(0)
    return f"{place}: {first}"
