"""The example workspace on a Spark standalone cluster: `spark.master: spark://...`, and nothing else changes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.spark.cluster import cluster
from tests.spark.sessions import SMALL

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_process]
ROOT = Path(__file__).parents[2]

#: Commands one after the other in one process, so that they share a driver; prints their exit codes last.
COMMANDS = """
    import sys
    from partwise.cli import main
    codes = []
    for words in (["run"], ["ingest"], ["run", "--json"], ["verify"]):
        if words == ["ingest"]:
            with open("landing/measurements/late.csv", "w") as late:
                late.write("event_time,src,dest,loss\\n2026-10-03T10:03:30,rom,ams,11\\n")
        try:
            main(words)
        except SystemExit as ended:
            codes.append(ended.code)
    print(codes)
"""


def settings(master: str) -> str:
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    conf = {**SMALL, "spark.executor.memory": "512m", "spark.executor.extraJavaOptions": quick}
    conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.extraJavaOptions": quick}
    return json.dumps({"spark": {"master": master, "conf": conf}})  # which is YAML


def test_the_example_on_a_cluster(tmp_path: Path) -> None:
    work, base = tmp_path / "work", tmp_path / "cluster"
    for name in ("view_defs", "landing"):
        shutil.copytree(ROOT / name, work / name)
    with cluster(base) as master:
        (work / "partwise.yaml").write_text(settings(master))
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PARTWISE_")}
        command = [sys.executable, "-c", textwrap.dedent(COMMANDS)]
        done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "[0, 0, 0, 0]", done.stdout + done.stderr
    assert "1 late row in 2026-10-03T10:03" in done.stdout
    assert '"reason": "late rows in measurements[2026-10-03T10:03]"' in done.stdout
    assert " 0 differences." in done.stdout
    assert [len(list((base / f"work-{worker}").glob("app-*"))) for worker in range(2)] == [1, 1]  # both took part
