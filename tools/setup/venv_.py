"""The virtual environment `.venv` with the packages of `requirements.txt` and the project itself."""

import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from trouble import Trouble, can_install_system_packages, install_system_package, run, say

# What the environment is made from. A change in any of them brings it up to date.
INPUTS = ("requirements.txt", "pyproject.toml")
STAMP = "partwise-set-up.json"
# These two fill one folder: taking one of them out takes files of the other along.
TWINS = {"pyspark", "pyspark-client"}


def ensure(root: Path, chosen: str) -> bool:
    """Makes `.venv` what it should be; True when there was something to do. `chosen` is the user's PYTHON, if any."""
    venv = root / ".venv"
    wanted = {
        "inputs": fingerprint(root),
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "root": str(root),  # scripts in an environment know where they are: a moved one is made again
    }
    stamp = read_stamp(venv)
    damaged = find_damage(venv, stamp.get("packages", []))
    if not damaged and {key: stamp.get(key) for key in wanted} == wanted:
        return False

    finished_once = bool(stamp)
    if not starts(venv) or (finished_once and any(stamp.get(key) != wanted[key] for key in ("python", "root"))):
        create(venv, base_python(chosen))
        damaged, fresh = {}, True
    else:
        fresh = False
    if damaged and finished_once:
        name, what = next(iter(damaged.items()))
        say(f"repairing {len(damaged)} damaged packages ({name}: {what})")
    elif fresh or not finished_once:
        say("installing packages (a minute or two the first time)")
    else:
        say("bringing the packages up to date")
    (venv / STAMP).unlink(missing_ok=True)
    try:
        install(root, venv, reinstall=damaged)
    except Trouble:
        # A half-done environment may be beyond repair. A sound one is kept: most likely the network is away.
        if fresh or (finished_once and not damaged):
            raise
        say("that failed; creating the virtual environment again")
        create(venv, base_python(chosen))
        install(root, venv, reinstall=())
    if damaged := find_damage(venv, []):
        name, what = next(iter(damaged.items()))
        raise Trouble(f"{name} is incomplete after installing ({what}); try: make distclean setup")
    write_stamp(venv, {**wanted, "packages": sorted(installed(venv))})
    return True


def fingerprint(root: Path) -> str:
    digest = hashlib.sha256()
    for name in INPUTS:
        digest.update((root / name).read_bytes())
    return digest.hexdigest()


def base_python(chosen: str) -> str:
    # `sys._base_executable` is the interpreter outside any virtual environment, which survives the old one's removal.
    return chosen or getattr(sys, "_base_executable", sys.executable)


def read_stamp(venv: Path) -> dict:
    """What the last finished set-up noted; empty when none finished."""
    try:
        stamp = json.loads((venv / STAMP).read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def write_stamp(venv: Path, stamp: dict) -> None:
    partial = venv / f"{STAMP}.partial"
    partial.write_text(json.dumps(stamp, indent=1))
    partial.rename(venv / STAMP)


def starts(venv: Path) -> bool:
    try:
        done = subprocess.run([venv / "bin/python", "-I", "-c", "import pip"], capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


def installed(venv: Path) -> dict[str, Path]:
    return {path.name: path for path in venv.glob("lib/python3*/site-packages/*.dist-info")}


def find_damage(venv: Path, expected: Iterable[str]) -> dict[str, str]:
    """Package → what is wrong with it: not there at all, or a file absent or of another size than recorded.

    All the files, tens of thousands, take a fifth of a second: affordable on every call.
    """
    present = installed(venv)
    if not os.access(venv / "bin/python", os.X_OK):
        return {"python": "it is not there"}
    damaged = {package(name): "it is not installed" for name in expected if name not in present}
    for name, info in present.items():
        if what := first_damaged_file(info):
            damaged[package(name)] = what
    return damaged


def package(dist_info: str) -> str:
    return dist_info.partition("-")[0].replace("_", "-")


def first_damaged_file(info: Path) -> str:
    try:
        rows = list(csv.reader((info / "RECORD").read_text().splitlines()))
    except OSError:
        rows = []
    if not rows:
        return "its list of files is not there"
    site = f"{info.parent}/"
    for row in rows:
        if len(row) != 3:
            return "its list of files is cut off"
        name, size = row[0], row[2]
        if not size or name.endswith(".pyc"):  # compiled files come and go by themselves
            continue
        try:
            actual = os.stat(site + name).st_size
        except OSError:
            return f"{name} is missing"
        if actual != int(size):
            return f"{name} has {actual} bytes instead of {size}"
    return ""


def create(venv: Path, python: str) -> None:
    say(f"making the virtual environment with {python}")
    shutil.rmtree(venv, ignore_errors=True)
    command = [python, "-I", "-m", "venv", str(venv)]
    if subprocess.run(command, capture_output=True).returncode == 0:
        return
    # Debian and Ubuntu keep ensurepip in a package of its own.
    debian = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    if not can_install_system_packages():
        raise Trouble(f"this Python cannot make virtual environments; type: sudo apt-get install {debian}")
    say(f"installing {debian}")
    install_system_package(debian)
    shutil.rmtree(venv, ignore_errors=True)
    run(command, "making the virtual environment")


def install(root: Path, venv: Path, reinstall: Iterable[str]) -> None:
    python = venv / "bin/python"
    again = set(reinstall) | (TWINS if TWINS & set(reinstall) else set())
    pins = (root / "requirements.txt").read_text().splitlines()
    uv_pin = next(line.split()[0] for line in pins if line.startswith("uv=="))
    if "uv" in again or f"{uv_pin.replace('==', '-')}.dist-info" not in installed(venv):
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--force-reinstall"]
        run([*pip, uv_pin], "installing uv")
    uv, env = venv / "bin/uv", uv_settings(python)
    options = [part for name in sorted(again) for part in ("--reinstall-package", name)]
    target = ["--python", python]
    # Compiled once here, not by the first process that imports a package: those are many, and start side by side.
    options += ["--compile-bytecode"]
    run([uv, "pip", "sync", *target, *options, root / "requirements.txt"], "installing packages", env)
    # Without isolation the build uses the pinned setuptools, so nothing is fetched here.
    # "compat": the folder is one line in a .pth file. setuptools' import hook would cost every start of Python.
    editable = ["--no-build-isolation", "--no-deps", "--config-settings", "editable_mode=compat", "--editable", root]
    run([uv, "pip", "install", *target, *editable], "installing the project", env)
    # The build leaves these beside the sources, where they would count as a second installation with the same plugins.
    shutil.rmtree(root / "partwise.egg-info", ignore_errors=True)
    for site in venv.glob("lib/python3*/site-packages"):
        # What lies in plugins/ is imported by its own name, as from a wheel.
        (site / "partwise-plugins.pth").write_text(f"{root / 'plugins'}\n")


def uv_settings(python: Path) -> dict[str, str]:
    """Lets uv follow what the user told pip (mirrors, wheels, certificates): uv does not read pip's settings."""
    listed = subprocess.run([python, "-m", "pip", "config", "list"], capture_output=True, text=True).stdout
    pairs = [line.partition("=") for line in listed.splitlines()]  # global.index-url='...', :env:.cert='...'
    pip = {key.rpartition(".")[2]: value.strip("'\"") for key, _, value in pairs}
    # Copies, not links: damage done to a file here must not reach uv's cache, from which it would be repaired.
    settings = {"UV_SYSTEM_CERTS": "1", "UV_LINK_MODE": "copy"}
    for option, variable in (
        ("index-url", "UV_DEFAULT_INDEX"),
        ("extra-index-url", "UV_INDEX"),
        ("find-links", "UV_FIND_LINKS"),
        ("cert", "SSL_CERT_FILE"),
    ):
        if pip.get(option) and variable not in os.environ:
            settings[variable] = " ".join(pip[option].replace("\\n", " ").split())
    if "PIP_NO_INDEX" in os.environ:
        settings["UV_NO_INDEX"] = os.environ["PIP_NO_INDEX"]
    return settings
