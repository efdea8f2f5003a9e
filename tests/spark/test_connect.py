"""The same code over Spark Connect, in a process of its own (a process has one kind of session)."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from partwise import storage
from spark_jobs.session.connect import server
from spark_jobs.session.session import driver_settings, local_cores
from tests.storage.tables import rows

pytestmark = [pytest.mark.spark, pytest.mark.own_process]
ROOT = Path(__file__).parents[2]

#: What a step does, from input to commit.
CLIENT = """
    import json, sys
    from partwise import storage
    from partwise.parts import Parts
    from spark_jobs.step import read
    from spark_jobs.step.digest import digests
    from spark_jobs.session.session import session
    from spark_jobs.step.stage import stage, with_part
    # A workspace that was run with a driver of its own says what only that driver could take.
    conf = {"spark.driver.memory": "4g", "spark.sql.warehouse.dir": "/x", "spark.sql.shuffle.partitions": "3"}
    spark, path = session(remote=sys.argv[1], conf=conf), sys.argv[2]
    result = with_part(spark.sql("SELECT 'a' AS src, CAST(id AS double) AS loss FROM range(3)"), 7, 60)
    handle = storage.create(path, result.schema.json())
    staged = stage(result, handle, "one", expected=3)
    found = digests(read.staged(spark, handle, staged), handle.schema)
    storage.commit(handle, staged, storage.rewrite(handle, Parts.single(7)).removed, {"digests": found})
    handle = storage.open_at(path)
    print(json.dumps([
        read.parts(spark, handle, Parts.single(7)).count(),
        read.parts(spark, handle, Parts.single(8)).count(),
        read.foreign(spark, path, 1).count(),
        spark.conf.get("spark.sql.session.timeZone"),
        spark.conf.get("spark.sql.shuffle.partitions"),
    ]))
"""


def test_a_step_over_connect(tmp_path: Path) -> None:
    path, log = str(tmp_path / "t"), tmp_path / "server.log"
    with server(log=log, conf={"spark.sql.session.timeZone": "America/New_York"}) as url:
        command = [sys.executable, "-c", textwrap.dedent(CLIENT), url, path]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + log.read_text()
    assert json.loads(done.stdout) == [3, 0, 3, "UTC", "3"]
    assert rows(path) == [(7, "a", 0.0), (7, "a", 1.0), (7, "a", 2.0)]
    [logged] = storage.entries(path, 0)
    assert logged.entry is not None
    assert logged.entry["digests"]["7"].startswith("3:")


def test_a_server_that_cannot_start_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="ended with code"), server(conf={"spark.driver.memory": "1x"}):
        pass


def test_settings_of_the_user_win_and_clusters_get_the_jars() -> None:
    assert (local_cores("local"), local_cores("local[3]"), local_cores("spark://h:7077")) == (1, 3, 0)
    ours = driver_settings("local[2]", {"spark.ui.enabled": "true"})
    assert (ours["spark.ui.enabled"], ours["spark.sql.shuffle.partitions"]) == ("true", "4")
    assert "spark.jars" not in ours
    cluster = driver_settings("spark://h:7077")
    assert len(cluster["spark.jars"].split(",")) == 7
    assert "spark.driver.host" not in cluster
