"""The list of expectations in docs/checks.md: `python -m partwise.checks.page --write` writes it."""

from __future__ import annotations

import sys
from pathlib import Path

from partwise.checks.catalog import OWN, expectations
from partwise.checks.questions import TRANSLATED

PAGE = Path(__file__).parents[2] / "docs" / "checks.md"
_COMMAND = "python -m partwise.checks.page --write"
_MARK = f"<!-- Made by `{_COMMAND}`. -->\n"


def text() -> str:
    """The page as it should be: what stands above the mark stays."""
    head, mark, _ = PAGE.read_text(encoding="utf-8").partition(_MARK)
    if not mark:
        raise ValueError(f"{PAGE} has no line {_MARK.strip()}")
    ours = {own.name for own in OWN}
    lines = ["| expectation | arguments | |", "|---|---|---|"]
    for name, item in expectations().items():
        if name not in ours:
            given = ", ".join(f"`{key}`{'*' if about.required else ''}" for key, about in item.arguments.items())
            by = "" if name in TRANSLATED else "by Great Expectations"
            lines.append(f"| `{name}` | {given} | {by} |")
    return head + mark + "\n" + "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    made = text()
    if arguments == ["--write"]:
        PAGE.write_text(made, encoding="utf-8")
        return 0
    current = PAGE.read_text(encoding="utf-8") == made
    if not current:
        print(f"{PAGE} is not current; run {_COMMAND}")
    return 0 if current else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
