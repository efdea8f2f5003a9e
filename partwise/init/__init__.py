"""A new workspace: a small example that runs, to be changed into one's own."""

from __future__ import annotations

from pathlib import Path
from shutil import copyfile

_TEMPLATE = Path(__file__).parent / "template"
_SCHEMA = Path(__file__).parents[1] / "definitions" / "definitions.schema.json"


class FilesExist(Exception):
    """Files that are there already; nothing was written."""

    def __init__(self, files: list[str]) -> None:
        super().__init__(", ".join(files))
        self.files = files


def make_workspace(folder: Path) -> list[str]:
    """Write the example into a folder, which may exist, and never over a file. Returns what was written."""
    wanted = {str(file.relative_to(_TEMPLATE)): file for file in sorted(_TEMPLATE.rglob("*")) if file.is_file()}
    # The schema comes along, so that editors complete and check definitions without knowing where Partwise is.
    wanted["view_defs/definitions.schema.json"] = _SCHEMA
    wanted = {name.replace("gitignore", ".gitignore"): file for name, file in wanted.items()}
    if there := [name for name in wanted if (folder / name).exists()]:
        raise FilesExist(there)
    for name, file in wanted.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        copyfile(file, target)
    return list(wanted)
