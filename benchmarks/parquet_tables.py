"""Generated SQL run by Spark on Parquet files, one folder per part: what a query costs, without storage and ledger."""

from __future__ import annotations

import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from partwise.compile import GeneratedView
from partwise.sql import FoundReference, find, splice
from partwise.storage.query import parquet
from partwise.storage.unique import unique_in


class Tables:
    def __init__(self, spark: SparkSession, at: Path) -> None:
        self.spark, self.at = spark, at
        self.schemas: dict[str, StructType] = {}  # known, as to the engine: Spark would start a job to look into files

    def path(self, table: str, part: int) -> Path:
        return self.at / table / f"part={part}"

    def has(self, table: str) -> bool:
        return (self.at / table).exists()

    def numbered(self, parts: int, rows: int) -> DataFrame:
        """`part`, `k` (0.. in each part) and `id`, in two files a part and without a shuffle."""
        numbers = self.spark.range(0, parts * rows, 1, 2 * parts)
        return numbers.selectExpr(f"id DIV {rows} AS part", f"id % {rows} AS k", "id")

    def fill(self, table: str, rows: DataFrame) -> None:
        """Rows of many parts, with the column `part`."""
        rows.write.mode("overwrite").partitionBy("part").parquet(str(self.at / table))

    def run(self, sql: str, part: int, into: str, index: str = "j") -> float:
        """Compute one part and write it; returns the seconds."""

        def replaced(found: FoundReference) -> str:
            assert found.reference is not None
            low, high = found.reference.requires(part)
            paths = [str(path) for p in range(low, high + 1) if (path := self.path(found.table, p)).exists()]
            view = f"{found.table}_{low}_to_{high}"
            # With the column `part`, which queries may name.
            reader = self.spark.read.option("basePath", str(self.at / found.table))
            known = self.schemas.get(found.table)
            rows = (reader if known is None else reader.schema(known)).parquet(*paths)
            self.schemas[found.table] = rows.schema
            rows.createOrReplaceTempView(view)
            return view

        began = time.perf_counter()
        self.spark.sql(splice(sql, replaced, index)).write.mode("overwrite").parquet(str(self.path(into, part)))
        return time.perf_counter() - began

    def update(self, view: GeneratedView, part: int) -> float:
        """As the engine does it: rows that the columns show to be one per group take the short way."""
        began = time.perf_counter()
        text = view.unique_update if view.unique_update and self._unique(view, part) else view.update
        return time.perf_counter() - began + self.run(text, part, view.name)

    def _unique(self, view: GeneratedView, part: int) -> bool | None:
        source = next(f for f in find(view.unique_update or "").parts if f.table != view.name)
        files = [str(path) for path in self.path(source.table, part).glob("*.parquet")]
        return unique_in(parquet(files), view.unique_by)

    def first(self, view: GeneratedView, part: int) -> float:
        return self.run(view.initialize or view.update, part, view.name, "i" if view.initialize else "j")

    def rows(self, table: str, part: int) -> DataFrame:
        return self.spark.read.parquet(str(self.path(table, part)))
