"""What is started, in which order, with which environment."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from partwise.serve.site.environment import Keys, environment
from partwise.serve.site.site import Ports, Site
from partwise.serve.supervise.components import STOP, components

KEYS = Keys("f", "j", "s", "admin", "secret")
SITE = Site(
    workspace=Path("/w"),
    ports=Ports(1080, 1502, 1404),
    feed=2.0,
    ledger_url="postgresql://postgres:@/ledger?host=/w/pg",
    airflow_url="postgresql://postgres:@/airflow?host=/w/pg",
    java_home="/java",
    code=Path("/code"),
)


def everything_before(name: str, migrate: bool = True) -> set[str]:
    found = {component.name: component for component in components(SITE, migrate)}
    before = set(found[name].needs)
    return before.union(*(everything_before(other, migrate) for other in before))


def test_whatever_is_needed_comes_earlier_in_the_list() -> None:
    for migrate in (True, False):
        seen: set[str] = set()
        for component in components(SITE, migrate):
            assert set(component.needs) <= seen
            seen.add(component.name)


def test_tasks_start_only_when_they_can_succeed() -> None:
    # Without the API a task fails at once, without its pool it never starts, without a driver it cannot work.
    assert everything_before("scheduler") == {"migrate", "api-server", "pools", "spark"}
    assert "api-server" in everything_before("triggerer")


def test_a_migrated_database_is_not_migrated_again() -> None:
    assert "migrate" in everything_before("api-server")
    assert "migrate" in everything_before("dag-processor")
    assert "migrate" not in {component.name for component in components(SITE, migrate=False)}


def test_there_is_a_feed_only_if_wanted() -> None:
    [feed] = [component for component in components(SITE) if component.name == "feed"]
    assert feed.command[-3:] == ("/w/landing", "--every", "2.0")
    assert "feed" not in {component.name for component in components(replace(SITE, feed=None))}


def test_every_component_has_its_place_when_all_stop() -> None:
    rows = [name for row in STOP for name in row]
    assert {component.name for component in components(SITE)} == set(rows)
    assert len(rows) == len(set(rows))


def test_nothing_listens_for_other_machines() -> None:
    found = environment(SITE, KEYS, {})
    assert found["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert found["SPARK_LOCAL_IP"] == "127.0.0.1"
    # The servers of task logs listen on all addresses and have no setting for that.
    for name in ("scheduler", "triggerer"):
        [component] = [c for c in components(SITE) if c.name == name]
        assert "--skip-serve-logs" in component.command


def test_ports_reach_everybody_who_needs_them() -> None:
    found = environment(SITE, KEYS, {})
    assert found["AIRFLOW__API__PORT"] == "1080"
    assert found["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:1080/execution/"
    assert json.loads(found["AIRFLOW_CONN_SPARK_CONNECT"]) == {
        "conn_type": "spark_connect",
        "host": "sc://127.0.0.1",
        "port": 1502,
    }
    named = {component.name: component for component in components(SITE)}
    assert named["spark"].url == "sc://127.0.0.1:1502"
    assert "1502" in named["spark"].command
    assert "spark.ui.port=1404" in named["spark"].command
    assert named["api-server"].url == "http://127.0.0.1:1080/api/v2/monitor/health"


def test_each_process_gets_the_database_through_its_driver() -> None:
    found = environment(SITE, KEYS, {})
    assert found["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] == "postgresql+psycopg2://postgres:@/airflow?host=/w/pg"
    assert found["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC"] == "postgresql+asyncpg://postgres:@/airflow?host=/w/pg"
    assert found["PARTWISE_LEDGER"] == SITE.ledger_url


def test_settings_of_another_airflow_do_not_leak_in() -> None:
    shell = {
        "AIRFLOW_HOME": "/other",
        "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
        "PARTWISE_LEDGER": "/other",
        "PARTWISE_SPARK_REMOTE": "/other",
        "PARTWISE_WAREHOUSE": "/tables",
        "SPARK_HOME": "/other",
        "PATH": "/bin",
        "HTTP_PROXY": "http://proxy",
        "no_proxy": "example.org",
    }
    found = environment(SITE, KEYS, shell)
    assert [name for name, value in found.items() if value in ("/other", "CeleryExecutor")] == []
    assert (found["PATH"], found["PARTWISE_WAREHOUSE"]) == ("/bin", "/tables")
    assert found["no_proxy"] == "example.org,127.0.0.1,localhost"


def test_no_password_is_on_a_command_line() -> None:
    words = [word for component in components(SITE) for word in component.command]
    assert [word for word in words if "secret" in word] == []


def test_every_setting_is_one_that_airflow_knows() -> None:
    """A setting with a typing error would be ignored in silence."""
    found = find_spec("airflow")  # not imported: that alone would write a configuration into the home folder
    assert found is not None
    assert found.submodule_search_locations
    described = yaml.safe_load((Path(found.submodule_search_locations[0]) / "config_templates/config.yml").read_text())
    known = {(section, name) for section, options in described.items() for name in options["options"]}
    ours = [tuple(name.lower().split("__")[1:]) for name in environment(SITE, KEYS, {}) if name.startswith("AIRFLOW__")]
    assert len(ours) > 30
    assert [name for name in ours if name not in known] == []


def test_dags_of_the_workspace_are_read_beside_the_others() -> None:
    name = "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST"
    without = json.loads(environment(SITE, KEYS, {})[name])
    assert [bundle["name"] for bundle in without] == ["partwise"]
    own = json.loads(environment(replace(SITE, dags=Path("/w/dags")), KEYS, {})[name])[1]
    assert (own["name"], own["kwargs"]["path"]) == ("workspace", "/w/dags")


@pytest.mark.parametrize("workspace, read", [("/code", True), ("/code/.run", True), ("/w", False), ("/code/w", False)])
def test_dags_of_the_project_are_read_where_their_tables_are(workspace: str, read: bool) -> None:
    found = environment(replace(SITE, workspace=Path(workspace)), KEYS, {})
    paths = [b["kwargs"].get("path") for b in json.loads(found["AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST"])]
    assert ("/code/dags" in paths) == read


@pytest.mark.parametrize("name", ["plugins_folder", "dags_folder"])
def test_code_is_where_the_site_says(name: str) -> None:
    assert environment(SITE, KEYS, {})[f"AIRFLOW__CORE__{name.upper()}"] == f"/code/{name.partition('_')[0]}"


@pytest.mark.parametrize(
    "master, tasks", [("local[2]", "8"), ("local[16]", "20"), ("local[1]", "8"), ("spark://host:7077", "8")]
)
def test_a_driver_with_more_cores_gets_more_tasks(master: str, tasks: str) -> None:
    assert environment(replace(SITE, master=master), KEYS, {})["AIRFLOW__CORE__PARALLELISM"] == tasks


def test_slots_for_steps_are_not_kept_empty() -> None:
    """More slots than cores, since a task has its slot while it is queued, and a process for each of them; short sleeps."""
    found = environment(SITE, KEYS, {})
    assert SITE.spark_steps > SITE.cores
    assert int(found["AIRFLOW__CORE__PARALLELISM"]) >= SITE.spark_steps + 4
    assert float(found["AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME"]) < 0.5
