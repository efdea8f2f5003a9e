"""What Spark understands must not be refused here: one query of each kind in tests/golden/spark_sql.txt."""

from pathlib import Path

import pytest

from partwise.sql import find, splice
from partwise.sql.columns import outputs
from partwise.sql.references import analyse

QUERIES = (Path(__file__).parents[1] / "golden" / "spark_sql.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("sql", QUERIES)
def test_spark_sql_is_understood(sql: str) -> None:
    analysis = analyse(sql)
    assert analysis.found.problems == ()
    assert analysis.tree is not None
    assert len(find(sql).parts) == sql.count("m[j")
    assert splice(sql, lambda found: found.written) == sql
    assert all(column.name for column in outputs(analysis.tree, lambda name: None) or ())
