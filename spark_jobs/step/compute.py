"""The query of one part: the text as written, with each reference replaced by exactly the parts it means.

Of many parts it is the lifted text, or that of a single pass, over rows that know the part they go to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from itertools import count
from typing import Any, Protocol

from pyspark.sql import DataFrame

from partwise.compile import MANY_ROWS
from partwise.compile.many_parts import INDEX, PARTS, Lifted, spread
from partwise.compile.program import KeptOutput, Runnable
from partwise.compile.single_pass import FIRST, LAST
from partwise.definitions import Placed, Statement
from partwise.ledger.read.pin import Pin
from partwise.ledger.records import careful
from partwise.parts import Parts, Range, Reference
from partwise.sql.references import FoundReference, FoundReferences, find, splice
from partwise.storage import File, Handle
from partwise.storage import schema as schemas
from partwise.storage.unique import unique
from spark_jobs import versions
from spark_jobs.engine import Engine
from spark_jobs.retry import SPARK_ERRORS, message_of
from spark_jobs.step import read
from spark_jobs.step.stage import with_part

#: Columns that are about storage, not content. A query that names them sees the first two; `*` alone does not.
PART_COLUMNS = (schemas.PART, schemas.PART_TIMESTAMP)
HIDDEN = (*PART_COLUMNS, "_file")
_names = count()
#: What queries were found to give, by all that it follows from: to look through a query takes Spark its time.
_schemas: dict[tuple[object, ...], str] = {}
#: A line of the query as it ran, perhaps cut, and below it the marks under what failed.
_CONTEXT = re.compile(r"== SQL \(line \d+, position \d+\) ==\n([^\n]+)\n( *)(\^+)")
_WHERE = re.compile(r"[Ll]ine (\d+),? pos(?:ition)? (\d+)")


class QueryFailed(Exception):
    """A view's query cannot be run; the message names the place in its YAML file."""


class Restricting(Protocol):
    """What a repair needs of each reference, by its number in the text."""

    def filtered(self, occurrence: int, rows: DataFrame) -> DataFrame: ...

    def may_matter(self, occurrence: int, file: File) -> bool: ...

    def few(self, occurrence: int, handle: Handle, wanted: Parts | None, text: str) -> DataFrame | None: ...


@dataclass
class SharedInputs:
    """What is open of inputs, and temporary views of their parts: for all steps of one pin."""

    handles: dict[str, Handle | None] = field(default_factory=dict)
    views: dict[tuple[str, Range | None, bool], str] = field(default_factory=dict)


@dataclass
class Computing:
    """The work on one pinned step. Parts of the view itself that the step made are read from where they were staged."""

    engine: Engine
    pin: Pin
    own: Handle | None
    made: dict[int, tuple[File, ...]] = field(default_factory=dict)
    #: While a repair is computed: what the reference with this number in the text has to read.
    filtered: Callable[[int, DataFrame], DataFrame] | None = None
    #: Whether a file may hold what that reference has to read.
    may_matter: Callable[[int, File], bool] | None = None
    #: The same as values in memory, if they are few and can be found without Spark.
    few: Callable[[int, Handle, Parts | None, str], DataFrame | None] | None = None
    #: The reference whose changed rows alone are read, while a change is merged.
    changing: int | None = None
    #: Parts that were computed from kept outputs.
    from_kept: set[int] = field(default_factory=set)
    inputs: SharedInputs = field(default_factory=SharedInputs)
    _keeps: bool = True
    _joined: dict[tuple[str, int], str] = field(default_factory=dict)
    _kept: list[str] = field(default_factory=list)
    _memory: dict[int, Any] = field(default_factory=dict)  # tables of Arrow
    _asked: tuple[int, DataFrame] | None = None  # the part whose query was analysed for its schema

    @property
    def view(self) -> Runnable:
        found = self.engine.definition(self.pin.table.name)
        assert isinstance(found, Runnable)
        return found

    @property
    def rolling(self) -> bool:
        """Whether the table holds one part alone, and does not say which."""
        return self.pin.table.rolling

    def rows(self, j: int) -> DataFrame:
        """The result of part j with its part columns, not yet computed. Raises QueryFailed."""
        return with_part(self.result(j), j, self.pin.table.length)

    def first_schema(self) -> str:
        """The schema of the table by this query: INITIALIZE gives it, if there is one. Raises QueryFailed, BadSchema."""
        j = self.pin.start if self.view.initialize else self.pin.due.first
        if (asked := self._asks()) in _schemas:
            return _schemas[asked]
        keeps, self._keeps = self._keeps, False
        found = self.result(j)
        self._keeps = keeps
        if not self.pin.table.self_references and self.kept_output(j) is None:
            self._asked = (j, found)  # nothing that the step does changes it: it need not be analysed twice
        parts = [] if self.rolling else schemas.part_fields()
        fields = [*parts, *json.loads(found.schema.json())["fields"]]
        _schemas[asked] = schemas.normal(json.dumps({"type": "struct", "fields": fields}))
        return _schemas[asked]

    def _asks(self) -> tuple[object, ...]:
        """What the schema follows from."""
        view, inputs = self.view, {name: self.handle(name) for name in self.pin.inputs}
        handles = {**inputs, self.pin.table.name: self.own}
        stored = tuple((name, None if handle is None else handle.schema) for name, handle in handles.items())
        return hash(self.engine.spark), view.initialize and view.initialize.text, view.update.text, self.rolling, stored

    def result(self, j: int) -> DataFrame:
        """The result of part j without part columns, not yet computed. Raises QueryFailed."""
        if self._asked is not None and self._asked[0] == j and self.filtered is None:
            analysed, self._asked = self._asked[1], None
            return analysed
        statement = self.statement(j)
        text, found = statement.text, statement.found
        if (kept := self.kept_output(j)) is not None:
            text, found = kept.rest.text, kept.rest.found
            self.from_kept.add(j)
        elif self.filtered is None and (fast := self._fast(j)) is not None:
            text, found = fast, _found(fast)
        numbers = range(len(found.tables)) if kept is None else kept.occurrences
        try:
            named = found.names_part
            rows = self.engine.spark.sql(splice(text, lambda f: self._name(f, j, named, found, numbers), found=found))
            return rows.drop(*PART_COLUMNS) if named else rows
        except SPARK_ERRORS as why:
            raise QueryFailed(explained(why, statement.placed)) from why

    # -- kept outputs

    def kept_output(self, j: int) -> KeptOutput | None:
        """The kept output that part j can read in place of inputs: up to date as of the pin, and with fewer rows."""
        for state in self.view.states if self._keeps else ():
            if not all(self._is_kept(name, j) for name in state.helpers):
                continue
            if self.filtered is not None and (self.changing is None or self.changing in state.kept):
                continue  # what a repair filters, or merges, is rows of the inputs
            tables = [self.view.update.found.tables[n] for n in state.kept]
            kept = sum(self.pin.kept[name].rows[j] for name in state.helpers)
            if kept <= sum(self._rows_of(found, j) for found in tables):
                return state
        return None

    def _is_kept(self, helper: str, j: int) -> bool:
        parts = self.pin.kept.get(helper)
        return parts is not None and j in parts.rows and parts.at.version is not None

    def _rows_of(self, found: FoundReference, j: int) -> int:
        """Rows in the files that a reference reads."""
        handle = self.handle(self.spelled(found.table))
        if handle is None:
            return 0
        files = handle.files if found.reference is None else handle.files_of(Parts.of(found.reference.requires(j)))
        return sum(file.rows or 0 for file in files)

    def without_kept(self) -> bool:
        """Whether a part failed that had read a kept output: from now on, queries run as they are written."""
        used, self._keeps, self._asked = bool(self.from_kept) and self._keeps, False, None
        self.from_kept.clear()
        return used

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
        read_by = next(f for f in _found(self.view.unique_update).parts if self.spelled(f.table) in self.pin.inputs)
        handle = self.handle(self.spelled(read_by.table))
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
        named = self.view.update.found.names_part
        names = {PARTS: self._keep(self.engine.spark.sql(_listed(parts)))}
        for at, item in enumerate(lifted.inputs):
            rows = self._spread(item.table, item.reference, parts, item.column or INDEX, named, at)
            names[item.name] = self._keep(rows)
        return self._placed(self.engine.spark.sql(lifted.named(names)))

    def single_pass(self, text: str, parts: Range) -> DataFrame:
        """The result of consecutive parts of a view that reads its own part before. Raises what Spark raises."""
        references = _found(text)

        def name(found: FoundReference) -> str:
            if self.spelled(found.table) == self.pin.table.name:
                before = self._own(Range(parts.lo - 1, parts.lo - 1))
                return self._keep(before.drop(*HIDDEN))
            return self._keep(self._spread(found.table, found.reference, Parts.of(parts), INDEX, references.names_part))

        text = splice(text, name, found=references).replace(FIRST, f"{parts.lo}L").replace(LAST, f"{parts.hi}L")
        return self._placed(self.engine.spark.sql(text))

    def near(self, text: str, parts: Parts) -> DataFrame:
        """The result of many parts from rows as they are: the text itself finds the part of each. Raises what Spark raises."""
        first, last = parts.first, parts.last

        def name(found: FoundReference) -> str:
            reference = found.reference
            wanted = None if reference is None else Parts.of((reference.lo.at(first), reference.hi.at(last)))
            return self._keep(self._input(self.spelled(found.table), wanted).drop("_file"))

        text = splice(text, name, found=_found(text)).replace(FIRST, f"{first}L").replace(LAST, f"{last}L")
        return self._placed(self.engine.spark.sql(text).where(read.in_parts(parts, INDEX)))

    def _placed(self, rows: DataFrame) -> DataFrame:
        """With the columns that every table stores, made of the index."""
        hidden = {INDEX, *PART_COLUMNS}
        content = [schemas.quoted(name) for name in rows.columns if name.lower() not in hidden]
        stamp = f"timestamp_seconds({INDEX} * {self.pin.table.length}L) AS {schemas.PART_TIMESTAMP}"
        return rows.selectExpr(f"{INDEX} AS {schemas.PART}", stamp, *content)

    def _spread(
        self, table: str, reference: Reference | None, parts: Parts, column: str, named: bool, occurrence: int = -1
    ) -> DataFrame:
        """Rows of an input, each once for every part that reads it, which it has as its last column."""
        hidden = HIDDEN[2 if named else 0 :]
        if reference is None:
            return self._input(self.spelled(table), None, occurrence).drop(*hidden)
        spans = [(reference.lo.at(lo), reference.hi.at(hi)) for lo, hi in parts.ranges]
        rows, way = self._input(self.spelled(table), Parts.of(*spans), occurrence), spread(reference)
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

    def names_of(self, j: int) -> tuple[str, ...]:
        """Temporary views with what each reference of part j means, in the order of the text."""
        found = self.view.update.found
        return tuple(self._name(each, j, False, found, range(len(found.tables))) for each in found.tables)

    def _name(
        self, found: FoundReference, j: int, named: bool, among: FoundReferences, numbers: Sequence[int | None]
    ) -> str:
        """A temporary view with exactly the rows that a reference means. `numbers`: of references in the query as written."""
        if (number := numbers[among.tables.index(found)]) is None:
            return self._kept_rows(found, j)
        if self.filtered is not None:
            wanted = None if found.reference is None else Parts.of(found.reference.requires(j))
            if found.reference is not None and self.spelled(found.table) == self.pin.table.name:
                rows = self.filtered(number, self._own(found.reference.requires(j)))
            else:
                rows = self._input(self.spelled(found.table), wanted, number)
            # What a repair reads instead may be that of several parts.
            rows = rows if wanted is None else rows.where(read.in_parts(wanted))
            return self._keep(rows.drop(*HIDDEN[2 if named else 0 :]))
        table = self.spelled(found.table)
        span = None if found.reference is None else found.reference.requires(j)
        own = table == self.pin.table.name
        key = (table, span, named)
        if own or key not in self.inputs.views:
            wanted = None if span is None else Parts.of(span)
            rows = self._own(span) if own and span is not None else self._input(table, wanted)
            self.inputs.views[key] = self._keep(rows.drop(*HIDDEN[2 if named else 0 :]))
        return self.inputs.views[key]

    def _kept_rows(self, found: FoundReference, j: int) -> str:
        """What is kept for part j."""
        name, key = found.table, (found.table, j)
        if key not in self._joined:
            handle = self.engine.open(name, self.pin.kept[name].at)
            if handle is None:
                raise QueryFailed(f"{name} has no content yet")
            self._joined[key] = self._keep(read.parts(self.engine.spark, handle, Parts.single(j)).drop(*HIDDEN))
        return self._joined[key]

    def spelled(self, name: str) -> str:
        known = (*self.pin.inputs, self.pin.table.name)
        return next(k for k in known if k.lower() == name.lower())

    def handle(self, table: str) -> Handle | None:
        if table == self.pin.table.name:
            return self.own
        if table not in self.inputs.handles:
            self.inputs.handles[table] = self.engine.open(table, self.pin.inputs[table])
        return self.inputs.handles[table]

    def _input(self, table: str, wanted: Parts | None, occurrence: int = -1) -> DataFrame:
        handle = self.handle(table)
        if handle is None:
            raise QueryFailed(f"{table} has no content yet")
        if (old := self.pin.superseded.get(table)) is not None:
            try:
                return versions.rows_of(self.engine, table, old, handle)
            except versions.VersionLost as why:
                raise QueryFailed(str(why)) from why
        if self.filtered is None:
            return read.parts(self.engine.spark, handle, wanted)
        if self.few is not None:
            text = f"{self.view.update.text} {self.view.single_pass or ''}"
            if (few := self.few(occurrence, handle, wanted, text)) is not None:
                return few
        may = (lambda file: True) if self.may_matter is None else partial(self.may_matter, occurrence)
        return self.filtered(occurrence, read.parts(self.engine.spark, handle, wanted, may))

    @contextmanager
    def restricted(self, touching: Restricting) -> Iterator[None]:
        """References read only what a repair needs; parts of the view itself that it computes may be in memory."""
        self.filtered, self.may_matter, self.few = touching.filtered, touching.may_matter, touching.few
        try:
            yield
        finally:
            self.filtered = self.may_matter = self.few = None
            self.forget()

    def remember(self, j: int, rows: Any) -> None:
        """Part j of the view itself as Arrow, for the parts that read it, until its file is written."""
        self._memory[j] = rows

    def forget(self) -> None:
        """Nothing of the view itself is in memory any more."""
        self._memory.clear()

    def staged(self, parts: Iterable[int], files: tuple[File, ...]) -> None:
        """These parts are in these files now."""
        for j in parts:
            self.made[j] = files
            self._memory.pop(j, None)

    def _own(self, span: Range) -> DataFrame:
        """Earlier parts of the view: those of this step as computed, others as pinned, none before its start."""
        assert self.own is not None
        spark, wanted = self.engine.spark, Parts.of((max(span.lo, self.pin.start), span.hi))
        fresh = Parts.single(*(p for p in self.made if p in wanted))
        kept = Parts.single(*(p for p in self._memory if p in wanted))
        filled = [table for p in kept if (table := self._memory[p]).num_rows]
        frames = [read.from_arrow(spark, filled)] if filled else []
        if (rest := wanted - fresh - kept) or not frames:
            frames.append(read.parts(spark, self.own, rest))
        if files := dict.fromkeys(file for p in fresh for file in self.made[p]):
            # What was staged together with these parts may hold others.
            frames.append(read.staged(spark, self.own, files).where(read.in_parts(fresh)))
        return read.union(frames)

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
