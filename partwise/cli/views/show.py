"""Output: JSON for programs; tables, times and counts for people."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from partwise.parts import Parts, part_text, range_text

if TYPE_CHECKING:
    from rich.console import Console, OverflowMethod

_STYLES = {
    "fresh": "green",
    "stale": "yellow",
    "missing": "yellow",
    "blocked": "magenta",
    "manual": "cyan",
    "open": "cyan",
    "failed": "bold red",
    "requested": "cyan",
}

_WHOLE = 20  # characters: a part, a moment, a word of state; such cells are not broken while others can be


def as_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def console() -> Console:
    """A terminal has its own width; into a pipe lines may be long, so that nothing is cut or wrapped."""
    from rich.console import Console

    wide = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else 200
    return Console(width=wide, highlight=False, soft_wrap=False)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], indent: int = 0) -> None:
    from rich import box
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True, header_style="bold")
    for at, heading in enumerate(headings):
        number = all(row[at].replace(",", "").isdigit() for row in rows if row[at])
        longest = max((len(row[at]) for row in rows), default=0)
        # Where the terminal is too narrow, long cells go on in the next line; nothing is cut off.
        whole = longest <= _WHOLE and at < len(headings) - 1
        # What is not broken and does not fit ends with a sign that something is left out.
        overflow: OverflowMethod = "ellipsis" if whole else "fold"
        shown.add_column(heading, justify="right" if number else "left", no_wrap=whole, overflow=overflow)
    for row in rows:
        shown.add_row(*(Text(cell, style=_STYLES.get(cell.partition(" ")[0], "")) for cell in row))
    console().print(Padding(shown, (0, 0, 0, indent), expand=False) if indent else shown)


def heading(text: str) -> None:
    console().print(f"\n[bold]{_plain(text)}[/bold]")


def say(text: str = "", style: str = "") -> None:
    from rich.text import Text

    console().print(Text(text, style=style), soft_wrap=not sys.stdout.isatty())


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def moment_text(moment: float | None, zone: str = "UTC", short: bool = False) -> str:
    """A moment for people, in the zone of the settings; `short`: without the date if that is today."""
    if moment is None:
        return ""
    local = datetime.fromtimestamp(moment, ZoneInfo(zone))
    today = short and local.date() == datetime.now(ZoneInfo(zone)).date()
    text = local.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S")
    return text if zone == "UTC" else f"{text} {local.tzname()}"


def moment_json(moment: float | None) -> str | None:
    return None if moment is None else datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")


def part_or_none(part: int | None, length: int, kind: str) -> str | None:
    """A dimension has a single part without a time."""
    return None if part is None or kind == "dimension" else part_text(part, length)


def spans_text(parts: Parts, length: int) -> str:
    """The first ranges of these parts, and how many more there are."""
    shown = ", ".join(range_text(span, length) for span in parts.ranges[:3])
    return f"{shown} and {len(parts.ranges) - 3} more ranges" if len(parts.ranges) > 3 else shown


def number(value: int) -> str:
    return str(value) if value else ""


def plural(count: int, word: str) -> str:
    return f"{count:,} {word}" + ("" if count == 1 else "s")
