"""How the parts of a step are put together into queries.

    no self-reference   the update query lifted to many parts; what cannot be lifted, a union of part queries
    pairs               one join of rows that are near enough (`single_pass`)
    generated helpers   one pass over the keys, part after part (`single_pass`)
    written ones        part after part

What fails together is tried again in smaller lots, down to single parts: only the bad ones fail.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from pyspark.sql import DataFrame
from sqlalchemy import bindparam, select

from partwise.compile.many_parts import Lifted, NotLiftable, lift
from partwise.ledger.schema import part
from partwise.parts import Parts, Range
from partwise.plan.walk import Walk
from partwise.storage import schema as schemas
from spark_jobs.retry import SPARK_ERRORS, message_of
from spark_jobs.step.compute import Computing, schema_of
from spark_jobs.step.read import union

log = logging.getLogger("partwise.step")

#: Part queries in one union.
TOGETHER = 20
#: So few parts are tried one by one when they fail together; more are halved.
_FEW = 4
#: So many parts in a row are worth a single pass.
_ROW = 3

_ROWS = (
    select(part.c.part, part.c.rows)
    .where(part.c.table == bindparam("t"), part.c.part.between(bindparam("a"), bindparam("b")))
    .order_by(part.c.part)
)


class NotTogether(Exception):
    """These parts are too many for one query of theirs."""


@dataclass
class Many:
    computing: Computing
    lifted: Lifted | None = None
    single_pass: str | None = None
    alone: bool = False
    _rows: dict[str, _Rows] = field(default_factory=dict)

    def __post_init__(self) -> None:
        view, table = self.computing.view, self.computing.pin.table
        self.alone = bool(table.self_references)
        if self.alone:
            # A part that fails a check ends what follows it, so checked parts go one after another.
            self.single_pass = None if view.checks else view.single_pass
        elif self.computing.pin.due.count > 1 and "lifted" not in self.computing.careful:
            try:
                self.lifted = lift(view.update.text)
            except NotLiftable:
                self.lifted = None

    def take(self, walk: Walk) -> list[int]:
        """The next parts for one query; none at the end."""
        found: list[int] = []
        pin, limit, rows = self.computing.pin, self._most(), 0
        for j in walk:
            found.append(j)
            rows += self._weight(j) if limit > 1 else 0
            if len(found) >= limit or rows >= self.computing.engine.most_rows:
                break
            if self.alone and (j == pin.start or j + 1 not in pin.due):
                break
        return found

    def _most(self) -> int:
        if self.alone:
            return self.computing.engine.most_parts if self.single_pass else 1
        return self.computing.engine.most_parts if self.lifted else TOGETHER

    def rows(self, parts: list[int]) -> DataFrame:
        """The result of these parts. Raises what Spark raises, QueryFailed or NotTogether."""
        if len(parts) == 1:
            return self.computing.rows(parts[0])
        if self.alone:
            return self._passed(parts)
        if self.lifted is not None and (rows := self._lifted(parts)) is not None:
            return rows
        if len(parts) > TOGETHER:
            raise NotTogether
        return union([self.computing.rows(j) for j in parts])

    def _passed(self, parts: list[int]) -> DataFrame:
        if self.single_pass is None or len(parts) < _ROW:
            raise NotTogether
        return self.computing.single_pass(self.single_pass, Range(parts[0], parts[-1]))

    def _lifted(self, parts: list[int]) -> DataFrame | None:
        """None if Spark refuses the lifted query, or would give it other columns than that of one part; the log says so."""
        assert self.lifted is not None
        computing, first = self.computing, self.computing.pin.start
        own = computing.view.initialize is not None and first in parts
        try:
            some, near = Parts.single(*(j for j in parts if not own or j != first)), computing.view.single_pass
            rows = computing.near(near, some) if near is not None else computing.lifted(self.lifted, some)
            if not self._fits(rows):
                return self._give_up("its columns are not those of one part")
        except SPARK_ERRORS as why:
            return self._give_up(message_of(why).partition("\n")[0])
        return union([computing.rows(first), rows]) if own else rows

    def _give_up(self, why: str) -> None:
        """From here on part by part. `explain` cannot know of it: only Spark could tell."""
        log.info("%s: one query for many parts is not possible: %s", self.computing.view.name, why)
        self.lifted = None
        self.computing.give_up("lifted", why)

    def _fits(self, rows: DataFrame) -> bool:
        handle = self.computing.own
        assert handle is not None
        found, wanted = schema_of(rows), schemas.normal(handle.schema)
        if self.computing.view.initialize is None:
            return found == wanted
        return [n.lower() for n in schemas.names(found)] == [n.lower() for n in schemas.names(wanted)]

    def smaller(self, parts: list[int]) -> Iterator[list[int]]:
        """What failed together, in lots that are tried again."""
        if self.alone:
            self.single_pass = None
            size = 1
        elif self.lifted is None and len(parts) > TOGETHER:
            size = TOGETHER
        else:
            size = 1 if self.lifted is None or len(parts) <= _FEW else -(-len(parts) // 2)
        yield from (parts[at : at + size] for at in range(0, len(parts), size))

    # -- how many rows a part reads

    def _weight(self, j: int) -> int:
        """Rows that are read for part j, by the ledger's counts."""
        found = 0
        for item in self.computing.pin.table.partitioned_inputs:
            if item.reference is not None:
                found += self._counts(item.table).between(item.reference.requires(j))
        return found

    def _counts(self, table: str) -> _Rows:
        if table not in self._rows:
            due = self.computing.pin.due
            inputs = [i for i in self.computing.pin.table.partitioned_inputs if i.table == table]
            spans = [i.reference for i in inputs if i.reference is not None]
            given = {
                "t": table,
                "a": min(s.lo.at(due.first) for s in spans),
                "b": max(s.hi.at(due.last) for s in spans),
            }
            with self.computing.engine.ledger.database.reading() as r:
                self._rows[table] = _Rows.of([(row.part, row.rows) for row in r.on.execute(_ROWS, given)])
        return self._rows[table]


@dataclass(frozen=True)
class _Rows:
    """Row counts of parts, summed up so that any range costs the same."""

    parts: list[int]
    sums: list[int]

    @classmethod
    def of(cls, counts: list[tuple[int, int]]) -> _Rows:
        return cls([p for p, _ in counts], [0, *accumulate(n for _, n in counts)])

    def between(self, span: Range) -> int:
        return self.sums[bisect_right(self.parts, span.hi)] - self.sums[bisect_left(self.parts, span.lo)]
