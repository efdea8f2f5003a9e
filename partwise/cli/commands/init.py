"""Create a workspace with a small example that runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from partwise.cli.options import JsonOption
from partwise.cli.stop import Stop
from partwise.cli.views.show import as_json


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
    print(f"\n{folder} is a workspace now. To look at it:\n")
    for line in (f"cd {folder}", "partwise validate", "partwise explain in_demand", "partwise plan"):
        print(f"  {line}")
