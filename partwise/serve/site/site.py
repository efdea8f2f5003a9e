"""What is served, and where its files and ports are."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

#: In the workspace: databases, keys and logs of the processes. Removing it forgets Airflow's history and the ledger.
STATE = ".partwise"

#: The example workspace, below the repository and unknown to git.
EXAMPLE = ".run"

#: Where `plugins/` and `dags/` are: the repository, or the folder that the image was built in.
CODE = Path(__file__).resolve().parents[3]


class CannotServe(Exception):
    """Something stands in the way; the message is meant for people."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports on the loopback address; nothing listens anywhere else."""

    airflow: int = 8080
    spark: int = 15002
    spark_ui: int = 4040


@dataclass(frozen=True, slots=True)
class Site:
    """Everything that decides how the components are started."""

    workspace: Path
    ports: Ports = Ports()
    feed: float | None = None  # seconds between deliveries of the demo feed; None: no feed
    master: str = "local[2]"
    spark_conf: tuple[tuple[str, str], ...] = ()
    #: Slots of Spark's pool, until people choose another number in Airflow. A task has its slot from when it is queued until
    #: the scheduler has seen its end: with as many slots as cores, cores would wait for that.
    spark_steps: int = 4
    ledger_url: str = ""
    airflow_url: str = ""  # SQLAlchemy URL of Airflow's database
    dags: Path | None = None  # DAGs of your own, beside those of the definitions
    java_home: str | None = None
    code: Path = CODE
    python: str = field(default=sys.executable)

    @property
    def state(self) -> Path:
        return self.workspace / STATE

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.ports.airflow}"

    @property
    def is_the_projects(self) -> bool:
        """Whether it is the project's own workspace, or the example: what its `dags/` read is there."""
        return self.workspace.resolve() in (self.code.resolve(), (self.code / EXAMPLE).resolve())

    @property
    def cores(self) -> int:
        """Of the driver."""
        found = re.match(r"local\[(\d+|\*)", self.master)
        if found is None:
            return 2
        return (os.cpu_count() or 2) if found[1] == "*" else int(found[1])

    @property
    def remote(self) -> str:
        return f"sc://127.0.0.1:{self.ports.spark}"


def find_java(code: Path = CODE) -> str | None:
    """JAVA_HOME, or the Java that the set-up has noted."""
    noted = code / ".java-home"
    return os.environ.get("JAVA_HOME") or (noted.read_text().strip() if noted.exists() else None)
