"""Remembers programs between commands: compiling definitions takes half a second, most of it imports.

The key is everything that the result depends on: names and contents of the files, and the code that reads
them. An entry is a pickle, so it is only taken from a folder that nobody else can write to. Whatever goes
wrong here means reading the files again. `PARTWISE_CACHE` names another folder, or `off`.

All alternatives of all views are read by every command, most of them for nothing. That is cheap, because the classes
of which there are many (statements and their references) have no `slots`: pickle builds them without running Python.
"""

from __future__ import annotations

import gc
import hashlib
import importlib.util
import os
import pickle
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from partwise.compile.program import Program

_MOST_ENTRIES = 50
_CODE = ("checks", "choose", "compile", "definitions", "parts", "relation", "sql")
_LIBRARIES = ("sqlglot", "pydantic", "yaml")


def key(texts: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256(repr((sys.version, _code())).encode())
    for name, content in texts.items():
        digest.update(f"\0{name}\0{len(content)}\0".encode(errors="replace"))
        digest.update(content)
    return digest.hexdigest()


def get(name: str) -> Program | None:
    folder = _folder()
    if folder is None:
        return None
    try:
        found = _unpickled((folder / f"{name}.pickle").read_bytes())
    except Exception:  # not there, half written, or from code that has changed
        return None
    return found if isinstance(found, Program) else None


def _unpickled(content: bytes) -> object:
    """Nothing of it is garbage: a collector that looks for some doubles the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return pickle.loads(content)
    finally:
        if collects:
            gc.enable()


def put(name: str, found: Program) -> None:
    folder = _folder()
    if folder is None:
        return
    try:
        found.graph()  # remembered, too: fingerprints need the SQL parser
        temporary = folder / f"{name}.{os.getpid()}.tmp"
        temporary.write_bytes(pickle.dumps(found))
        temporary.replace(folder / f"{name}.pickle")
        entries = sorted(folder.iterdir(), key=lambda entry: entry.stat().st_mtime)
        for old in entries[:-_MOST_ENTRIES]:
            old.unlink()
    except Exception:  # a full disk, a race with another command: the next one reads the files again
        return


def _folder() -> Path | None:
    """A folder of our own, or None."""
    given = os.environ.get("PARTWISE_CACHE", "")
    if given.lower() == "off":
        return None
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = (Path(given) if given else base / "partwise") / "definitions"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = folder.stat()
        mine = not hasattr(os, "getuid") or (about.st_uid == os.getuid() and not about.st_mode & 0o022)
        return folder if mine else None
    except (OSError, RuntimeError):
        return None


@cache
def _code() -> list[tuple[str, int, int]]:
    """What reads definitions: names, sizes and times of its files. A process runs the code that it began with."""
    package = Path(__file__).parents[1]
    files = [
        package / "tables.py",
        package / "checks" / "expectations.json",
        package / "definitions" / "spark_functions.txt",
        *(file for part in _CODE for file in sorted((package / part).rglob("*.py"))),
    ]
    specs = (importlib.util.find_spec(name) for name in _LIBRARIES)
    files += [Path(spec.origin) for spec in specs if spec is not None and spec.origin]
    return [(str(file), (about := file.stat()).st_size, about.st_mtime_ns) for file in files]
