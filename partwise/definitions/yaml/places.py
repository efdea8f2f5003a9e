"""From offsets in a value to places in the file, for texts that YAML indents, folds, quotes or escapes."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from partwise.definitions.yaml.text import TextFile, YamlNode

_ESCAPES = {"x": 3, "u": 5, "U": 9}


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Placed:
    """A text, and where its characters stand: runs of (offset in the text, line, column).

    A generated text stands nowhere; all of it has the place of what it was generated from.
    """

    text: str
    file: str
    runs: tuple[tuple[int, int, int], ...]
    generated: bool = False

    def at(self, offset: int) -> Place:
        """The place of a character of the text."""
        if self.generated:
            return Place(self.file, *self.runs[0][1:])
        offset = max(0, min(offset, len(self.text)))
        run = self.runs[max(0, bisect_right(self.runs, (offset, 2**62, 0)) - 1)]
        return Place(self.file, run[1], run[2] + offset - run[0])

    def at_line(self, line: int, column: int) -> Place:
        """The place of a line and column of the text, both from 1, as engines report them."""
        before = self.text.split("\n")[: max(0, line - 1)]
        return self.at(sum(len(text) + 1 for text in before) + max(0, column - 1))


def placed(file: TextFile, node: YamlNode, text: str | None = None) -> Placed:
    """The text of a node with its places. `text` may be a beginning of it."""
    offsets = _align(file.text, node)
    runs: list[tuple[int, int, int]] = []
    expected = (0, 0)
    for at, offset in enumerate(offsets):
        here = file.at(offset)
        if here != expected:
            runs.append((at, *here))
        expected = (here[0], here[1] + 1)
    return Placed(node.text if text is None else text, file.name, tuple(runs) or ((0, *file.at(node.start)),))


def _align(raw: str, node: YamlNode) -> list[int]:
    """For each character of the value its offset in the file, and one more for its end.

    Characters that are not white space are the same in both texts and in the same order; white space
    may be folded or indented away.
    """
    at, style = node.start, node.style
    if style in ("|", ">"):
        at = _after_header(raw, at)
    elif style in ("'", '"'):
        at += 1
    out: list[int] = []
    for char in node.text:
        if char.isspace() and (at >= len(raw) or not _is_escape(raw, at, style)):
            out.append(min(at, len(raw)))
            at += 1 if at < len(raw) and raw[at] == char else 0
            # After a line break the next line's indentation belongs to YAML; the next character skips it.
            continue
        while at < node.end and raw[at].isspace():
            at += 1
        while style == '"' and raw.startswith(("\\\n", "\\\r"), at):
            at += 2
            while at < node.end and raw[at].isspace():
                at += 1
        out.append(min(at, len(raw)))
        at += _width(raw, at, style)
    return [*out, min(at, len(raw))]


def _after_header(raw: str, at: int) -> int:
    end = raw.find("\n", at)
    return len(raw) if end < 0 else end + 1


def _is_escape(raw: str, at: int, style: str | None) -> bool:
    return style == '"' and raw[at] == "\\" and not raw.startswith(("\\\n", "\\\r"), at)


def _width(raw: str, at: int, style: str | None) -> int:
    """How many characters of the file stand for one character of the value."""
    if style == "'" and raw.startswith("''", at):
        return 2
    if style == '"' and raw[at : at + 1] == "\\":
        return 1 + _ESCAPES.get(raw[at + 1 : at + 2], 1)
    return 1
