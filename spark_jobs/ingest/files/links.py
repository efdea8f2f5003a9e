"""Files under names that Spark reads literally.

`[`, `{`, `*`, `?`, `%`, `#` and `:` in a name mean something to Spark, and one `:` breaks a whole folder. A link
named after the file's id has none of them; the id of each row's file is then the name it was read from.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from partwise.workspace import Workspace
from spark_jobs.ingest.files.find import FoundFile
from spark_jobs.ingest.files.layout import Layout

_FOLDER = ".ingest"


@dataclass(frozen=True)
class LinkedFiles:
    """Linked files by layout: the folder that holds them, and their ids."""

    folders: dict[Layout, str]
    paths: dict[int, tuple[Layout, str]]


@contextmanager
def linked(
    workspace: Workspace, table: str, batch: str, files: Iterable[tuple[int, FoundFile, Layout]]
) -> Iterator[LinkedFiles]:
    """Links while the body runs. What a crash left behind of this table goes first: the caller has its lease."""
    root = workspace.folder.absolute() / _FOLDER / table
    shutil.rmtree(root, ignore_errors=True)
    folders: dict[Layout, str] = {}
    paths: dict[int, tuple[Layout, str]] = {}
    try:
        for number, found, layout in files:
            if layout not in folders:
                folder = root / batch / str(len(folders))
                folder.mkdir(parents=True)
                folders[layout] = str(folder)
            packed = ".gz" if found.name.lower().endswith(".gz") else ""
            path = Path(folders[layout]) / f"{number}.{found.format}{packed}"
            path.symlink_to(Path(found.path).absolute())
            paths[number] = (layout, str(path))
        yield LinkedFiles(folders, paths)
    finally:
        shutil.rmtree(root, ignore_errors=True)
        try:
            root.parent.rmdir()
        except OSError:
            pass
