"""The file that a person names: as in the ledger, by any path to it, or by its last name alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from difflib import get_close_matches
from pathlib import Path


class NotNamed(Exception):
    """No file, or several, are called so; the message is meant for people."""


def meant(source: str, file: str, known: Collection[str], folder: Path, locate: Callable[[str], str]) -> str:
    """The name of a file that the source has taken in. Raises NotNamed.

    `folder` and `locate` are those of the workspace.
    """
    paths = {os.path.normpath(os.path.join(folder.absolute(), name)): name for name in known}
    candidates = [
        file if file in known else None,
        paths.get(os.path.normpath(locate(file))),
        paths.get(os.path.abspath(file)),
    ]
    for name in candidates:
        if name is not None:
            return name
    same = [name for name in known if os.path.basename(name) == file]
    if len(same) == 1:
        return same[0]
    if same:
        raise NotNamed(f"{file} may be any of {', '.join(sorted(same)[:5])}; name one of them.")
    close = get_close_matches(os.path.basename(file), [os.path.basename(name) for name in known], n=1, cutoff=0.7)
    hint = f" Did you mean {close[0]}?" if close else ""
    raise NotNamed(f"{source} has taken in no file {file}; it knows {len(known)} files.{hint}")
