"""When parts were born and which versions of dimensions count for them, from the first revisions of source parts alone.

The rule is written down here once more, part by part: what steps found out for themselves is what is judged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sqlalchemy import func, select

from partwise.ledger.database import Reading
from partwise.ledger.schema import catalog, generation, repin, revision
from partwise.object_store import spark_path
from partwise.storage.handle import options

if TYPE_CHECKING:
    from spark_jobs.verify.verify import Checking


#: When the last source part came to exist that a part is made from, and when that one begins (seconds since 1970).
Birth = tuple[int, int]


@dataclass
class Births:
    """`born` by table and part; `versions` of forward dimensions, by their sequences; `since` when they count. `said` is
    what somebody said since of a time range: from when, to when, and the version (None: as without it)."""

    graph: Any  # of the definitions: tables by name, and which dimensions are forward
    starts: dict[str, int | None]
    born: dict[str, dict[int, Birth]] = field(default_factory=dict)
    versions: dict[str, list[int]] = field(default_factory=dict)
    since: dict[str, int] = field(default_factory=dict)
    said: dict[str, list[tuple[int, int, int | None]]] = field(default_factory=dict)
    known_up_to: dict[str, int] = field(default_factory=dict)  # of views that read themselves

    def of(self, table: str, part: int) -> Birth:
        known = self.born.setdefault(table, {})
        if part not in known and self.graph[table].kind == "view":
            known[part] = self._required(table, part)
        return known.get(part, (0, -1))

    def _required(self, table: str, part: int) -> Birth:
        view, start, found = self.graph[table], self.starts[table], (0, -1)
        for item in view.initial if part == start else view.inputs:
            if item.reference is None:
                continue
            lo, hi = item.reference.requires(part)
            begins = self.starts.get(item.table)
            if begins is not None:
                lo = max(lo, begins)
            if item.table == table:  # upwards, so that a long history is no deep recursion
                first = lo if begins is None else begins
                for p in range(self.known_up_to.get(table, first), hi + 1):
                    self.known_up_to[table] = p + 1
                    self.of(table, p)
            found = max([found, *(self.of(item.table, p) for p in range(lo, hi + 1))])
        return found

    def version(self, dimension: str, table: str, part: int) -> int:
        """The sequence of the version of a dimension that a part of a view reads."""
        known = self.versions[dimension]
        born, at = self.of(table, part)
        last_said = [version for lo, hi, version in self.said[dimension] if lo <= at <= hi][-1:]
        if last_said and last_said[0] is not None:
            return last_said[0]
        latest = max(born, known[0], self.since[dimension])
        return max(seq for seq in known if seq <= latest)


def births(r: Reading, graph: Any, starts: dict[str, int | None]) -> Births:
    found = Births(graph, starts)
    for name, table in graph.tables.items():
        if table.kind == "view" or not graph.forward:
            continue
        began = r.on.execute(select(func.max(generation.c.began_seq)).where(generation.c.table == name)).scalar() or 0
        rows = select(revision.c.part, revision.c.seq).where(revision.c.table == name, revision.c.seq >= began)
        changes = r.on.execute(rows.order_by(revision.c.seq)).all()
        if name in graph.forward:
            found.versions[name] = [seq for _, seq in changes]
            told = select(repin.c.lo, repin.c.hi, repin.c.version).where(repin.c.table == name).order_by(repin.c.seq)
            found.said[name] = [(lo, hi, version) for lo, hi, version in r.on.execute(told)]
            found.since[name] = (
                r.on.execute(select(catalog.c.forward_since).where(catalog.c.table == name)).scalar() or 0
            )
        for p, seq in changes:
            found.born.setdefault(name, {}).setdefault(p, (seq, p * table.length))
    return found


def version_rows(checking: Checking, dimension: str, seq: int) -> DataFrame:
    """One version of a dimension: the newest one is what it holds, others are kept beside it."""
    newest, engine, spark = checking.stored_rows(dimension), checking.engine, checking.spark
    if seq == checking.births.versions[dimension][-1]:
        return newest
    path = engine.versions_path(dimension)
    rows = spark.createDataFrame([], newest.schema)
    if DeltaTable.is_deltatable(path, storage_options=options(path)):
        rows = spark.read.format("delta").load(spark_path(path)).where(f"part = {seq}")
    if rows.isEmpty():
        at = checking.held[dimension, seq]
        table = spark_path(engine.path(dimension, at.generation))
        rows = spark.read.format("delta").option("versionAsOf", at.version or 0).load(table)
    there = {name.lower() for name in rows.columns}
    return rows.select(
        *(
            (F.col(f"`{f.name}`") if f.name.lower() in there else F.lit(None)).cast(f.dataType).alias(f.name)
            for f in newest.schema
        )
    )
