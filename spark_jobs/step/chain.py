"""Views that read their own parts before, one part after the other without a look at the disk.

Each part is one small query. Its rows stay in memory as Arrow, where the next part reads them; digests come with the rows.
Files are written once, for all parts of the chain together. Part after part is compared with what is published: where content
stays the same, the chain ends as the walk does.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from partwise.ledger.write.commit import Content
from partwise.plan.walk import Walk
from spark_jobs.progress import StepProgress
from spark_jobs.retry import SPARK_ERRORS, is_infrastructure
from spark_jobs.step import small
from spark_jobs.step.compute import Computing, QueryFailed
from spark_jobs.step.digest import EMPTY, row_count
from spark_jobs.step.small import Collected

#: A chain is written to a file when it has come to so many bytes.
MOST_BYTES = 64 << 20


@dataclass
class Chain:
    """Parts that were computed one after the other. `stopped_at`: the part that could not be computed in this way."""

    contents: dict[int, Content] = field(default_factory=dict)
    stopped_at: int | None = None
    _rows: list[Any] = field(default_factory=list)
    _bytes: int = 0
    _count: int = 0

    @property
    def collected(self) -> Collected:
        """All of it, in order of parts."""
        return Collected(pa.concat_tables(self._rows), {j: content.digest for j, content in self.contents.items()})

    def add(self, j: int, found: Collected) -> Content:
        digest = found.digests.get(j, EMPTY)
        self.contents[j] = Content(row_count(digest), digest)
        self._rows.append(found.rows)
        self._bytes += found.rows.nbytes
        self._count += found.rows.num_rows
        return self.contents[j]

    def is_full(self, rows: int) -> bool:
        return self._bytes > MOST_BYTES or self._count > rows


def follow(computing: Computing, walk: Walk, first: int, until: float, most: int, progress: StepProgress) -> Chain:
    """Compute `first` and what the walk hands out after it, until that many parts, the time, or the memory is used up.

    A part whose query fails ends the chain; the general way computes it again and says what is wrong.
    """
    chain, j = Chain(), first
    handle, view, pin = computing.own, computing.view, computing.pin
    assert handle is not None
    while True:
        try:
            found = small.collect(computing.result(j), handle.schema, view.sketches, j, pin.table.length)
        except (*SPARK_ERRORS, QueryFailed) as why:
            if is_infrastructure(why):
                raise
            chain.stopped_at = j
            return chain
        computing.remember(j, found.rows)
        if not pin.same(j, chain.add(j, found)):
            walk.changed(j)
        computing.engine.passed("digested")
        progress.came(1)
        full = chain.is_full(computing.engine.small_rows) or len(chain.contents) >= most
        if full or time.monotonic() >= until:
            return chain
        following = next(walk, None)
        if following is None:
            return chain
        j = following
