"""docker-compose.yml: what it says is complete, safe, and the same as what the supervisor does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from check_jsonschema.builtin_schemas import get_builtin_schema

from partwise.serve.site.environment import Keys, environment
from partwise.serve.site.site import Site
from partwise.settings import read_settings
from tests.compose import FILE, Missing, read, variables

ROOT = FILE.parent
RAW = yaml.safe_load(FILE.read_text())
GIVEN = {name: f"given-{name}" for name in variables()}
SERVICES: dict[str, dict[str, Any]] = read(GIVEN)["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "partwise"}


def misuses(file: dict[str, Any]) -> list[str]:
    """Where a file does not follow the schema of the Compose specification; words that it does not know included."""
    schema = get_builtin_schema("vendor.compose-spec")
    found = jsonschema.validators.validator_for(schema)(schema).iter_errors(file)
    return sorted(error.json_path for error in found)


def test_the_file_follows_the_compose_specification() -> None:
    assert misuses(read(GIVEN)) == []


@pytest.mark.parametrize(
    "place, value",
    [
        (("services", "postgres", "healthcheck", "intervall"), "5s"),
        (("services", "setup", "depends_on", "postgres", "condition"), "helthy"),
        (("services", "scheduler", "comand"), ["airflow"]),
        (("services", "scheduler", "environment"), "A=1"),
        (("volume",), {}),
    ],
)
def test_a_typing_error_would_be_seen(place: tuple[str, ...], value: object) -> None:
    file = read(GIVEN)
    node = file
    for name in place[:-1]:
        node = node[name]
    node[place[-1]] = value
    assert misuses(file) != []


@pytest.mark.parametrize("name", sorted(variables()))
def test_every_secret_comes_from_outside(name: str) -> None:
    with pytest.raises(Missing, match=name):
        read({key: value for key, value in GIVEN.items() if key != name})


def test_there_is_no_default_password() -> None:
    for name, service in RAW["services"].items():
        for key, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|FERNET", key) and not key.endswith("_FILE"):
                assert re.fullmatch(r"\$\{\w+:\?.+\}", str(value)), f"{name}: {key} must come from outside"
            assert not re.search(r"://[^@/]*:[^@/]+@", str(value)), f"{name}: {key} has a password in a URL"


def test_the_file_of_secrets_holds_all_of_them_and_is_private(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    command = [sys.executable, str(ROOT / "tools/compose_env.py"), str(file)]
    subprocess.run(command, check=True, capture_output=True)
    made = dict(line.split("=", 1) for line in file.read_text().splitlines())
    assert set(made) == set(variables())
    assert file.stat().st_mode & 0o777 == 0o600
    assert min(map(len, made.values())) >= 16
    subprocess.run(command, check=True, capture_output=True)
    assert dict(line.split("=", 1) for line in file.read_text().splitlines()) == made


def test_services_wait_for_what_they_need() -> None:
    for name, service in SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            healthy = how["condition"] == "service_healthy"
            assert healthy == ("healthcheck" in SERVICES[other]), f"{name} cannot wait for {other} like this"
    assert SERVICES["setup"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert {"api-server", "spark-connect"} <= set(SERVICES["scheduler"]["depends_on"])


def test_everything_that_runs_on_has_a_health_check() -> None:
    assert [name for name, s in SERVICES.items() if "healthcheck" not in s and s["restart"] != "no"] == []


def test_a_database_that_is_still_being_prepared_is_not_healthy() -> None:
    """The image does that with a server that listens on its socket only."""
    assert "--host=127.0.0.1" in SERVICES["postgres"]["healthcheck"]["test"]


def test_modules_that_are_started_exist() -> None:
    words = [s["command"] for s in OURS.values()] + [
        s["healthcheck"]["test"] for s in OURS.values() if "healthcheck" in s
    ]
    modules = [line[line.index("-m") + 1] for line in words if "-m" in line]
    assert len(modules) >= 5
    assert [name for name in modules if find_spec(name) is None] == []


def test_ports_are_open_to_this_machine_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports == ["127.0.0.1:8080:8080", "127.0.0.1:4040:4040"]


def test_logs_of_tasks_link_to_the_pages_of_the_driver() -> None:
    found = read(GIVEN | {"SPARK_UI_PORT": "4444"})["services"]
    assert found["scheduler"]["environment"]["PARTWISE_SPARK_UI"] == "http://localhost:4444"
    assert found["spark-connect"]["ports"] == ["127.0.0.1:4444:4040"]
    assert {"spark.ui.enabled=true", "spark.ui.port=4040"} <= set(found["spark-connect"]["command"])


def test_commands_inside_use_the_airflow_and_the_spark_that_are_there(tmp_path: Path) -> None:
    """Whatever the workspace's own settings say."""
    (tmp_path / "partwise.yaml").write_text("spark: {master: 'local[4]'}")
    for name in ("api-server", "scheduler"):
        found = read_settings(tmp_path / "partwise.yaml", SERVICES[name]["environment"])
        assert found.airflow.url == "http://api-server:8080"
        assert (found.spark.master, found.spark.remote) == (None, "sc://spark-connect:15002")
        # The container of the api-server knows the password; those that run tasks do not.
        assert (found.airflow.password is not None) == (name == "api-server")


def test_a_server_does_not_keep_the_password_in_its_environment(tmp_path: Path) -> None:
    said = "import os; print([name for name, value in os.environ.items() if value == 'a secret'])"
    given = {
        "AIRFLOW_ADMIN_PASSWORD": "a secret",
        "PARTWISE_AIRFLOW_PASSWORD": "a secret",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(tmp_path / "passwords.json"),
    }
    command = [sys.executable, "-m", "partwise.serve.site.passwords", sys.executable, "-c", said]
    done = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout, (tmp_path / "passwords.json").read_text()) == ("[]\n", '{"admin": "a secret"}')


def test_all_who_touch_tables_have_them_at_the_same_place() -> None:
    for name in set(OURS) - {"spark-master"}:
        assert "warehouse:/warehouse" in SERVICES[name]["volumes"], name
    used = {v.partition(":")[0] for s in SERVICES.values() for v in s.get("volumes", []) if re.match(r"\w", v)}
    assert used == set(RAW["volumes"])


def test_the_object_store_is_an_option_that_all_who_touch_tables_know() -> None:
    """Without it nothing changes; with it the driver and its executors get the same address and key as everybody."""
    assert SERVICES["object-store"]["profiles"] == ["object-store"]
    assert not [name for name, s in SERVICES.items() if "object-store" in s.get("depends_on", {})]
    assert SERVICES["scheduler"]["environment"]["PARTWISE_WAREHOUSE"] == "/warehouse"
    chosen = {"WAREHOUSE": "s3://lake/warehouse", "STORE_ENDPOINT": "http://object-store:9000"}
    found = read(GIVEN | chosen)["services"]
    for name in ("scheduler", "api-server", "spark-connect"):
        settings = read_settings(Path("none.yaml"), found[name]["environment"])
        assert (settings.warehouse, settings.store.endpoint) == tuple(chosen.values()), name
    keys = [{"path": ".env.store", "required": False}]
    for name in (*(set(OURS) - {"spark-master"}), "object-store"):
        assert SERVICES[name]["env_file"] == keys, name


def test_the_key_of_the_store_is_made_once_and_private(tmp_path: Path) -> None:
    file = tmp_path / ".env.store"
    command = [sys.executable, str(ROOT / "tools/compose_env.py"), "--object-store", str(file)]
    subprocess.run(command, check=True, capture_output=True)
    made = dict(line.split("=", 1) for line in file.read_text().splitlines())
    assert made["AWS_SECRET_ACCESS_KEY"] == made["MINIO_ROOT_PASSWORD"]
    assert len(made["AWS_SECRET_ACCESS_KEY"]) >= 16
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_image_is_built_from_files_that_exist() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    copied = [word for line in re.findall(r"^COPY (.+) \S+$", dockerfile, re.MULTILINE) for word in line.split()]
    assert copied
    assert [name for name in copied if not name.startswith("--") and not (ROOT / name).exists()] == []
    for folder in ("/warehouse", "/logs", "/airflow"):
        assert re.search(rf"chown partwise .*{folder}", dockerfile), f"a volume at {folder} would belong to root"


def test_airflow_is_told_what_the_supervisor_tells_it() -> None:
    """Settings that were hard to find must not be lost on the way from one machine to containers."""
    ours = environment(Site(Path("/app"), code=Path("/app")), Keys("", "", "", "admin", ""), {})
    compose = SERVICES["scheduler"]["environment"]
    assert {n for n in ours if n.startswith("AIRFLOW__")} <= set(compose)
    elsewhere = re.compile(
        "CONN|URL|HOST|KEY|SECRET|PASSWORDS|STORAGE_PATH|LOG_FOLDER|PARALLELISM|DAG_BUNDLE_CONFIG_LIST"
    )
    same = [n for n in ours if n.startswith("AIRFLOW__") and not elsewhere.search(n)]
    assert len(same) > 15
    assert {n: compose[n] for n in same} == {n: ours[n] for n in same}
    bundles = "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST"
    # The workspace of compose is this folder unless another one is named: then its `dags/` count, and not the example's.
    elsewhere_too = ours[bundles].replace("/app/dags", "/workspace/dags")
    assert yaml.safe_load(compose[bundles]) == yaml.safe_load(elsewhere_too)
