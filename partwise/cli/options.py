"""Options and arguments that several commands share, with completion of table names; asking before work is done."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from partwise.cli.stop import wrong_use

_NAMES = re.compile(r"^(source|dimension|view)[ \t]*:[ \t]*['\"]?([A-Za-z_]\w*)", re.MULTILINE)


def _names(incomplete: str, *kinds: str) -> list[str]:
    """Names in the definitions, by their text alone: completion must be quick and never fail."""
    from partwise.workspace import open_workspace

    try:
        folder = open_workspace().definitions_folder
        texts = [file.read_text(encoding="utf-8", errors="replace") for file in sorted(Path(folder).rglob("*.y*ml"))]
    except Exception:
        return []
    found = [name for text in texts for kind, name in _NAMES.findall(text) if not kinds or kind in kinds]
    return [name for name in found if name.startswith(incomplete)]


def complete_tables(incomplete: str) -> list[str]:
    return _names(incomplete)


def complete_views(incomplete: str) -> list[str]:
    return _names(incomplete, "view")


def complete_sources(incomplete: str) -> list[str]:
    return _names(incomplete, "source")


def complete_partitioned(incomplete: str) -> list[str]:
    return _names(incomplete, "view", "source")


WorkspaceOption = Annotated[
    str | None,
    typer.Option(
        "--workspace",
        "-w",
        metavar="DIR",
        help="The workspace. Default: PARTWISE_WORKSPACE, or the nearest parent folder with a partwise.yaml.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
HelpersOption = Annotated[bool, typer.Option("--helpers", help="Show generated helpers, too.")]
TableArgument = Annotated[str, typer.Argument(metavar="TABLE", autocompletion=complete_tables)]
SourceArgument = Annotated[str, typer.Argument(metavar="SOURCE", autocompletion=complete_sources)]


def ask_first(yes: bool) -> None:
    """Ends the command unless the user agrees to the plan that was shown, on a terminal or by --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise wrong_use(
            "This is not a terminal, so the command cannot ask: use --yes to go ahead, --dry-run to see the plan only."
        )
    if not typer.confirm("Go ahead?"):
        raise typer.Exit(1)
