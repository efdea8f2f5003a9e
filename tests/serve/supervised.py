"""A supervisor of small processes, for the tests: `python supervised.py FOLDER NAME [GRACE]`.

It runs in a process of its own, since it adopts and ends every process below it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from partwise.serve.supervise import processes
from partwise.serve.supervise.child import free_port
from partwise.serve.supervise.components import Component
from partwise.serve.supervise.supervisor import Failed, Supervisor

FOLDER = Path(sys.argv[1])
PORT = free_port()

#: Notes that it was started, then works until it is ended.
WORKER = """
import pathlib, sys, time
with open(sys.argv[1], 'a') as log: log.write(sys.argv[2] + '\\n')
time.sleep(600)
"""
#: The same, and then answers at a port.
SERVER = """
import socket, sys, time
with open(sys.argv[1], 'a') as log: log.write(sys.argv[2] + '\\n')
time.sleep(0.3)
server = socket.create_server(('127.0.0.1', int(sys.argv[3])))
time.sleep(600)
"""
#: As Airflow's scheduler: its task is in a session of its own, and it does not end when asked to.
STUBBORN = """
import pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
task = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)
pathlib.Path(sys.argv[1]).write_text(str(task.pid))
time.sleep(600)
"""


def python(code: str, *words: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code, *words)


def note(name: str, code: str = WORKER) -> tuple[str, ...]:
    return python(code, str(FOLDER / "started"), name)


ONCE = "import sys\nwith open(sys.argv[1], 'a') as log: log.write(sys.argv[2] + '\\n')"
CASES = {
    "order": (
        Component("scheduler", note("scheduler"), needs=("pools",)),
        Component("pools", note("pools", ONCE), needs=("api-server",), once=True),
        Component("api-server", (*note("api-server", SERVER), str(PORT)), url=f"tcp://127.0.0.1:{PORT}"),
    ),
    "optional": (
        Component("warm-up", python("raise SystemExit(1)"), once=True, optional=True),
        Component("feed", note("feed"), needs=("warm-up",)),
    ),
    "stubborn": (Component("scheduler", python(STUBBORN, str(FOLDER / "task"))),),
    "broken": (Component("spark", python("raise SystemExit('no such jar')"), url="tcp://127.0.0.1:9"),),
}


def main() -> int:
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))
    grace = float(sys.argv[3]) if len(sys.argv) > 3 else 1.0
    processes.adopt_orphans()
    supervisor = Supervisor(
        CASES[sys.argv[2]], os.environ, FOLDER / "logs", FOLDER, tell=lambda text: print(text, flush=True)
    )
    try:
        while not asked:
            supervisor.step()
            (FOLDER / "pids.tmp").write_text("\n".join(f"{n} {p}" for n, p in supervisor.pids().items()))
            (FOLDER / "pids.tmp").replace(FOLDER / "pids")
            time.sleep(0.05)
    except Failed as why:
        print(why, flush=True)
        return 3
    finally:
        print("stopping", flush=True)
        print("left", supervisor.stop(grace, hurry=lambda: len(asked) > 1), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
