"""The example workspace in a folder of its own: the repository's definitions, and data that a feed delivers."""

from __future__ import annotations

import os
from pathlib import Path

from partwise.serve.site.site import CODE, EXAMPLE


def example(code: Path = CODE) -> Path:
    """Made at the first start. The definitions are those of the repository: edit them there and see what follows."""
    folder = code / EXAMPLE
    folder.mkdir(exist_ok=True)
    (folder / "landing").mkdir(exist_ok=True)
    settings = folder / "partwise.yaml"
    if not settings.exists():
        definitions = os.path.relpath(code / "view_defs", folder)
        settings.write_text(
            f"# Made by `make run`: the example with data that a feed delivers. Removing this folder starts afresh.\n"
            f"definitions: {definitions}\n",
            encoding="utf-8",
        )
    return folder
