"""Checks stored views against what their definitions say, from the stored sources alone.

Every part is computed from the text that its author wrote, after all parts that it reads have been
computed the same way; stored views are only looked at to be compared. Nothing here is shared with the
steps that built them: no staging, no digests, no strategies, no generated helpers.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from deltalake import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StructType

from partwise.definitions import View
from partwise.ledger.catalog import settled
from partwise.ledger.read.pin import Version, version_of, version_then
from partwise.ledger.records.readers import reading
from partwise.ledger.runs import due_rows, existing
from partwise.object_store import is_s3, spark_path
from partwise.parts import Parts, Range
from partwise.sql.references import FoundReferences, find
from partwise.storage.files import folder
from partwise.storage.handle import options
from spark_jobs.engine import Engine
from spark_jobs.paths import literal
from spark_jobs.step.copies import runs_here
from spark_jobs.verify.born import births, version_rows
from spark_jobs.verify.compare import different
from spark_jobs.verify.dimensions import conditioned, rows_by_part, valid_rows
from spark_jobs.verify.rounding import ERROR
from spark_jobs.verify.sketches import SketchBounds

#: Parts that are computed by one job where they do not read each other.
_AT_ONCE = 20
#: Up to so many files are read as they are, without Delta choosing among them for every part.
_FEW = 64
#: Columns of every table that are about storage; queries see the first two only if they name one of them.
_STORED = ("part", "part_timestamp", "_file")
_names = count()

#: Called with the table, the parts that are done, and all of its parts.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Verified:
    """`different`: table, part, rows expected, rows found.

    `stale` parts wait for a step, so they are old and known to be; `beyond` are those whose inputs are no
    longer kept. Neither can be checked. `left` are views that nobody waited for: Ctrl-C ended it before.
    """

    checked: int = 0
    different: tuple[tuple[str, int, int, int], ...] = ()
    stale: int = 0
    beyond: int = 0
    left: tuple[str, ...] = ()


@dataclass(frozen=True)
class KnownTable:
    """A table as the ledger knows it at one time."""

    length: int
    parts: Parts
    start: int | None
    at: Version
    due: Parts


@dataclass
class Expected:
    """What a view should hold: files of the scratch folder, each with the parts that it is for."""

    parts: Parts = field(default_factory=Parts)
    schema: StructType | None = None
    folders: list[tuple[Parts, str]] = field(default_factory=list)
    bounds: SketchBounds | None = None  # for approximate results


def verify(engine: Engine, only: Collection[str] | None = None, progress: Progress | None = None) -> Verified:
    """Compute every view (or `only` these) again and compare; every part that still can be computed."""
    # Upkeep leaves what is read here, however long it takes.
    with reading(engine.ledger.database, engine.now, engine.holder):
        return _verify(engine, only, progress)


def _verify(engine: Engine, only: Collection[str] | None, progress: Progress | None) -> Verified:
    scratch = f"_verify-{uuid.uuid4().hex[:12]}"
    if is_s3(engine.warehouse) and runs_here(engine.spark):
        # Hundreds of small results that nobody keeps: not worth the requests.
        with tempfile.TemporaryDirectory(prefix="partwise-") as here:
            return Checking(engine, f"{here}/{scratch}", progress).all(only)
    try:
        return Checking(engine, f"{engine.warehouse.rstrip('/')}/{scratch}", progress).all(only)
    finally:
        folder(engine.warehouse).delete_folder(scratch)


class Checking:
    def __init__(self, engine: Engine, scratch: str, progress: Progress | None) -> None:
        self.engine, self.scratch, self.progress = engine, scratch, progress
        self.spark = engine.spark
        program = engine.definitions
        #: As their authors wrote them: what was made of them is what is judged.
        self.definitions = {name: d for name, d in program.tables.items() if name in program.usable}
        self.graph = program.graph()
        with engine.ledger.database.reading() as r:
            self.known = {
                name: KnownTable(
                    table.length,
                    existing(r, name),
                    settled(r, name).start,
                    version_of(r, name),
                    Parts.of(*((row.lo, row.hi) for row in due_rows(r, name))),
                )
                for name, table in self.graph.tables.items()
            }
            self.births = births(r, self.graph, {name: known.start for name, known in self.known.items()})
            #: Where forward dimensions had each of their versions.
            self.held = {
                (name, seq): version_then(r, name, seq) for name, seqs in self.births.versions.items() for seq in seqs
            }
        self.expected: dict[str, Expected] = {}
        self.stored: dict[str, DataFrame] = {}
        self.stale: dict[str, Parts] = {}
        self.views: list[str] = []

    def all(self, only: Collection[str] | None) -> Verified:
        written = {n: d for n, d in self.definitions.items() if isinstance(d, View)}
        wanted = written.keys() if only is None else written.keys() & set(only)
        needed = self.graph.upstream(wanted)
        checked = stale = beyond = 0
        found: list[tuple[str, int, int, int]] = []
        left = [name for name in self.graph.order if name in wanted]
        try:
            for name in self.graph.order:
                if self.graph[name].kind == "view":
                    self.stale[name] = self._stale(name)
                if name not in written or name not in needed:
                    continue
                self.expected[name] = self._expect(written[name])
                if name in wanted:
                    there = self.known[name].parts
                    sure = self.expected[name].parts - self.stale[name]
                    differ = sorted(self._compare(name, sure).items())
                    checked, stale = checked + sure.count, stale + (there & self.stale[name]).count
                    beyond += (there - sure - self.stale[name]).count
                    found += [(name, part, *rows) for part, rows in differ]
                    left.remove(name)
        except KeyboardInterrupt:
            pass  # what was found by then counts
        return Verified(checked, tuple(found), stale, beyond, tuple(left))

    # -- what to compute --------------------------------------------------------------------------

    def _stale(self, name: str) -> Parts:
        """Existing parts that are due, or read some that are: the ledger says that they are old."""
        table, own = self.graph[name], self.known[name]
        old = set(own.due & own.parts)
        for j in own.parts:
            for item in table.initial if j == own.start else table.inputs:
                others = old if item.table == name else self.stale.get(item.table, Parts())
                if item.reference is not None and any(p in others for p in range_of(item.reference.requires(j))):
                    old.add(j)
        return Parts.single(*old)

    def _expect(self, view: View) -> Expected:
        if view.query is not None:
            from spark_jobs.verify.query import expect_query

            return expect_query(self, view)
        found = Expected()
        own = self.known[view.name]
        alone = view.name in {i.table for i in self.graph[view.name].inputs}
        some: list[int] = []
        self.expected[view.name] = found
        for j in own.parts:
            if not self._computable(view, j):
                continue
            some.append(j)
            if alone or len(some) == _AT_ONCE:
                self.keep(view, found, {p: self._rows(view, p) for p in some})
                some = []
        if some:
            self.keep(view, found, {p: self._rows(view, p) for p in some})
        return found

    def _computable(self, view: View, j: int) -> bool:
        table, start = self.graph[view.name], self.known[view.name].start
        for item in table.initial if j == start else table.inputs:
            if item.reference is None:
                continue
            span = item.reference.requires(j)
            lo = max(span.lo, start or span.lo) if item.table == view.name else span.lo
            if not self.has(item.table, Range(lo, span.hi)):
                return False
        return True

    def has(self, table: str, span: Range) -> bool:
        """Whether the content of all these parts is known from the sources."""
        if table in self.expected and self.expected[table].bounds is not None:
            return False  # only what lies near it is known
        known = self.expected[table].parts if table in self.expected else self.known[table].parts
        return known.covers(*span)

    # -- how to compute it ------------------------------------------------------------------------

    def _rows(self, view: View, j: int) -> DataFrame:
        first = view.initialize is not None and j == self.known[view.name].start
        statement = view.initialize if first else view.update
        assert statement is not None
        text, found = statement.text, statement.found
        if {self.spelled(f.table) for f in found.tables} & self.graph.timed:
            text, _ = conditioned(self, text, by_part=False)
            found = find(text, statement.index)
        spans = {f.start: None if f.reference is None else f.reference.requires(j) for f in found.tables}
        read = {self.spelled(f.table) for f in found.tables} & self.graph.forward
        return self.run(text, found, spans, {name: self.births.version(name, view.name, j) for name in read})

    def spelled(self, table: str) -> str:
        return next(name for name in self.graph.tables if name.lower() == table.lower())

    def run(
        self,
        text: str,
        found: FoundReferences,
        spans: Mapping[int, Range | None],
        versions: Mapping[str, int] | None = None,
        by_part: Mapping[int, int] | None = None,
    ) -> DataFrame:
        """The query with each table (by its place in the text) replaced by the rows of these parts, and each forward
        dimension by those of this version, or (`by_part`: by its place the place of a stream) of the stream's parts."""
        out, at = "", 0
        streams = {t.start: self.spelled(t.table) for t in found.tables}
        for table in found.tables:
            name = self.spelled(table.table)
            view = f"__verify_{next(_names)}"
            stream = None if by_part is None else by_part.get(table.start)
            if versions and name in versions:
                rows = version_rows(self, name, versions[name])
            elif stream is not None and (span := spans[stream]) is not None:
                rows = rows_by_part(self, name, streams[stream], span)
            else:
                rows = self.rows_of(name, spans[table.start])
            rows = rows.drop(*(column for column in rows.columns if column.endswith(ERROR)))
            rows = rows.drop("_file") if found.names_part else rows.drop(*_STORED)
            rows.createOrReplaceTempView(view)
            self.views.append(view)
            out += text[at : table.start] + view + ("" if table.alias else f" AS `{table.table}`")
            at = table.end
        return self.spark.sql(out + text[at:])

    def rows_of(self, table: str, span: Range | None) -> DataFrame:
        """Rows of a source or dimension as stored, of a view as expected."""
        if table in self.graph.timed:
            return valid_rows(self, table)
        if table not in self.expected:
            rows = self.stored_rows(table)
            return rows if span is None else rows.where(between(span))
        kept = self.expected[table]
        paths = [path for parts, path in kept.folders if span is not None and parts.within(*span)]
        assert span is not None
        if not paths or kept.schema is None:
            schema = kept.schema or self.stored_rows(table).schema
            return self.spark.createDataFrame([], schema)
        return self.spark.read.schema(kept.schema).parquet(*map(literal, paths)).where(between(span))

    def columns_of(self, view: str) -> list[str]:
        """What a view shows, by the names under which it is stored."""
        return [name for name in self.stored_rows(view).columns if name not in _STORED]

    def doubles_of(self, view: str) -> list[str]:
        return [f.name for f in self.stored_rows(view).schema if isinstance(f.dataType, DoubleType)]

    def stored_rows(self, table: str) -> DataFrame:
        """What is stored, at the version of the ledger, read by Spark's own reader."""
        if table not in self.stored:
            at = self.known[table].at
            path = self.engine.path(table, at.generation)
            rows = self.spark.read.format("delta").option("versionAsOf", at.version or 0).load(spark_path(path))
            actions = DeltaTable(path, version=at.version or 0, storage_options=options(path)).get_add_actions(
                flatten=True
            )
            files = [f"{path}/{name}" for name in actions.column("path").to_pylist()]
            if 0 < len(files) <= _FEW:  # the log is then read once, not by every query
                once = self.spark.read.schema(rows.schema).option("recursiveFileLookup", "true")
                rows = once.parquet(*map(literal, files))
            if self.graph[table].rolling:  # its rows are those of its one part
                j = self.known[table].parts.last
                stamp = F.expr(f"timestamp_seconds({j * self.known[table].length}L)").alias("part_timestamp")
                rows = rows.select(F.lit(j).cast("bigint").alias("part"), stamp, "*")
            self.stored[table] = rows
        return self.stored[table]

    def keep(self, view: View, found: Expected, results: Mapping[int, DataFrame]) -> None:
        """Write results into the scratch folder; the first one says which types the columns have."""
        frames = []
        for j, rows in results.items():
            stamped = rows.select(
                F.lit(j).cast("bigint").alias("part"),
                F.expr(f"timestamp_seconds({j * view.part}L)").alias("part_timestamp"),
                *(F.col(f"`{name}`") for name in rows.columns if name not in _STORED),
            )
            found.schema = found.schema or stamped.schema
            types = {f.name: f.dataType for f in found.schema.fields}
            frames.append(stamped.select(*(F.col(f"`{n}`").cast(kind).alias(n) for n, kind in types.items())))
        path = f"{self.scratch}/{view.name}/{next(_names)}"
        together = frames[0]
        for other in frames[1:]:
            together = together.unionByName(other)
        together.write.parquet(spark_path(path))
        found.folders.append((Parts.single(*results), path))
        found.parts = found.parts | Parts.single(*results)
        while self.views:
            self.spark.catalog.dropTempView(self.views.pop())
        if self.progress:
            self.progress(view.name, found.parts.count, self.known[view.name].parts.count)

    # -- comparing --------------------------------------------------------------------------------

    def _compare(self, name: str, parts: Parts) -> dict[int, tuple[int, int]]:
        if not parts:
            return {}
        span = Range(parts.first, parts.last)
        actual = self.stored_rows(name).where(between(span))
        found = different(self.rows_of(name, span), actual, self.expected[name].bounds)
        return {part: rows for part, rows in found.items() if part in parts}


def between(span: Range) -> str:
    return f"part BETWEEN {span.lo} AND {span.hi}"


def range_of(span: Range) -> Iterator[int]:
    yield from range(span.lo, span.hi + 1)
