"""The product as a story in a terminal, on a copy of the example workspace: `make demo`.

Data arrive, parts are built, late rows arrive, the plan shows exactly what must be recomputed and why, it runs, and
`verify` finds nothing different. A scene is a title, a sentence, and the command that shows it; what people see here
they can type themselves.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from partwise.serve.supervise.answers import answers
from partwise.serve.supervise.child import ending, free_port

ROOT = Path(__file__).resolve().parents[1]
LATE = "2026-10-03T10:03"
#: What the driver has to say, which is part of no scene.
LOG = "spark.log"
#: For a handful of rows: what pays for large data (generated code, plans made again while they run) would take most of
#: the time.
SMALL = (
    "spark.sql.shuffle.partitions=2",
    "spark.sql.adaptive.enabled=false",
    "spark.sql.codegen.wholeStage=false",
    "spark.sql.codegen.factoryMode=NO_CODEGEN",
)


@dataclass(frozen=True)
class Scene:
    """`before` happens out of sight, as in life: files appear. Then the command is run and shown."""

    title: str
    sentence: str
    command: tuple[str, ...] = ()
    before: Callable[[Path], None] | None = None

    @property
    def spark(self) -> bool:
        return self.command[:1] in {("run",), ("ingest",), ("verify",)}


def _files_arrive(folder: Path) -> None:
    shutil.copytree(ROOT / "landing", folder / "landing", dirs_exist_ok=True)


def _late_file(folder: Path) -> None:
    """One measurement that was left out; the sums of its node change from that minute on."""
    late = folder / "landing" / "measurements" / "late.csv"
    late.write_text(f"event_time,src,dest,loss\n{LATE}:30,rom,ams,11\n", encoding="utf-8")


#: The whole story: Spark loads, computes and verifies.
STORY = (
    Scene(
        "A workspace",
        "Every minute each node measures how many packets to the others got lost. Six views are written as YAML.",
        ("validate",),
    ),
    Scene(
        "Data arrive",
        "Two files land. `run` loads them, closes the minutes that are complete, and builds every part that has all "
        "it needs.",
        ("run",),
        _files_arrive,
    ),
    Scene("What is there", "Each table with its first and newest part.", ("status",)),
    Scene(
        "An answer",
        "Pairs with at least four high losses in a row. The tables are Delta; small queries need no Spark.",
        ("query", "SELECT * FROM high_loss WHERE part_timestamp >= '2026-10-03T10:04' ORDER BY part_timestamp"),
    ),
    Scene(
        "Late rows",
        f"A measurement of {LATE} was left out and comes late. Loading it makes one new revision of one part.",
        ("ingest",),
        _late_file,
    ),
    Scene("What must be recomputed", "Exactly what read that part; what follows only if it changes.", ("plan",)),
    Scene("It runs", "Where content stays the same, the chain of changes ends.", ("run",)),
    Scene("Why", "Every part knows what it was computed from.", ("why", "total_loss", LATE)),
    Scene("Nothing is different", "All parts once more from the sources alone, compared one by one.", ("verify",)),
)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="partwise-demo-") as name, driver(Path(name) / LOG) as remote:
        folder = Path(name)
        shutil.copy(ROOT / "partwise.yaml", folder)
        shutil.copytree(ROOT / "view_defs", folder / "view_defs")
        for at, scene in enumerate(STORY, 1):
            code = _play(scene, at, folder, remote)
            if code != 0:
                print(f"\nThe story ends here: the command ended with code {code}.", file=sys.stderr)
                return 1
    print(f"\n{_bold('That is all.')} `partwise init DIR` makes a workspace of your own; README.md goes on from here.")
    return 0


@contextmanager
def driver(log: Path) -> Iterator[str]:
    """One warm Spark driver for all commands of the story; it starts while the first scenes are read."""
    port = free_port()
    command = [sys.executable, "-m", "spark_jobs.session.connect", "--port", str(port)]
    command += [word for setting in SMALL for word in ("--conf", setting)]
    # The driver becomes this process itself, so ending it ends everything.
    with log.open("wb") as said:
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    with ending(process):
        yield f"sc://127.0.0.1:{port}"


def wait_for(remote: str, seconds: float = 180) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answers(remote, seconds=1):
            return True
        time.sleep(0.2)
    return False


def _play(scene: Scene, at: int, folder: Path, remote: str) -> int:
    print(f"\n{_bold(f'{at}. {scene.title}')}\n{scene.sentence}\n", flush=True)
    if scene.before is not None:
        scene.before(folder)
    if not scene.command:
        return 0
    shown = " ".join(f'"{word}"' if " " in word else word for word in scene.command)
    print(f"  $ {_bold(f'partwise {shown}')}", flush=True)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PARTWISE_")}
    if sys.stdout.isatty():
        environment.setdefault("FORCE_COLOR", "1")
    if scene.spark:
        if not wait_for(remote):
            said = (folder / LOG).read_text(errors="replace").splitlines()[-20:]
            print("\n".join([*said, "Spark did not start within three minutes."]), file=sys.stderr)
            return 1
        environment["PARTWISE_SPARK_REMOTE"] = remote
    environment.setdefault("COLUMNS", str(shutil.get_terminal_size((130, 40)).columns))
    done = subprocess.run([sys.executable, "-m", "partwise.cli", *scene.command], cwd=folder, env=environment)
    return done.returncode


def _bold(text: str) -> str:
    return f"\033[1m{text}\033[0m" if sys.stdout.isatty() else text


if __name__ == "__main__":
    sys.exit(main())
