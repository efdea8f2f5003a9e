"""docs/commands.md from the commands themselves: `python -m partwise.cli.reference > docs/commands.md`."""

from __future__ import annotations

import re
from typing import Any

import typer

from partwise.cli.app import app

_HEAD = """# Commands

Made from the commands' own help by `python -m partwise.cli.reference > docs/commands.md`.

Every command takes `--workspace DIR`; without it the variable `PARTWISE_WORKSPACE` counts, else the nearest parent folder
with a `partwise.yaml`. `--json` is for programs. Exit codes: 0 = fine, 1 = problems found, 2 = wrong use.
`partwise --install-completion` teaches the shell to complete commands and names of tables.
"""


def pages() -> str:
    group = typer.main.get_command(app)
    settings: dict[str, Any] = {"terminal_width": 100, "max_content_width": 100}
    found = [_HEAD]
    with group.make_context("partwise", ["x"], resilient_parsing=True, **settings) as root:
        for name in group.commands:  # type: ignore[attr-defined]
            command = group.get_command(root, name)  # type: ignore[attr-defined]
            with command.make_context(name, [], parent=root, resilient_parsing=True, **settings) as inner:
                text = "\n".join(line.rstrip() for line in command.get_help(inner).splitlines())
            found.append(f"## partwise {name}\n\n```text\n{re.sub(r'^Usage: ', '', text)}\n```\n")
    return "\n".join(found)


if __name__ == "__main__":
    print(pages(), end="")
