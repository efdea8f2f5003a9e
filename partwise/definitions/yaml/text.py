"""YAML with positions: every key and value knows where it stands, also inside block texts.

Built from parser events with a stack of its own, so that no nesting can exhaust Python's, and one
document at a time, so that a broken one does not hide the next. Values follow YAML 1.2 (`no` and `on`
are words, not booleans), which is what editors check against.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import yaml

_DEEPEST = 40
_MOST_VALUES = 20_000
_LONGEST_FILE = 1_000_000
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# `{part}` may stand unquoted in `{marker: done/{part}}`, where YAML would see a map: it passes the
# parser as characters that mean nothing to YAML, of the same length, so that positions stay right.
_MARK, _STAND_IN = "{part}", "\ue000part\ue001"


class YamlProblem(Exception):
    """A document that cannot be read; `offset` in the file's text."""

    def __init__(self, code: str, message: str, offset: int, hint: str = "") -> None:
        super().__init__(message)
        self.code, self.offset, self.hint = code, offset, hint


@dataclass(frozen=True)
class TextFile:
    """The text of a file, and lines and columns (from 1) of offsets in it."""

    name: str
    text: str

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", self.text))]

    def at(self, offset: int) -> tuple[int, int]:
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


@dataclass(slots=True)
class YamlNode:
    """A value of the document: `kind` is "text", "map" or "list"; `plain` is a text without quotes."""

    kind: str
    start: int
    end: int
    text: str = ""
    style: str | None = None
    plain: bool = False
    pairs: list[tuple[YamlNode, YamlNode]] = field(default_factory=list)
    items: list[YamlNode] = field(default_factory=list)

    def get(self, key: str) -> YamlNode | None:
        return next((value for name, value in self.pairs if name.text == key), None)

    def key(self, key: str) -> YamlNode | None:
        return next((name for name, _ in self.pairs if name.text == key), None)

    def walk(self, path: tuple[str | int, ...]) -> tuple[YamlNode | None, YamlNode]:
        """Key and value at a path, as far down as it exists."""
        key, node = None, self
        for step in path:
            if isinstance(step, int) and node.kind == "list" and step < len(node.items):
                key, node = None, node.items[step]
            elif isinstance(step, str) and (found := node.get(step)) is not None:
                key, node = node.key(step), found
        return key, node


def documents(text: str) -> Iterator[tuple[int, str]]:
    """Offset and text of each document. A line that starts with `---` always begins one."""
    starts = [match.start() for match in re.finditer(r"^---(?=\s|\Z)", text, re.MULTILINE)]
    edges = sorted({0, *starts, len(text)})
    for start, end in pairwise(edges):
        yield start, text[start:end]


def document_at(text: str, line: int) -> str:
    """The document that a line (from 1) belongs to, without the marks that separate it from others."""
    at = sum(len(each) for each in text.splitlines(keepends=True)[: line - 1])
    found = next((piece for start, piece in documents(text) if start <= at < start + len(piece)), "")
    return re.sub(r"\A---[ \t]*\n", "", found).strip("\n")


def compose(text: str, offset: int = 0) -> list[YamlNode]:
    """The documents of one piece of text (normally one), with offsets counted from `offset`. Raises YamlProblem."""
    if len(text) > _LONGEST_FILE:
        raise YamlProblem("yaml-syntax", f"longer than {_LONGEST_FILE:,} characters", offset)
    try:
        return _compose(text.replace(_MARK, _STAND_IN), offset)
    except yaml.reader.ReaderError as why:
        raise _unreadable(text, offset, why) from None
    except yaml.MarkedYAMLError as why:
        ended = "end of stream" in (why.problem or "")  # where it began tells more than the end of the file
        mark = (why.context_mark if ended else None) or why.problem_mark or why.context_mark
        at = offset + (min(mark.index, len(text)) if mark else 0)
        line = text[: at - offset].rpartition("\n")[2] + text[at - offset :].partition("\n")[0]
        raise YamlProblem("yaml-syntax", _said(why), at, _yaml_hint(line, why.problem or "")) from None
    except (yaml.YAMLError, ValueError, RecursionError) as why:
        raise YamlProblem("yaml-syntax", f"this is not YAML ({type(why).__name__})", offset) from None


def _compose(text: str, offset: int) -> list[YamlNode]:
    out: list[YamlNode] = []
    stack: list[tuple[YamlNode, list[YamlNode]]] = []
    anchors: dict[str, YamlNode] = {}
    for event in yaml.parse(text, Loader=_LOADER):
        node: YamlNode | None = None
        start, end = offset + event.start_mark.index, offset + event.end_mark.index
        if isinstance(event, yaml.DocumentStartEvent):
            anchors = {}
        elif isinstance(event, yaml.AliasEvent):
            node = anchors.get(str(event.anchor))
            if node is None:
                hint = "an anchor holds to the end of its document, and --- begins another; write the value again"
                raise YamlProblem("yaml-syntax", f"there is no anchor &{event.anchor} in this document", start, hint)
        elif isinstance(event, yaml.ScalarEvent):
            _no_tag(event, start, ("tag:yaml.org,2002:str", "!"))
            plain = not event.style and event.tag is None
            node = YamlNode("text", start, end, event.value.replace(_STAND_IN, _MARK), event.style, plain)
        elif isinstance(event, yaml.CollectionStartEvent):
            _no_tag(event, start, ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq", "!"))
            if len(stack) >= _DEEPEST:
                raise YamlProblem("yaml-syntax", f"nested more than {_DEEPEST} levels deep", start)
            stack.append((YamlNode("map" if isinstance(event, yaml.MappingStartEvent) else "list", start, end), []))
        elif isinstance(event, yaml.CollectionEndEvent):
            node, parts = stack.pop()
            node.end = end
            if node.kind == "map":
                node.pairs = list(zip(parts[::2], parts[1::2], strict=True))
            else:
                node.items = parts
        if node is None:
            continue
        if not isinstance(event, yaml.CollectionEndEvent) and getattr(event, "anchor", None):
            anchors[event.anchor] = node
        (stack[-1][1] if stack else out).append(node)
    return out


def _no_tag(event: Any, start: int, allowed: tuple[str, ...]) -> None:
    if event.tag is not None and event.tag not in allowed:
        raise YamlProblem(
            "yaml-syntax", f"tags such as {event.tag} are not used in definitions", start, "remove the tag"
        )


def _unreadable(text: str, offset: int, why: yaml.reader.ReaderError) -> YamlProblem:
    bad = re.search("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)
    at = bad.start() if bad else 0
    what = f"the character U+{ord(text[at]):04X} is not allowed in YAML" if bad else str(why.reason)
    return YamlProblem("yaml-syntax", what, offset + at, "remove it; is this a text file?")


def _said(why: yaml.MarkedYAMLError) -> str:
    said = why.problem or "this is not YAML"
    return f"{said} ({why.context})" if why.context else said


def _yaml_hint(line: str, said: str) -> str:
    if "{{" in line or "{%" in line:
        return "there is no Jinja here: write the value itself"
    if "\t" in line:
        return "YAML is indented with spaces, never with tabs"
    if line.count(": ") > 1:
        return "put the value in quotes if it contains ': '"
    if line.count("'") % 2 or line.count('"') % 2:
        return "a quote is not closed"
    if "mapping values" in said or "expected <block end>" in said or "could not find expected ':'" in said:
        return "keys of one definition start in the same column; is this line indented like the one above it?"
    return ""


_INT = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]{1,30}|[0-9]{1,30}(\.[0-9]{0,30})?)([eE][-+]?[0-9]{1,3})?")
_WORDS: dict[str, object] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_WORDS |= {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def value(node: YamlNode) -> Any:
    """Plain Python data. Raises YamlProblem for keys that are not text, and for alias bombs."""
    return _value(node, [_MOST_VALUES], 0)


def _value(node: YamlNode, budget: list[int], depth: int) -> Any:
    budget[0] -= 1
    if budget[0] < 0 or depth > _DEEPEST:
        raise YamlProblem("yaml-syntax", "too many values; do anchors and aliases multiply here?", node.start)
    if node.kind == "map":
        for key, _ in node.pairs:
            if key.kind != "text":
                raise YamlProblem("yaml-syntax", "a key must be a word, not a map or a list", key.start)
        return {key.text: _value(item, budget, depth + 1) for key, item in node.pairs}
    if node.kind == "list":
        return [_value(item, budget, depth + 1) for item in node.items]
    if not node.plain:
        return node.text
    if node.text in _WORDS:
        return _WORDS[node.text]
    if _INT.fullmatch(node.text):
        return int(node.text)
    return float(node.text) if _FLOAT.fullmatch(node.text) else node.text


def duplicates(node: YamlNode) -> Iterator[tuple[YamlNode, YamlNode]]:
    """Keys that stand twice in one map: (first, again)."""
    todo, done = [node], set()
    while todo:
        at = todo.pop()
        if id(at) in done:
            continue
        done.add(id(at))
        seen: dict[str, YamlNode] = {}
        for key, item in at.pairs:
            if key.kind == "text" and key.text in seen:
                yield seen[key.text], key
            seen.setdefault(key.text, key)
            todo.append(item)
        todo += at.items
