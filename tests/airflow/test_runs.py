"""Tasks run for real, in one process against Airflow's database: what is emitted, how often, and a DAG of one's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

REGION = """
---
view: loss_by_region
part: 5 minutes
update: SELECT src AS region, AVG(loss) AS avg_loss FROM m[5*j..5*j+4] GROUP BY src
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, definitions: str) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("runs")
    workspace = folder / "ws"
    (workspace / "view_defs").mkdir(parents=True)
    (workspace / "partwise.yaml").write_text("")
    (workspace / "view_defs" / "all.yaml").write_text(definitions + REGION)
    bundles = [
        {"name": "partwise", "classpath": "partwise_airflow.bundle.ViewsBundle", "kwargs": {}},
        {
            "name": "dags",
            "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
            "kwargs": {"path": str(ROOT / "dags")},
        },
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
        "PARTWISE_WORKSPACE": str(workspace),
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{folder}/airflow.db",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(bundles),
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(folder / "bundles"),
    }
    airflow = [sys.executable, "-m", "airflow"]
    for command in (*airflow, "db", "migrate"), (sys.executable, str(HERE / "runs.py"), str(workspace)):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("FOUND "))
    return json.loads(line.removeprefix("FOUND "))


pytestmark = pytest.mark.airflow


def test_all_files_are_dags(found: dict[str, Any]) -> None:
    assert found["errors"] == {}


def test_nothing_ready_emits_nothing(found: dict[str, Any]) -> None:
    """A task whose outlets are set while it runs emits exactly those: Airflow does not promise this."""
    assert found["nothing"] == {"reconcile": "success"}
    assert found["events of nothing"] == []


def test_ready_parts_are_emitted_as_one_key_with_its_reason(found: dict[str, Any]) -> None:
    key, five = "2026-10-03T10:00..2026-10-03T10:04", "2026-10-03T10:00"
    why = f"m[{key}] arrived"
    # A run of `a` that somebody requested waits for a part of the future: that is no reason to leave the others.
    assert sorted(found["events"]) == [
        ["ready/a", key, {key: why}],
        ["ready/loss_by_region", five, {five: why}],
        ["ready/w", key, {key: why}],
    ]


def test_what_was_told_is_not_told_again_at_once(found: dict[str, Any]) -> None:
    assert found["events again"] == found["events"]


def test_a_dry_run_of_the_backfill_computes_nothing(found: dict[str, Any]) -> None:
    states = found["dry run"]
    assert states["plan"] == "success"
    assert states["report"] == "success"
    assert {states[name] for name in states if name.startswith("compute")} == {"skipped"}


@pytest.mark.parametrize("part", ["requested", "newest"])
def test_the_example_of_a_dag_written_by_hand_waits_and_reads(found: dict[str, Any], part: str) -> None:
    report = found[f"report of {part}"]
    assert report["states"] == {"choose": "success", "wait": "success", "report": "success"}
    assert report["waits"] == "loss_by_region[2026-10-03T10:00] exists"
    assert "north: 2.50" in report["read"]


def test_the_nightly_upkeep_does_all_it_can_and_fails_if_a_command_did(found: dict[str, Any]) -> None:
    assert set(found["upkeep"]) == {"reconcile", "retain", "compact", "audit", "done"}
    assert set(found["upkeep"].values()) == {"success"}
    assert found["broken upkeep"] == {
        "reconcile": "success",
        "retain": "failed",
        "compact": "success",
        "audit": "success",
        "done": "upstream_failed",
        "": "failed",
    }
    # What the audit found is no reason to try again: its list is in its log.
    assert found["spoiled ledger"] == {
        "reconcile": "success",
        "retain": "success",
        "compact": "success",
        "audit": "failed",
        "done": "upstream_failed",
    }
