"""The environment of the components: every setting of Airflow that is not its default, and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from partwise.serve.site.site import Site


@dataclass(frozen=True, slots=True)
class Keys:
    """Made at the first start and kept: what encrypts, what signs, and who may log in."""

    fernet: str
    jwt: str
    session: str
    user: str
    password: str


def bundles(site: Site) -> str:
    """Definitions become DAGs through our bundle; those in `dags/` of the workspace are written manually.

    The project's own read the tables of the example: elsewhere they would only fail.
    """
    ours = "partwise_airflow.bundle.ViewsBundle"
    found: list[dict[str, object]] = [{"name": "partwise", "classpath": ours, "kwargs": {"refresh_interval": 5}}]
    local = "airflow.dag_processing.bundles.local.LocalDagBundle"
    projects = site.code / "dags" if site.is_the_projects else None
    for name, folder in (("dags", projects), ("workspace", site.dags)):
        if folder is not None:
            kwargs = {"path": str(folder), "refresh_interval": 30}
            found.append({"name": name, "classpath": local, "kwargs": kwargs})
    return json.dumps(found)


def airflow_settings(site: Site, keys: Keys) -> dict[str, dict[str, str]]:
    """Section → setting → value."""
    return {
        "core": {
            "executor": "LocalExecutor",
            # Each is a process forked at the start. Steps may take all cores, and others must get on meanwhile.
            "parallelism": str(4 + max(site.spark_steps, site.cores)),
            "max_active_runs_per_dag": "16",  # a waiting run must not keep a ready one out
            "plugins_folder": str(site.code / "plugins"),
            "dags_folder": str(site.code / "dags"),
            "load_examples": "False",
            "dags_are_paused_at_creation": "False",  # events for a paused DAG are lost
            "min_serialized_dag_update_interval": "5",
            "fernet_key": keys.fernet,
            "execution_api_server_url": f"{site.address}/execution/",
            "simple_auth_manager_users": f"{keys.user}:admin",
            "simple_auth_manager_passwords_file": str(site.state / "passwords.json"),
        },
        "database": {
            "sql_alchemy_conn": driver(site.airflow_url, "psycopg2"),
            "sql_alchemy_conn_async": driver(site.airflow_url, "asyncpg"),
        },
        "api": {
            "host": "127.0.0.1",
            "port": str(site.ports.airflow),
            "base_url": site.address,
            "workers": "1",
            "secret_key": keys.session,
        },
        "api_auth": {"jwt_secret": keys.jwt},
        "scheduler": {
            # After a round in which nothing was queued or ended the scheduler sleeps, by default for a second: so long a
            # slot that has become free may stay empty, which is as long as a small step takes.
            "scheduler_idle_sleep_time": "0.2",
            # The defaults notice a dead process after five minutes.
            "scheduler_health_check_threshold": "15",
            "orphaned_tasks_check_interval": "5",
            "task_instance_heartbeat_timeout": "60",  # longer than a restart of the api-server takes
            "task_instance_heartbeat_timeout_detection_interval": "5",
            "task_queued_timeout": "60",
            "task_queued_timeout_check_interval": "15",
            "parsing_cleanup_interval": "15",
        },
        # A task asks the api-server again as soon as it is back. The defaults give up after ten seconds, which is less
        # than a restart takes, with pauses that grow.
        "workers": {"execution_api_retries": "40", "execution_api_retry_wait_max": "2"},
        "triggerer": {"triggerer_health_check_threshold": "15"},
        "dag_processor": {
            "dag_bundle_config_list": bundles(site),
            "dag_bundle_storage_path": str(site.state / "bundles"),
            # A changed definition is seen within seconds.
            "bundle_refresh_check_interval": "5",
            # A file that changes is parsed at once, whatever this says; the others need not keep a core busy, and a
            # change need not wait until all of them are through.
            "min_file_process_interval": "120",
            "stale_dag_threshold": "20",
            "parsing_processes": "1",
        },
        "logging": {"base_log_folder": str(site.logs / "tasks")},
    }


def driver(url: str, name: str) -> str:
    """The same database through another driver: `postgresql://...` → `postgresql+asyncpg://...`."""
    scheme, separator, rest = url.partition("://")
    return f"{scheme.partition('+')[0]}+{name}{separator}{rest}"


def environment(site: Site, keys: Keys, inherited: Mapping[str, str]) -> dict[str, str]:
    """What every component gets. Settings of another Airflow or Spark in the user's shell must not leak in."""
    others = ("AIRFLOW_", "SPARK_", "PYSPARK_", "PARTWISE_AIRFLOW_", "PARTWISE_SPARK_")
    found = {name: value for name, value in inherited.items() if not name.startswith(others)}
    found |= {
        f"AIRFLOW__{section}__{name}".upper(): value
        for section, settings in airflow_settings(site, keys).items()
        for name, value in settings.items()
    }
    connect = {"conn_type": "spark_connect", "host": "sc://127.0.0.1", "port": site.ports.spark}
    found |= {
        "AIRFLOW_HOME": str(site.state / "airflow"),
        "AIRFLOW_CONN_SPARK_CONNECT": json.dumps(connect),
        "AIRFLOW_CONN_SPARK_SUBMIT": json.dumps({"conn_type": "spark", "host": site.master}),
        "PARTWISE_WORKSPACE": str(site.workspace),
        "PARTWISE_LEDGER": site.ledger_url,
        "PARTWISE_SPARK_UI": f"http://127.0.0.1:{site.ports.spark_ui}",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONUNBUFFERED": "1",
        # Code in the repository comes before anything of the same name that happens to be installed.
        "PYTHONPATH": ":".join(filter(None, [str(site.code), inherited.get("PYTHONPATH", "")])),
    }
    for name in ("no_proxy", "NO_PROXY"):  # components talk to each other over the loopback address, never by a proxy
        found[name] = ",".join(filter(None, [inherited.get(name, ""), "127.0.0.1", "localhost"]))
    if site.java_home:
        found["JAVA_HOME"] = site.java_home
    return found
