"""What the set-up finds on a machine, and the one sentence it says when it does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def java_home(folder: Path, release: str | None, says: str = "") -> Path:
    """A folder that looks like a Java: the file `release`, and a program that answers -version."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/java").write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    (folder / "bin/java").chmod(0o755)
    if release is not None:
        (folder / "release").write_text(release)
    return folder


def set_up_code(code: str, **environment: str) -> str:
    """Runs a piece of code beside the set-up's modules, in a process of its own as the set-up is."""
    start = f"import sys; from pathlib import Path; sys.path.insert(0, {str(ROOT / 'tools/setup')!r})\n"
    done = subprocess.run([sys.executable, "-I", "-c", start + code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "release, says, version",
    [
        ('IMPLEMENTOR="X"\nJAVA_VERSION="17.0.15"\n', "", "17"),
        ('JAVA_VERSION="1.8.0_402"\n', "", "8"),
        ('JAVA_VERSION="21"\n', "", "21"),
        (None, 'openjdk version "25.0.1" 2025-10-21', "25"),
        (None, "not a Java", "None"),
    ],
)
def test_the_version_of_java_is_read(tmp_path: Path, release: str | None, says: str, version: str) -> None:
    home = java_home(tmp_path / "java", release, says)
    assert set_up_code(f"import java; print(java.version(Path({str(home)!r})))") == version


def test_an_old_java_home_is_passed_over(tmp_path: Path) -> None:
    old = java_home(tmp_path / "old", 'JAVA_VERSION="11.0.2"')
    new = java_home(tmp_path / "new", 'JAVA_VERSION="21.0.2"')
    code = "import java; java.USUAL_FOLDERS = (); print(java.find())"
    assert set_up_code(code, JAVA_HOME=str(old), PATH=f"{new}/bin") == str(new)
    assert set_up_code(code, JAVA_HOME=str(old), PATH="") == "None"


def test_a_java_outside_the_path_is_found_and_noted_for_make(tmp_path: Path) -> None:
    home = java_home(tmp_path / "jvm/java-17", 'JAVA_VERSION="17.0.15"')
    root = tmp_path / "project"
    root.mkdir()
    code = f"import java; java.USUAL_FOLDERS = ({str(tmp_path / 'jvm')!r},); java.ensure(Path({str(root)!r}))"
    set_up_code(code, PATH="")
    assert (root / ".java-home").read_text() == f"{home}\n"


def test_without_java_and_without_rights_there_is_a_command_to_type(tmp_path: Path) -> None:
    apt = tmp_path / "apt-get"
    apt.write_text("#!/bin/sh\nexit 1\n")
    apt.chmod(0o755)
    code = (
        "import os, java, trouble; java.USUAL_FOLDERS = (); os.geteuid = lambda: 1000\n"
        f"try: java.ensure(Path({str(tmp_path)!r}))\n"
        "except trouble.Trouble as error: print(error)"
    )
    said = set_up_code(code, PATH=str(tmp_path))
    assert said == (
        "Spark needs Java 17 or newer and none was found; type: sudo apt-get install openjdk-17-jre-headless"
    )


@pytest.mark.parametrize("version", ["2.7", "3.9", "3.10", "3.14"])
def test_another_python_gets_one_sentence(tmp_path: Path, version: str) -> None:
    major, minor = version.split(".")
    python = tmp_path / "python3"
    # Says it is that version, and answers the two questions of tools/setup.sh as that version would.
    python.write_text(
        f'#!/bin/sh\nexec {sys.executable} -I -c "import sys; sys.version_info = ({major}, {minor}, 0)\n$2"\n'
    )
    python.chmod(0o755)
    command = ["sh", str(ROOT / "tools/setup.sh")]
    done = subprocess.run(command, env={**os.environ, "PYTHON": str(python)}, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == f"Partwise needs Python 3.11, 3.12 or 3.13, and PYTHON={python} is Python {version}.\n"


def test_a_python_that_is_not_there_gets_one_sentence() -> None:
    command = ["sh", str(ROOT / "tools/setup.sh")]
    done = subprocess.run(command, env={**os.environ, "PYTHON": "no-such"}, capture_output=True, text=True)
    assert done.stderr == "Partwise needs Python 3.11, 3.12 or 3.13, and PYTHON=no-such is not a Python that starts.\n"


def test_uv_is_told_what_pip_was_told(tmp_path: Path) -> None:
    settings = tmp_path / "pip.conf"
    settings.write_text("[global]\nindex-url = https://example.invalid/simple\nfind-links = /wheels /more\n")
    code = "import venv_; print(venv_.uv_settings(Path(sys.executable)))"
    told = eval(set_up_code(code, PIP_CONFIG_FILE=str(settings), PATH=os.environ["PATH"]))
    assert told["UV_DEFAULT_INDEX"] == "https://example.invalid/simple"
    assert told["UV_FIND_LINKS"] == "/wheels /more"
