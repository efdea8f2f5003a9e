"""How the parts of a step are put together into queries.

    no self-reference   the update query lifted to many parts; what cannot be lifted, a union of part queries
    pairs               one join of rows that are near enough (`single_pass`)
    generated helpers   one pass over the keys, part after part (`single_pass`)
    written ones        part after part, in memory where they are small (`chain`)

What fails together is tried again in smaller lots, down to single parts: only the bad ones fail.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from pyspark.sql import DataFrame
from sqlalchemy import bindparam, select

from partwise.compile.many_parts import Lifted, NotLiftable, lift
from partwise.ledger.schema import part
from partwise.ledger.write.commit import Content
from partwise.parts import Parts, Range
from partwise.plan.pace import Pace
from partwise.plan.walk import Walk
from partwise.storage import schema as schemas
from spark_jobs.retry import SPARK_ERRORS, message_of
from spark_jobs.step.compute import Computing, schema_of
from spark_jobs.step.read import union
from spark_jobs.step.small import Collected

log = logging.getLogger("partwise.step")

#: Part queries in one union.
TOGETHER = 20
#: So few parts are tried one by one when they fail together; more are halved.
_FEW = 4
#: So many parts in a row are worth a single pass.
_ROW = 3
#: A single pass goes so many parts beyond what is due, and each time so many times further.
_FIRST_BEYOND = 8
_FURTHER = 4

_ROWS = (
    select(part.c.part, part.c.rows)
    .where(part.c.table == bindparam("t"), part.c.part.between(bindparam("a"), bindparam("b")))
    .order_by(part.c.part)
)

_NEWEST = select(part.c.rows).where(part.c.table == bindparam("t")).order_by(part.c.part.desc()).limit(3)


class NotTogether(Exception):
    """These parts are too many for one query of theirs."""


@dataclass
class Many:
    computing: Computing
    lifted: Lifted | None = None
    single_pass: str | None = None
    near: str | None = None
    alone: bool = False
    pace: Pace = field(default_factory=Pace)
    given: Collected | None = None  # the first lot, if a job for several tables has computed it
    _beyond: int = _FIRST_BEYOND
    _rows: dict[str, _Rows] = field(default_factory=dict)
    _own_rows: list[int] | None = None

    def __post_init__(self) -> None:
        self.pace = Pace(self.computing.engine.step_seconds, self.computing.engine.stopping)
        view, table = self.computing.view, self.computing.pin.table
        self.alone = bool(table.self_references)
        if self.alone:
            # A part that fails a check ends what follows it, so checked parts go one after another.
            self.single_pass = None if view.checks else view.single_pass
        elif self.computing.pin.due.count > 1 and "lifted" not in self.computing.careful:
            self.near = view.single_pass
            try:
                self.lifted = lift(view.update.text)
            except NotLiftable:
                self.lifted = None

    def take(self, walk: Walk, all_at_once: bool = False) -> list[int]:
        """The next parts for one query; none at the end. `all_at_once`: little will be read for them, however many."""
        if self.alone:
            return self._take_alone(walk)
        engine = self.computing.engine
        if all_at_once and self._together:
            return [j for _, j in zip(range(engine.most_parts), walk, strict=False)]
        limit = self.pace.most_parts(engine.most_parts if self._together else TOGETHER)
        most_rows, found, rows = self.pace.most_rows(engine.most_rows), list[int](), 0
        for j in walk:
            found.append(j)
            rows += self._weight(j) if limit > 1 else 0
            if len(found) >= limit or rows >= most_rows:
                break
        return found

    def _take_alone(self, walk: Walk) -> list[int]:
        """One part, or many in a row for a single pass: all that are due, and beyond them more and more each time.

        A repair changes an unknown number of the parts that follow: what a pass computes in vain is found unchanged.
        """
        first = next(walk, None)
        if first is None:
            return []
        pin, engine = self.computing.pin, self.computing.engine
        if self.single_pass is None or first == pin.start:
            return [first]
        following = next((span.hi for span in pin.due.ranges if span.lo <= first <= span.hi), first) - first
        most = self.pace.most_parts(engine.most_parts)
        more = walk.ahead(min(max(following, self._beyond - 1), most - 1))
        if len(more) + 1 < _ROW:
            walk.back(len(more))
            return [first]
        self._beyond *= _FURTHER
        return [first, *more]

    def chains(self, parts: list[int]) -> bool:
        """Whether this part, and those that follow it, may be computed one after the other in memory."""
        view, pin = self.computing.view, self.computing.pin
        plain = self.alone and self.single_pass is None and not view.checks and view.fast_update is None
        return plain and len(parts) == 1 and parts[0] != pin.start and self.is_small(parts)

    def rows(self, parts: list[int]) -> DataFrame:
        """The result of these parts. Raises what Spark raises, QueryFailed or NotTogether."""
        if len(parts) == 1:
            return self.computing.rows(parts[0])
        if self.alone:
            return self._passed(parts)
        if self._together and (rows := self._lifted(parts)) is not None:
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
        computing, first = self.computing, self.computing.pin.start
        own = computing.view.initialize is not None and first in parts
        try:
            some = Parts.single(*(j for j in parts if not own or j != first))
            rows = self._of_many(some)
            if not self._fits(rows):
                self._give_up("its columns are not those of one part")
                return None
        except SPARK_ERRORS as why:
            self._give_up(message_of(why).partition("\n")[0])
            return None
        return union([computing.rows(first), rows]) if own else rows

    @property
    def _together(self) -> bool:
        """Whether there is one query for many parts."""
        return self.lifted is not None or self.near is not None

    def _of_many(self, parts: Parts) -> DataFrame:
        # Rows between parts that are far apart would be read for nothing.
        dense = parts.last - parts.first < 4 * parts.count
        if self.near is not None and (dense or self.lifted is None):
            return self.computing.near(self.near, parts)
        assert self.lifted is not None
        return self.computing.lifted(self.lifted, parts)

    def _give_up(self, why: str) -> None:
        """From here on part by part. `explain` cannot know of it: only Spark could tell."""
        log.info("%s: one query for many parts is not possible: %s", self.computing.view.name, why)
        self.lifted = self.near = None
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
        if not self._together and len(parts) > TOGETHER:
            size = TOGETHER
        else:
            size = 1 if not self._together or len(parts) <= _FEW else -(-len(parts) // 2)
        yield from (parts[at : at + size] for at in range(0, len(parts), size))

    # -- how many rows a part reads, and gives

    def is_small(self, parts: list[int]) -> bool:
        """Whether the result of these parts is probably small: as those before, or else by the rows that they read."""
        limit = self.computing.engine.small_rows
        return bool(limit) and self.expected(parts) <= limit

    def saw(self, contents: Iterable[Content]) -> None:
        """What parts of this step hold: the next ones will be about as large."""
        self._own_rows = [max((content.rows for content in contents), default=0)]

    def _usual(self) -> int | None:
        """Rows of the view's newest parts; None before there are any."""
        if self._own_rows is None:
            with self.computing.engine.ledger.database.reading() as r:
                self._own_rows = list(r.on.execute(_NEWEST, {"t": self.computing.pin.table.name}).scalars())
        return max(self._own_rows, default=None)

    def expected(self, parts: list[int]) -> int:
        """Rows that the result of these parts will have, more or less."""
        usual = self._usual()
        return sum(map(self._weight, parts)) if usual is None else len(parts) * usual

    def read_for(self, parts: list[int]) -> int:
        """Rows that are read for these parts."""
        return sum(map(self._weight, parts))

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
