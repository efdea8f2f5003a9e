"""Views that read their own parts before, one part after the other without a look at the disk.

Each part is one small query. Its rows stay in memory as Arrow, where the next part reads them; digests come with the rows.
Files are written once, for all parts of the chain together. Part after part is compared with what is published: where content
stays the same, the chain ends as the walk does.

A repair by keys goes along the same way with few rows: each part is the query over touched keys alone, and reads of the
part before it the rows of these keys, as just computed or as published. All other rows of all parts stay, and what
changed is published as one patch.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from partwise.ledger.write.commit import Content
from partwise.parts import Parts
from partwise.plan.walk import Walk
from spark_jobs.progress import StepProgress
from spark_jobs.retry import SPARK_ERRORS, is_infrastructure
from spark_jobs.step import keys, read, small
from spark_jobs.step.by_keys import Touching
from spark_jobs.step.compute import Computing, QueryFailed
from spark_jobs.step.digest import EMPTY, replaced, row_count
from spark_jobs.step.patch import Patch
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
        if full or time.monotonic() >= until or computing.engine.stopping():
            return chain
        following = next(walk, None)
        if following is None:
            return chain
        j = following


#: Parts of which the published rows are looked up at first.
FIRST_AHEAD = 8


def patch_along(
    computing: Computing, touching: Touching, name: str, progress: StepProgress
) -> tuple[Patch | None, dict[int, Content]] | None:
    """What the due parts, and those that follow from them, hold now, and a patch of those that changed.

    None: too many rows are touched, so parts are computed whole. Raises what Spark raises, or QueryFailed.
    """
    engine, handle, pin, hidden = computing.engine, computing.own, computing.pin, computing.view.sketches
    assert handle is not None
    published = _Published(computing, touching)
    contents: dict[int, Content] = {}
    changed: dict[int, Collected] = {}
    walk = pin.walk()
    with computing.restricted(touching):
        for j in walk:
            if j not in touching.parts:
                break  # it was never built, or is due for another reason: the next step goes on with it
            rows = touching.keys.inside(computing.result(j))
            found = small.collect(rows, handle.schema, hidden, j, pin.table.length)
            if (old := published.digest(j)) is None:
                return None
            digest = replaced(pin.before[j].digest, old, found.digests.get(j, EMPTY))
            contents[j] = Content(row_count(digest), digest)
            if not pin.same(j, contents[j]):
                walk.changed(j)
                changed[j] = found
                computing.remember(j, found.rows)
            if sum(each.rows.num_rows for each in changed.values()) > max(engine.small_rows, keys.MOST_ROWS):
                return None
            engine.passed("digested")
            progress.came(1)
    if not changed:
        return None, contents
    patch = _patch(computing, touching, name, contents, changed)
    return None if patch is None else (patch, contents)


@dataclass
class _Published:
    """What the parts hold of the touched keys as published: looked up for more and more parts, as nobody knows how far it goes."""

    computing: Computing
    touching: Touching
    _looked: Parts = field(default_factory=Parts)
    _digests: dict[int, str] = field(default_factory=dict)
    _ahead: int = FIRST_AHEAD

    def digest(self, j: int) -> str | None:
        """None: there are too many rows."""
        if j not in self._looked:
            engine, handle = self.computing.engine, self.computing.own
            assert handle is not None
            following = (p for p in self.touching.parts.within(j, self.touching.parts.last))
            block = Parts.single(*(p for p, _ in zip(following, range(self._ahead), strict=False)))
            found = keys.gone(engine.spark, handle, block, self.touching.keys, self.computing.view.sketches)
            if found is None:
                return None
            self._looked, self._ahead = self._looked | block, self._ahead * 4
            self._digests |= found.digests
        return self._digests.get(j, EMPTY)


def _patch(
    computing: Computing, touching: Touching, name: str, contents: dict[int, Content], changed: dict[int, Collected]
) -> Patch | None:
    engine, handle, parts = computing.engine, computing.own, Parts.single(*changed)
    assert handle is not None
    gone = keys.gone(engine.spark, handle, parts, touching.keys, computing.view.sketches)
    if gone is None:
        return None
    digests = {j: digest for found in changed.values() for j, digest in found.digests.items()}
    collected = Collected(pa.concat_tables([found.rows for found in changed.values()]), digests)
    files = small.stage(collected, handle, name)
    engine.passed("staged")
    touching, mine = replace(touching, parts=parts), {j: contents[j] for j in changed}
    staged = partial(read.staged, engine.spark, handle, files)
    return Patch(touching, files, gone.touched, gone.count, mine, staged, local=True)
