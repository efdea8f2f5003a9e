"""Java 17 or newer for Spark: found where it usually is, else installed from the system's packages when possible."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from trouble import Trouble, can_install_system_packages, install_system_package, say

OLDEST = 17
PACKAGE = "openjdk-17-jre-headless"
USUAL_FOLDERS = ("/usr/lib/jvm", "/Library/Java/JavaVirtualMachines")


def ensure(root: Path) -> Path:
    """The home of a Java that Spark can use; also written to `.java-home`, which the Makefile hands to every command."""
    home = find()
    if home is None:
        if not can_install_system_packages():
            raise Trouble(f"Spark needs Java {OLDEST} or newer and none was found; type: {command_to_type()}")
        say(f"installing {PACKAGE}")
        install_system_package(PACKAGE)
        home = find()
    if home is None:
        raise Trouble(f"no Java {OLDEST} or newer found after installing {PACKAGE}; set JAVA_HOME")
    note = root / ".java-home"
    if not note.exists() or note.read_text().strip() != str(home):
        note.write_text(f"{home}\n")
    return home


def command_to_type() -> str:
    if shutil.which("apt-get"):
        return f"sudo apt-get install {PACKAGE}"
    if shutil.which("dnf"):
        return "sudo dnf install java-17-openjdk-headless"
    if shutil.which("brew"):
        return 'brew install openjdk@17 && export JAVA_HOME="$(brew --prefix openjdk@17)"'
    return "JAVA_HOME=/path/to/java17 make setup"


def find() -> Path | None:
    """JAVA_HOME, then PATH, then the system's usual folders. A JAVA_HOME that is too old is passed over."""
    homes: list[Path] = []
    if named := os.environ.get("JAVA_HOME"):
        homes.append(Path(named))
    if on_path := shutil.which("java"):
        homes.append(Path(on_path).resolve().parent.parent)
    for folder in USUAL_FOLDERS:
        for java in sorted(Path(folder).glob("*/bin/java")) + sorted(Path(folder).glob("*/Contents/Home/bin/java")):
            homes.append(java.parent.parent)
    return next((home for home in homes if (version(home) or 0) >= OLDEST), None)


def version(home: Path) -> int | None:
    """The feature release, from the file `release` that every JDK and JRE carries; asking Java itself is slow."""
    if not os.access(home / "bin/java", os.X_OK):
        return None
    try:
        text = (home / "release").read_text()
    except OSError:
        text = ""
    found = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.MULTILINE)
    if not found:
        said = subprocess.run([home / "bin/java", "-version"], capture_output=True, text=True).stderr
        found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found.group(1)) if found else None
