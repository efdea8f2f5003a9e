"""A Delta table of others as it stands now: its newest version and its identity. Nothing of Spark is imported."""

from __future__ import annotations

import re
from dataclasses import dataclass

from deltalake import DeltaTable

from partwise.storage import log
from partwise.storage.files import folder
from partwise.storage.handle import options
from spark_jobs.ingest.files.find import RefusedFile

_COMMIT = re.compile(r"(\d{20})\.json")


@dataclass(frozen=True)
class Watched:
    """A foreign table at its newest version. `origin` is its identity: a new table in its place has another."""

    path: str
    version: int
    origin: str


def look_at(path: str) -> Watched:
    """Raises BadFile if there is no Delta table."""
    names = [_COMMIT.fullmatch(found.name) for found in folder(path).listing("_delta_log")]
    versions = [int(match[1]) for match in names if match]
    if not versions:
        raise RefusedFile(f"there is no Delta table in {path}")
    try:
        origin = str(DeltaTable(path, version=max(versions), storage_options=options(path)).metadata().id)
    except Exception as why:  # features that delta-rs does not know; Spark will read it
        origin = _origin(path, max(versions)) or f"unknown: {type(why).__name__}"
    return Watched(path, max(versions), origin)


def _origin(path: str, newest: int) -> str | None:
    for version in range(newest, -1, -1):
        for action in log.actions_of(folder(path), version) or ():
            if "metaData" in action:
                return str(action["metaData"].get("id"))
    return None
