"""The set-up notices what is broken and repairs it. Real environments, real Ivy, real Java; no network.

The packages come from a folder of wheels and the jars from a folder that looks like a Maven repository, both made
here, so that every damage can be tried in seconds.
"""

import base64
import csv
import hashlib
import importlib.metadata
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

# One project for all of them, made sound again before each: making one takes the longest, so they share a process.
pytestmark = pytest.mark.xdist_group("set-up")

ROOT = Path(__file__).resolve().parents[1]
JARS = {"delta-one": b"first jar" * 1000, "delta-two": b"second jar" * 1000}


class Project:
    """A small copy of the project: the real set-up, two small jars, one small package."""

    def __init__(self, folder: Path, wheels: Path) -> None:
        self.root = folder / "project"
        self.home = folder / "home"
        self.maven = folder / "maven"
        self.wheels = wheels
        shutil.copytree(ROOT / "tools", self.root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        (self.root / "partwise").mkdir()
        (self.root / "partwise/__init__.py").write_text('__version__ = "0"\n')
        (self.root / "pyproject.toml").write_text(
            '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
            '[project]\nname = "partwise"\nversion = "0"\n[tool.setuptools]\npackages = ["partwise"]\n'
        )
        self.home.mkdir()
        self.list_jars()
        self.require("tiny==1")

    def repair(self) -> None:
        """As if no test had been here before: nothing in the home folder, what is required and offered as at first."""
        if moved := self.root.name != "project":
            self.root = self.root.rename(self.root.with_name("project"))
        shutil.rmtree(self.home / ".m2", ignore_errors=True)
        shutil.rmtree(self.maven)
        self.list_jars()
        self.require("tiny==1")
        if moved or not self.is_sound():
            done = self.set_up()
            assert done.returncode == 0, done.stderr
            assert self.is_sound()

    def require(self, *lines: str) -> None:
        own = [f"{name}=={importlib.metadata.version(name)}" for name in ("setuptools", "uv")]
        (self.root / "requirements.txt").write_text("\n".join([*own, *lines]) + "\n")

    def list_jars(self) -> None:
        lines = []
        for name, content in JARS.items():
            folder = self.maven / f"io/delta/{name}/1.0"
            folder.mkdir(parents=True)
            (folder / f"{name}-1.0.jar").write_bytes(content)
            (folder / f"{name}-1.0.pom").write_text(
                "<project><modelVersion>4.0.0</modelVersion><groupId>io.delta</groupId>"
                f"<artifactId>{name}</artifactId><version>1.0</version></project>"
            )
            lines.append(f"io.delta:{name}:1.0 {hashlib.sha256(content).hexdigest()}")
        (self.root / "spark_jobs").mkdir(exist_ok=True)
        (self.root / "spark_jobs/jars.txt").write_text("\n".join(lines) + "\n")
        (self.root / "spark_jobs/jars_object_store.txt").write_text(lines[0] + "\n")

    def environment(self) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ("PATH", "JAVA_HOME") if key in os.environ}
        offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels), "UV_OFFLINE": "1"}
        own = {"HOME": str(self.home), "UV_CACHE_DIR": str(self.home / "uv"), "MAVEN_MIRROR": self.maven.as_uri()}
        return {**kept, **offline, **own, "PYTHON": sys.executable}

    def command(self) -> list[str]:
        return ["sh", str(self.root / "tools/setup.sh")]

    def set_up(self, **environment: str) -> subprocess.CompletedProcess[str]:
        env = {**self.environment(), **environment}
        return subprocess.run(self.command(), env=env, capture_output=True, text=True, timeout=400)

    def site(self) -> Path:
        return next((self.root / ".venv").glob("lib/python3*/site-packages"))

    def is_sound(self) -> bool:
        if not (self.root / ".venv/bin/python").exists() or not (self.root / ".jars").exists():
            return False
        script = "import partwise, tiny; print(tiny.VALUE)"
        done = subprocess.run([self.root / ".venv/bin/python", "-I", "-c", script], capture_output=True, text=True)
        jars = {path.name: path.read_bytes() for path in (self.root / ".jars").iterdir()}
        return done.stdout == "42\n" and jars == {f"{name}-1.0.jar": content for name, content in JARS.items()}


def write_wheel(path: Path, info: str, files: dict[str, bytes]) -> None:
    rows = []
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in files.items():
            member = zipfile.ZipInfo(name)
            member.external_attr = 0o100755 << 16
            wheel.writestr(member, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(content)}")
        wheel.writestr(f"{info}/RECORD", "\n".join([*rows, f"{info}/RECORD,,", ""]))


def repack(name: str, into: Path) -> None:
    """The wheel of a package that is installed here, made again from its files."""
    dist = importlib.metadata.distribution(name)
    info = f"{name}-{dist.version}.dist-info"
    site = Path(str(dist.locate_file("")))
    files = {}
    for row in csv.reader((site / info / "RECORD").read_text().splitlines()):
        if not row[2] or row[0].endswith((".pyc", "/INSTALLER", "/REQUESTED")):
            continue
        target = f"{name}-{dist.version}.data/scripts/{Path(row[0]).name}" if row[0].startswith("..") else row[0]
        files[target] = (site / row[0]).read_bytes()
    write_wheel(into / f"{name}-{dist.version}-py3-none-any.whl", info, files)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    for name in ("uv", "setuptools"):
        repack(name, folder)
    spark = Path(str(importlib.metadata.distribution("pyspark").locate_file("pyspark/jars")))
    ivy = next(spark.glob("ivy-*.jar"))  # a part of Spark, where the set-up takes it from
    for version, value in (("1", b"VALUE = 42\n"), ("2", b"VALUE = 43\n")):
        meta = f"Metadata-Version: 2.1\nName: tiny\nVersion: {version}\n".encode()
        tag = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        info = f"tiny-{version}.dist-info"
        files = {"tiny/__init__.py": value, f"pyspark/jars/{ivy.name}": ivy.read_bytes()}
        files |= {f"{info}/METADATA": meta, f"{info}/WHEEL": tag}
        write_wheel(folder / f"tiny-{version}-py3-none-any.whl", info, files)
    return folder


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Project:
    return Project(tmp_path_factory.mktemp("set-up"), wheels)


@pytest.fixture
def project(shared: Project) -> Project:
    """A sound project, whatever the test before left behind."""
    shared.repair()
    return shared


def test_a_second_call_finds_nothing_to_do(project: Project) -> None:
    done = project.set_up()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


DAMAGES: dict[str, Callable[[Project], object]] = {
    "a package's file is deleted": lambda p: (p.site() / "tiny/__init__.py").unlink(),
    "a package's file is cut off": lambda p: (p.site() / "tiny/__init__.py").write_text(""),
    "a package is gone without a trace": lambda p: [shutil.rmtree(path) for path in p.site().glob("tiny*")],
    "a package's list of files is gone": lambda p: (p.site() / "tiny-1.dist-info/RECORD").unlink(),
    "another version was installed": lambda p: (p.site() / "tiny-1.dist-info").rename(p.site() / "tiny-2.dist-info"),
    "the project itself is gone": lambda p: [shutil.rmtree(path) for path in p.site().glob("partwise-*.dist-info")],
    "uv is gone": lambda p: (p.root / ".venv/bin/uv").unlink(),
    "the last set-up did not finish": lambda p: (p.root / ".venv/partwise-set-up.json").unlink(),
    "its note is cut off": lambda p: (p.root / ".venv/partwise-set-up.json").write_text('{"inputs"'),
    "a jar is deleted": lambda p: (p.root / ".jars/delta-one-1.0.jar").unlink(),
    "a jar is cut off": lambda p: os.truncate(p.root / ".jars/delta-two-1.0.jar", 100),
    "a jar of another version lies beside": lambda p: (p.root / ".jars/delta-one-0.9.jar").write_bytes(b"old"),
    "the folder of jars is gone": lambda p: shutil.rmtree(p.root / ".jars"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_noticed_and_repaired(project: Project, damage: str) -> None:
    DAMAGES[damage](project)
    done = project.set_up()
    assert done.returncode == 0, done.stderr
    assert project.is_sound()
    assert project.set_up().stderr == ""


def test_an_environment_that_does_not_start_is_made_anew(project: Project) -> None:
    (project.root / ".venv/bin/python").unlink()
    assert "making the virtual environment" in project.set_up().stderr
    assert project.is_sound()


def test_a_changed_list_of_packages_is_followed(project: Project) -> None:
    project.require("tiny==2")
    assert "bringing the packages up to date" in project.set_up().stderr
    assert not project.is_sound()
    project.require("tiny==1")
    assert project.set_up().returncode == 0
    assert project.is_sound()


def test_a_killed_set_up_is_continued(project: Project) -> None:
    project.require("tiny==2")
    for pause in (0.3, 0.8, 1.5):
        # A group of its own, so that the programs it started die with it.
        started = subprocess.Popen(
            project.command(), env=project.environment(), stderr=subprocess.DEVNULL, start_new_session=True
        )
        time.sleep(pause)
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()
    project.require("tiny==1")
    done = project.set_up()
    assert done.returncode == 0, done.stderr
    assert project.is_sound()


def test_two_calls_at_once_do_not_disturb_each_other(project: Project) -> None:
    shutil.rmtree(project.root / ".jars")
    (project.site() / "tiny/__init__.py").unlink()
    both = [subprocess.Popen(project.command(), env=project.environment(), stderr=subprocess.PIPE) for _ in range(2)]
    assert [call.wait(timeout=400) for call in both] == [0, 0]
    assert sorted(bool(call.communicate()[1]) for call in both) == [False, True], "only one of them had work"
    assert project.is_sound()


def test_descriptions_without_jars_in_the_local_maven_repository_do_no_harm(project: Project) -> None:
    shutil.rmtree(project.root / ".jars")
    half = project.home / ".m2/repository/io/delta/delta-one/1.0"
    shutil.copytree(project.maven / "io/delta/delta-one/1.0", half)
    (half / "delta-one-1.0.jar").unlink()
    assert project.set_up().returncode == 0
    assert project.is_sound()


def test_jars_in_the_local_maven_repository_are_used_without_a_network(project: Project) -> None:
    shutil.rmtree(project.root / ".jars")
    shutil.copytree(project.maven, project.home / ".m2/repository", dirs_exist_ok=True)
    assert project.set_up(MAVEN_MIRROR="file:///nonexistent").returncode == 0
    assert project.is_sound()


def test_the_mirror_in_mavens_settings_is_followed(project: Project) -> None:
    shutil.rmtree(project.root / ".jars")
    settings = project.home / ".m2/settings.xml"
    settings.parent.mkdir(parents=True)
    settings.write_text(
        '<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0"><mirrors><mirror><id>own</id>'
        f"<mirrorOf>*</mirrorOf><url>{project.maven.as_uri()}</url></mirror></mirrors></settings>"
    )
    assert project.set_up(MAVEN_MIRROR="").returncode == 0
    assert project.is_sound()


@pytest.mark.parametrize(
    "asks",
    [
        {"OBJECT_STORE": "1"},
        {"PARTWISE_WAREHOUSE": "s3://lake/warehouse"},
        {"WORKSPACE": "shop"},
    ],
)
def test_jars_for_object_stores_come_when_a_workspace_asks(project: Project, asks: dict[str, str]) -> None:
    more = project.root / ".jars/object_store"
    (project.root / "shop").mkdir(exist_ok=True)
    (project.root / "shop/partwise.yaml").write_text("landing: landing\nwarehouse: 's3://lake/warehouse'\n")
    assert project.set_up(OBJECT_STORE="0", PARTWISE_WAREHOUSE="warehouse").returncode == 0
    assert not more.exists()
    assert project.set_up(**asks).returncode == 0
    assert [jar.name for jar in more.iterdir()] == ["delta-one-1.0.jar"]
    (more / "delta-one-1.0.jar").write_bytes(b"damaged")
    assert project.set_up().returncode == 0  # once there, they are kept sound
    assert (more / "delta-one-1.0.jar").read_bytes() == JARS["delta-one"]
    shutil.rmtree(more)
    assert project.is_sound()


def test_a_jar_with_other_content_is_refused(project: Project) -> None:
    jar = project.maven / "io/delta/delta-one/1.0/delta-one-1.0.jar"
    good = jar.read_bytes()
    jar.write_bytes(b"something else")
    shutil.rmtree(project.root / ".jars")
    done = project.set_up()
    assert done.returncode != 0
    assert "delta-one-1.0.jar came with other content than spark_jobs/jars.txt says" in done.stderr
    assert not (project.root / ".jars/delta-one-1.0.jar").exists()
    jar.write_bytes(good)
    assert project.set_up().returncode == 0
    assert project.is_sound()


def test_a_moved_project_is_set_up_again(project: Project) -> None:
    project.root = project.root.rename(project.root.with_name("moved"))
    assert project.set_up().returncode == 0
    assert project.is_sound()
    script = (project.root / ".venv/bin/pip").read_text()
    assert str(project.root) in script
