"""The jars that the set-up fetched are enough for Delta, without anything from the network."""

from pathlib import Path

import deltalake
import pytest
from pyspark.sql import SparkSession


@pytest.mark.spark
def test_spark_writes_a_delta_table_that_others_read(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    spark.range(10).write.format("delta").save(table)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id < 5")
    assert sum(deltalake.DeltaTable(table).to_pyarrow_table()["id"].to_pylist()) == 35
