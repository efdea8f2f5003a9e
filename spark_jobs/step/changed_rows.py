"""What changed in an input between two versions of it: from the lists of files, without looking at the others.

Rows of files that both versions have did not change. What remains are the rows of files that one of them has alone:
late rows are in added files; a correction, a repaired view or a compaction takes files out and adds others, which
have most rows in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from partwise.parts import Parts
from partwise.storage import File, Handle
from partwise.storage import schema as schemas
from partwise.storage.files import folder
from spark_jobs.step import keys, read


@dataclass(frozen=True)
class Changed:
    """Files that the newer version has alone, and those that only the older one has, in parts that are looked at."""

    handle: Handle
    parts: Parts | None
    added: tuple[File, ...]
    removed: tuple[File, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)

    @property
    def most_rows(self) -> int | None:
        """So many rows may have changed; None where files do not say how many they have."""
        counts = [file.rows for file in (*self.added, *self.removed)]
        return None if None in counts else sum(count or 0 for count in counts)

    def rows(self, spark: SparkSession) -> DataFrame:
        """Rows that one version has more often than the other."""
        new = self._of(spark, self.added)
        if not self.removed:
            return new
        old = self._of(spark, self.removed)
        if not self.added:
            return old
        return new.exceptAll(old).unionAll(old.exceptAll(new))

    def few(self) -> Any | None:
        """The same in memory, as Arrow, where rows only came, and few."""
        return None if self.removed else keys.few_of(self.handle, self.added, self.parts)

    def more(self, spark: SparkSession) -> DataFrame:
        """Rows that the newer version has more often."""
        new = self._of(spark, self.added)
        return new.exceptAll(self._of(spark, self.removed)) if self.removed else new

    def fewer(self, spark: SparkSession) -> DataFrame | None:
        """Rows that the older version has more often; None if there cannot be any."""
        if not self.removed:
            return None
        old = self._of(spark, self.removed)
        return old.exceptAll(self._of(spark, self.added)) if self.added else old

    def _of(self, spark: SparkSession, files: tuple[File, ...]) -> DataFrame:
        rows = read.files(spark, self.handle, files)
        rows = rows if self.parts is None else rows.where(read.in_parts(self.parts))
        return rows.drop("_file")  # where a row came from is no content


def changed(new: Handle, old: Handle, parts: Parts | None) -> Changed | None:
    """None where it cannot be told: other columns, values that cannot be compared, files that are gone."""
    if new.path != old.path or schemas.fields(new.schema) != schemas.fields(old.schema):
        return None
    if '"map"' in new.schema or '"variant"' in new.schema:
        return None  # EXCEPT does not compare them
    ours = new.files if parts is None else new.files_of(parts)
    theirs = old.files if parts is None else old.files_of(parts)
    names, before = {file.path for file in ours}, {file.path for file in theirs}
    added = tuple(file for file in ours if file.path not in before)
    removed = tuple(file for file in theirs if file.path not in names)
    root = folder(old.path)
    if any(root.size(file.path) is None for file in removed):
        return None
    return Changed(new, parts, added, removed)
