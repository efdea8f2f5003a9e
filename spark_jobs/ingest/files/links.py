"""Files under names that Spark reads literally, in a place that it reaches.

`[`, `{`, `*`, `?`, `%`, `#` and `:` in a name mean something to Spark, and one `:` breaks a whole folder. A link
named after the file's id has none of them; the id of each row's file is then the name it was read from.

Objects of a store are copied inside the store, beside the tables, and so are files of this disk where executors do not
see it: they need to share nothing but the store.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from partwise.object_store import is_s3
from partwise.storage.remote import Bucket
from partwise.workspace import Workspace
from spark_jobs.ingest.files.find import FoundFile
from spark_jobs.ingest.files.layout import Layout

_FOLDER = ".ingest"
#: No table's name begins with an underscore.
_IN_STORE = "_ingest"


@dataclass(frozen=True)
class LinkedFiles:
    """Linked files by layout: the folder that holds them, and their ids."""

    folders: dict[Layout, str]
    paths: dict[int, tuple[Layout, str]]


@contextmanager
def linked(
    workspace: Workspace,
    table: str,
    batch: str,
    files: Iterable[tuple[int, FoundFile, Layout]],
    sees_disk: Callable[[], bool] = lambda: True,
) -> Iterator[LinkedFiles]:
    """Links while the body runs. What a crash left behind of this table goes first: the caller has its lease.

    `sees_disk`: whether Spark reads the disk of this machine; asked only if that makes a difference.
    """
    root, store = workspace.folder.absolute() / _FOLDER / table, _beside_tables(workspace, table)
    shutil.rmtree(root, ignore_errors=True)
    folders: dict[Layout, str] = {}
    paths: dict[int, tuple[Layout, str]] = {}
    files = list(files)
    in_store = store is not None and (all(found.url is not None for _, found, _ in files) or not sees_disk())
    try:
        for number, found, layout in files:
            packed = ".gz" if found.name.lower().endswith(".gz") else ""
            name = f"{number}.{found.format}{packed}"
            if in_store and store is not None:
                folders.setdefault(layout, f"{store.url}/{batch}/{len(folders)}")
                paths[number] = (layout, f"{folders[layout]}/{name}")
                copy = paths[number][1].removeprefix(f"{store.url}/")
                if found.url is None:
                    store.upload(copy, Path(found.path))
                else:
                    store.copy_from(found.url, copy)
                continue
            if layout not in folders:
                here = root / batch / str(len(folders))
                here.mkdir(parents=True)
                folders[layout] = str(here)
            path = Path(folders[layout]) / name
            path.symlink_to(Path(found.path).absolute())
            paths[number] = (layout, str(path))
        yield LinkedFiles(folders, paths)
    finally:
        if in_store and store is not None:
            store.remove_folder("")
        shutil.rmtree(root, ignore_errors=True)
        try:
            root.parent.rmdir()
        except OSError:
            pass


def _beside_tables(workspace: Workspace, table: str) -> Bucket | None:
    return Bucket(f"{workspace.warehouse.rstrip('/')}/{_IN_STORE}/{table}") if is_s3(workspace.warehouse) else None
