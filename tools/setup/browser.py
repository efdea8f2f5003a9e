"""Chromium for the tests of the Parts page: found where it usually is, else installed from the system's packages.

Only those tests need it, so it is no part of the set-up itself; they ask for it when they run.
"""

import fcntl
import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from trouble import Trouble, can_install_system_packages, install_system_package, say

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PACKAGE = "chromium"


def ensure(root: Path) -> str:
    """The path of a browser. PARTWISE_BROWSER names another one. Raises Trouble with what to type."""
    with open(root / ".setup.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run side by side
        found = find()
        if found is None:
            if not can_install_system_packages():
                raise Trouble(f"no Chromium was found; type: sudo apt-get install {PACKAGE}, or set PARTWISE_BROWSER")
            say(f"installing {PACKAGE}")
            install_system_package(PACKAGE)
            found = find()
    if found is None:
        raise Trouble(f"no Chromium found after installing {PACKAGE}; set PARTWISE_BROWSER")
    return found


def find() -> str | None:
    return os.environ.get("PARTWISE_BROWSER") or next((path for name in NAMES if (path := shutil.which(name))), None)
