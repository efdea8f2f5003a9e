"""Sources of random histories that come as CSV files, through ingest: late rows, corrections, retracted files."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from partwise.ledger.write.closing import close, declare_empty
from partwise.parts import Range
from partwise.workspace import open_workspace
from spark_jobs.ingest import ingest, retract

from .models import Row
from .workspace import Workspace


class Landing:
    """Files of a source, the rows that each of them brings, and what parts hold because of them."""

    def __init__(self, space: Workspace, rng: random.Random, crash: Callable[[], Callable[[str], None]]) -> None:
        self.space, self.rng, self.crash = space, rng, crash
        (space.at / "partwise.yaml").touch()
        self.files: dict[tuple[str, str], list[Row]] = {}
        self.taken_out: set[tuple[str, str]] = set()
        self.ticks = 0

    def holds(self, table: str, p: int) -> list[Row]:
        return [
            row
            for (of, name), rows in self.files.items()
            if of == table and (of, name) not in self.taken_out
            for row in rows
            if int(row["t"].timestamp()) // 60 == p
        ]

    def put(self, table: str, name: str, rows: list[Row]) -> None:
        """Write a file, new or corrected, and take it in. What was retracted comes back if it is another content."""
        if self.files.get((table, name)) != rows:
            self.taken_out.discard((table, name))
        self.files[table, name] = rows
        path = self.space.at / "landing" / table / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [",".join("" if row[c] is None else _text(row[c]) for c in ("t", "u", "g", "x")) for row in rows]
        path.write_text("\n".join(["t,u,g,x", *lines]) + "\n")
        self.ticks += 1
        os.utime(path, (1e9 + self.ticks, 1e9 + self.ticks))
        self.take_in(table)

    def take_in(self, table: str) -> None:
        """Sometimes it crashes, and is tried again."""
        workspace = open_workspace(str(self.space.at), {})
        if self.rng.random() < 0.3:
            try:
                done = ingest(self.space.with_engine(passed=self.crash()), workspace, [table], settle=0)
                assert not done[0].refused
            except Exception as why:
                if type(why).__name__ != "Crash":
                    raise
        [again] = ingest(self.space.engine, workspace, [table], settle=0)
        assert (again.refused, again.quarantined) == ([], 0)

    def close(self, table: str, p: int) -> None:
        now = self.space.engine.now()
        if p in self.space.parts(table):
            return
        if self.holds(table, p):
            close(self.space.ledger, table, p, "test", now)
        else:
            declare_empty(self.space.ledger, table, Range(p, p), "test", now)

    def retract(self, table: str, name: str) -> None:
        self.taken_out.add((table, name))
        workspace = open_workspace(str(self.space.at), {})
        retract(self.space.engine, workspace, table, str(Path("landing") / table / name))

    def some_file(self, table: str) -> str | None:
        there = [name for of, name in self.files if of == table and (of, name) not in self.taken_out]
        return self.rng.choice(there) if there else None


def _text(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
