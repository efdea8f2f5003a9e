"""The project around the code: one way in, everything pinned, nothing of one machine in it."""

import importlib.metadata
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = (ROOT / "requirements.txt").read_text()
PINS = dict(re.findall(r"^([a-z0-9.-]+)==([^\s;]+)", REQUIREMENTS, re.MULTILINE))


def make(*arguments: str) -> str:
    # Without what an outer make says to inner ones: the tests themselves are started by make.
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"}
    command = ["make", *arguments]
    return subprocess.run(command, cwd=ROOT, env=outside, capture_output=True, text=True, check=True).stdout


def test_make_alone_lists_every_target_for_people() -> None:
    listed = re.findall(r"^  make ([a-z-]+) +\S", make(), re.MULTILINE)
    assert {"setup", "run", "demo", "test", "lint", "format", "bench", "clean"} <= set(listed)


@pytest.mark.parametrize("target", ["run", "demo", "test", "lint", "format", "bench"])
def test_every_target_sets_up_what_it_needs_first(target: str) -> None:
    commands = make("--dry-run", target).splitlines()
    assert commands[0] == "sh tools/setup.sh"


def test_clean_removes_what_runs_leave_and_nothing_that_people_or_the_set_up_made(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/clean.sh", tmp_path / "tools")
    left = ["partwise/__pycache__/a.pyc", ".mypy_cache/a", ".hypothesis/a", "derby.log", "metastore_db/a"]
    left += ["data_docs/index.html", ".run/partwise.yaml", ".run/.partwise/lock"]
    kept = ["partwise/a.py", ".venv/lib/__pycache__/a.pyc", ".jars/a.jar", "warehouse/sales/a.parquet", "ledger.db"]
    for name in left + kept:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    subprocess.run(["sh", "tools/clean.sh"], cwd=tmp_path, check=True)
    remaining = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert remaining == {*kept, "tools/clean.sh"}
    assert not (tmp_path / "partwise/__pycache__").exists()


def test_clean_leaves_an_example_that_is_being_served(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/clean.sh", tmp_path / "tools")
    lock = tmp_path / ".run/.partwise/lock"
    lock.parent.mkdir(parents=True)
    lock.write_text(str(os.getpid()))
    done = subprocess.run(["sh", "tools/clean.sh"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert lock.exists()
    assert f"served by process {os.getpid()}" in done.stdout


def test_continuous_integration_runs_what_a_person_types() -> None:
    script = ROOT / ".ci/run"
    assert script.stat().st_mode & 0o111
    assert script.read_text().splitlines()[-1] == "exec make test"


def test_every_requirement_is_pinned_and_none_names_a_host() -> None:
    lines = [line for line in REQUIREMENTS.splitlines() if line and not line.startswith("#")]
    assert len(lines) > 100
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9.-]+==[^\s;]+( ; .+)?", line)] == []
    assert "://" not in REQUIREMENTS


def test_every_choice_is_among_the_pins_with_its_reason() -> None:
    lists = [ROOT / "requirements.in", *sorted((ROOT / "requirements").glob("*.in"))]
    chosen = [line for file in lists for line in file.read_text().splitlines() if re.match(r"\w", line)]
    names = [re.match(r"[\w.-]+", line).group().lower() for line in chosen]  # type: ignore[union-attr]
    assert [name for name in names if name not in PINS] == []


def test_versions_that_must_match_do() -> None:
    assert PINS["pyspark"] == PINS["pyspark-client"], "both fill one folder"
    jars = (ROOT / "spark_jobs/jars.txt").read_text()
    spark = ".".join(PINS["pyspark"].split(".")[:2])
    assert f"io.delta:delta-spark_{spark}_2.13:{PINS['delta-spark']}" in jars
    assert set(re.findall(r"^io\.delta:[^:]+:(\S+)", jars, re.MULTILINE)) == {PINS["delta-spark"]}


def test_the_connector_for_object_stores_is_of_sparks_hadoop() -> None:
    own = importlib.metadata.distribution("pyspark").locate_file("pyspark/jars")
    [hadoop] = Path(str(own)).glob("hadoop-client-api-*.jar")
    jars = (ROOT / "spark_jobs/jars_object_store.txt").read_text()
    assert f"org.apache.hadoop:hadoop-aws:{hadoop.stem.rpartition('-')[2]} " in jars
    assert len(set(re.findall(r"^software\.amazon\.awssdk:[^:]+:(\S+)", jars, re.MULTILINE))) == 1


def tracked() -> list[Path]:
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_names_a_folder_of_some_machine() -> None:
    home = re.compile(rb"(?<![\w.])/(?:home|root|Users|work)/\w+")
    found = [
        f"{path.relative_to(ROOT)}: {match.group().decode()}"
        for path in tracked()
        if path.suffix not in {".parquet", ".png"}
        for match in home.finditer(path.read_bytes())
    ]
    assert found == []


def test_the_version_has_a_dated_section_in_the_changelog() -> None:
    from partwise import __version__

    assert re.search(
        rf"^## {re.escape(__version__)} - \d{{4}}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )


def test_ci_hooks_and_lint_run_the_same_tools() -> None:
    workflow = (ROOT / ".github/workflows/test.yml").read_text()
    assert re.search(r"^ +- run: make test$", workflow, re.MULTILINE)
    hooks, lint = (ROOT / ".pre-commit-config.yaml").read_text(), make("--dry-run", "lint")
    for tool in ("ruff format", "ruff check", "mypy", "tools/check_page.sh"):
        assert tool in hooks
        assert tool in lint
