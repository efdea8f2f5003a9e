"""Ports that are taken are found before anything is started, and named with what to change."""

from __future__ import annotations

import socket
from dataclasses import dataclass, fields

from partwise.serve.site.site import Ports
from partwise.serve.supervise.answers import answers

#: Name in Ports → what listens there, the option, and the variable for make.
USES = {
    "airflow": ("Airflow", "--port", "PORT"),
    "spark": ("the Spark driver", "--spark-port", "SPARK_PORT"),
    "spark_ui": ("the pages of the Spark driver", "--spark-ui-port", "SPARK_UI_PORT"),
}


@dataclass(frozen=True, slots=True)
class Taken:
    """A port that something else listens on."""

    name: str
    port: int

    def __str__(self) -> str:
        what, option, variable = USES[self.name]
        free = self.port + 1
        return (
            f"Port {self.port}, needed for {what}, is in use by another program. "
            f"Choose another one: `make run {variable}={free}`, or `partwise serve {option} {free}`."
        )


def taken(ports: Ports) -> list[Taken]:
    return [
        Taken(field.name, getattr(ports, field.name))
        for field in fields(ports)
        if not is_free(getattr(ports, field.name))
    ]


def twice(ports: Ports) -> list[str]:
    """Ports that were given to two components."""
    seen: dict[int, str] = {}
    found = []
    for field in fields(ports):
        port = getattr(ports, field.name)
        if port in seen:
            found.append(f"Port {port} is given to both {USES[seen[port]][0]} and {USES[field.name][0]}.")
        seen.setdefault(port, field.name)
    return found


def is_free(port: int) -> bool:
    """Whether a server could listen there now. A port in TIME_WAIT counts as free, as for the servers themselves."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return not answers(f"tcp://127.0.0.1:{port}", seconds=0.2)
