"""A workspace with sources in a folder of its own, and what its tables hold."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from partwise import storage
from partwise.ledger.ledger import Ledger
from partwise.ledger.runs import existing
from partwise.ledger.schema import arrival, part
from partwise.parts import Parts
from partwise.workspace import Workspace, open_workspace
from spark_jobs.engine import Engine
from spark_jobs.ingest import Ingested, ingest, quarantined, release, retract
from spark_jobs.step import read
from spark_jobs.step.digest import digests, row_count

NOW = 1_791_000_000.0  # 2026-10-03T04:00
#: Part of minute 00:00 of this day.
DAY = 29_849_760
DEFINITION = """
source: m
part: 1 minute
time: event_time
columns: {event_time: timestamp, src: string, loss: double}
files: landing/m/*
"""


class Crash(Exception):
    pass


def text(minute: int, second: float = 0) -> str:
    return f"2026-10-03T{minute // 60:02d}:{minute % 60:02d}:{second:09.6f}"


@dataclass
class World:
    spark: SparkSession
    folder: Path
    settings: str = ""
    ledger: Ledger = field(init=False)
    engine: Engine = field(init=False)
    workspace: Workspace = field(init=False)
    _ticks: int = 0

    def define(self, yaml: str = DEFINITION) -> World:
        (self.folder / "view_defs").mkdir(parents=True, exist_ok=True)
        (self.folder / "landing" / "m").mkdir(parents=True, exist_ok=True)
        (self.folder / "partwise.yaml").write_text(self.settings)
        (self.folder / "view_defs" / "all.yaml").write_text(yaml)
        self.workspace = open_workspace(str(self.folder), {})
        found = self.workspace.load()
        assert found.ok, found.problems
        if not hasattr(self, "ledger"):
            self.ledger = self.workspace.open_ledger(NOW)
        self.workspace.take_over(self.ledger, found, NOW)
        self.engine = Engine(self.spark, self.ledger, found, self.workspace.warehouse, now=lambda: NOW)
        return self

    def put(self, name: str, content: str | bytes) -> Path:
        """Write a file with a time stamp of its own: the clock of a file system may stand still for milliseconds."""
        path = self.folder / "landing" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        self._ticks += 1
        os.utime(path, (NOW + self._ticks, NOW + self._ticks))
        return path

    def csv(self, name: str, *rows: tuple[int, str, float]) -> Path:
        """Rows as (minute, src, loss)."""
        lines = [f"{text(minute)},{src},{loss}" for minute, src, loss in rows]
        return self.put(f"m/{name}", "\n".join(["event_time,src,loss", *lines]) + "\n")

    def ingest(self, *names: str, settle: float = 0) -> Any:
        found = ingest(self.engine, self.workspace, names or None, settle=settle)
        return found[0] if len(found) == 1 else {each.source: each for each in found}

    def retract(self, file: str, source: str = "m") -> Ingested:
        return retract(self.engine, self.workspace, source, file)

    def release(self, source: str = "m") -> Ingested:
        return release(self.engine, self.workspace, source)

    def aside(self, source: str | None = None) -> list[tuple[str, str]]:
        """Reasons and rows in quarantine."""
        return [(q.reason, q.row) for q in quarantined(self.engine, source)]

    def crash_at(self, point: str, times: int = 1) -> None:
        left = [times]

        def passed(here: str) -> None:
            if here == point and left[0]:
                left[0] -= 1
                raise Crash(point)

        self.engine = replace(self.engine, passed=passed)

    def watch_points(self) -> list[str]:
        seen: list[str] = []
        passed: Callable[[str], None] = seen.append
        self.engine = replace(self.engine, passed=passed)
        return seen

    def go_on(self) -> None:
        self.engine = replace(self.engine, passed=lambda point: None)

    def handle(self, table: str = "m") -> storage.Handle:
        found = self.engine.open(table, self.ledger.current(table))
        assert found is not None
        return found

    def rows(self, table: str = "m", columns: str = "part, src, loss") -> list[tuple[Any, ...]]:
        """Everything in the table, open parts too."""
        found = read.parts(self.spark, self.handle(table)).selectExpr(*columns.split(", ")).collect()
        return sorted((tuple(row) for row in found), key=repr)

    def minutes(self) -> list[tuple[int, str, float]]:
        return [(p - DAY, src, loss) for p, src, loss in self.rows()]

    def parts(self, table: str = "m") -> Parts:
        with self.ledger.database.reading() as r:
            return existing(r, table)

    def closed(self, table: str = "m") -> list[int]:
        return [p - DAY for p in self.parts(table)]

    def revisions(self, table: str = "m") -> dict[int, int]:
        with self.ledger.database.reading() as r:
            rows = r.on.execute(part.select().where(part.c.table == table))
            return {row.part - DAY: row.revision for row in rows}

    def arrivals(self) -> list[tuple[int, int, bool]]:
        with self.ledger.database.reading() as r:
            rows = r.on.execute(arrival.select().order_by(arrival.c.seq, arrival.c.part))
            return [(row.part - DAY, row.rows, row.late) for row in rows]

    def check(self, table: str = "m") -> None:
        """The ledger says of every part, closed or open, what the table really holds."""
        handle = self.handle(table)
        assert storage.open_at(handle.path).version == handle.version
        found = digests(read.parts(self.spark, handle), handle.schema, leave_out=["_file"])
        with self.ledger.database.reading() as r:
            known = {row.part: row.digest for row in r.on.execute(part.select().where(part.c.table == table))}
            from partwise.ledger.schema import open_part

            opened = {
                row.part: row.digest for row in r.on.execute(open_part.select().where(open_part.c.table == table))
            }
        assert not set(known) & set(opened)
        assert {p: d for p, d in (known | opened).items() if row_count(d)} == found
        assert set(self.parts(table)) == set(known)
