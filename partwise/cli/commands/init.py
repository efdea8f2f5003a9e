"""Create a workspace with a small example that runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from partwise.cli.options import JsonOption
from partwise.cli.stop import Stop
from partwise.cli.views.show import as_json

_NEXT = (
    ("cd {folder}", ""),
    ("partwise validate", "checks the definitions"),
    ("partwise explain in_demand", "shows how a view is computed"),
    ("partwise run", "loads the files in landing and computes what is ready"),
    ("partwise status", "shows what is there"),
    ("partwise plan", "shows what would run next, and what is waited for"),
)


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or existing folder; no file is overwritten.")],
    json: JsonOption = False,
) -> None:
    """Create a workspace with a small example that runs.

    \b
    Example:
      partwise init shop
      cd shop
      partwise validate
    """
    from partwise.init import FilesExist, make_workspace

    try:
        files = make_workspace(folder)
    except FilesExist as why:
        more = f" and {len(why.files) - 1} more" if len(why.files) > 1 else ""
        raise Stop(
            f"{folder / why.files[0]}{more} would be overwritten; nothing was written. Choose another folder."
        ) from None
    except OSError as why:
        raise Stop(f"{folder} cannot be made a workspace: {why.strerror or why}.") from None
    if json:
        as_json({"workspace": str(folder.resolve()), "files": files})
        return
    for name in files:
        print(f"  {os.path.join(folder, name)}")
    print(f"\n{folder} is a workspace now. Type next:\n")
    for line, what in _NEXT:
        print(f"  {line.format(folder=folder):<28}{what}".rstrip())
