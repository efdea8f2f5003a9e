"""The shape of a document: pydantic's findings as problems in our words, at their place in the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from partwise.definitions.problems import Problem, Severity, list_of
from partwise.definitions.yaml.model import DOCUMENTS, INNER, Document
from partwise.definitions.yaml.places import Place
from partwise.definitions.yaml.text import TextFile, YamlNode
from partwise.spelling import did_you_mean

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a map",
    "model_type": "a map",
    "model_attributes_type": "a map",
}
_TAGS = {"text", "map", "list"}


class Reporter:
    """Makes problems for one document of one file."""

    def __init__(self, file: TextFile, table: str | None = None) -> None:
        self.file, self.table = file, table

    def __call__(
        self, at: YamlNode | int, code: str, message: str, hint: str = "", severity: Severity = "error"
    ) -> Problem:
        line, column = self.file.at(at if isinstance(at, int) else at.start)
        return Problem(self.file.name, line, column, code, message, hint, severity, self.table)

    def place(self, node: YamlNode) -> Place:
        return Place(self.file.name, *self.file.at(node.start))


#: Stand in for required keys that are missing or wrong, so that the rest of the document can be looked at.
_STAND_INS = {"part": 60, "time": "?"}


@dataclass(frozen=True)
class Shaped:
    """A document as a model (None if there is no way to go on), and what is wrong with its shape.

    Where something is wrong, `without` are the keys that were left out or guessed to get a model all the same:
    nothing should be said of them again.
    """

    document: Document | None
    problems: tuple[Problem, ...] = ()
    without: frozenset[str] = frozenset()


def validate(kind: str, data: dict[str, Any], node: YamlNode, report: Reporter) -> Shaped:
    try:
        return Shaped(DOCUMENTS[kind].model_validate(data))
    except ValidationError as why:
        errors = why.errors(include_url=False)
    problems = tuple(_problem(kind, error, node, report) for error in errors)
    without = frozenset(str(error["loc"][0]) for error in errors if error["loc"])
    rest = {key: item for key, item in data.items() if key not in without}
    rest |= {key: item for key, item in _STAND_INS.items() if key in without and key in DOCUMENTS[kind].model_fields}
    try:
        return Shaped(DOCUMENTS[kind].model_validate(rest), problems, without)
    except ValidationError:
        return Shaped(None, problems, without)


def _problem(kind: str, error: ErrorDetails, node: YamlNode, report: Reporter) -> Problem:
    path = tuple(step for step in error["loc"] if not (step in _TAGS and step != error["loc"][-1]))
    if path and path[-1] in _TAGS and len(path) > 1:
        path = path[:-1]
    key, at = node.walk(path)
    name = ".".join(str(step) for step in path)
    what = error["type"]
    if what == "missing":
        head = node.walk(path[:-1])
        place = head[0] or node.key(kind) or node
        return report(place, "missing-key", f"{name} is missing", _about(kind, path))
    if what == "extra_forbidden":
        known = _fields(kind, path)
        hint = did_you_mean(str(path[-1]), known, f"possible here: {list_of(known, 'and')}")
        where = f"a {kind}" if len(path) == 1 else f"{path[0]} of a {kind}"
        return report(key or at, "unknown-key", f"{path[-1]} is not a key of {where}", hint)
    if what == "literal_error":
        known = list(_choices(str(error["ctx"]["expected"])))
        found = shown(error["input"])
        hint = did_you_mean(str(error["input"]), known)
        return report(at, "wrong-value", f"{name} is {found}; expected {list_of(known)}", hint)
    if what in _EXPECTED:
        if path[0] == "columns" and name.endswith((")", ">")) and error["input"] is None:
            message = f"a comma ends a value inside {{ }}: the type before '{path[-1]}' is cut there"
            return report(key or at, "wrong-type", message, "put types with commas in quotes: {price: 'decimal(10,2)'}")
        hint = "put it in quotes" if what == "string_type" and isinstance(error["input"], int | float) else ""
        return report(at, "wrong-type", f"{name} must be {_EXPECTED[what]}, found {shown(error['input'])}", hint)
    if what == "not-a-length":
        message = f"{name} is {shown(error['input'])}; expected a length of time"
        return report(at, "bad-length", message, "for example 5 minutes, 1 day or 300 (seconds)")
    if what == "bad-length":
        return report(at, "bad-length", f"{name}: {error['msg']}")
    if what.startswith("union_tag"):
        return report(at, "wrong-type", f"{name} cannot be {shown(error['input'])}", _about(kind, path))
    return report(at, "wrong-value", f"{name}: {error['msg']}")


def _choices(expected: str) -> Iterator[str]:
    for word in expected.replace(" or ", ", ").split(", "):
        yield word.strip("'")


def _fields(kind: str, path: tuple[str | int, ...]) -> list[str]:
    model: type[BaseModel] = DOCUMENTS[kind]
    if len(path) > 1:
        model = INNER.get(str(path[0]), model)
    return list(model.model_fields)


def _about(kind: str, path: tuple[str | int, ...]) -> str:
    """What the reference page says of a key, as a hint."""
    field = DOCUMENTS[kind].model_fields.get(str(path[0])) if path else None
    if field is None or not field.description:
        return ""
    said = field.description.split(". ")[0].rstrip(".")
    return said[0].lower() + said[1:]


def shown(value: object) -> str:
    """A value as people wrote it, short."""
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"'{text[:57]}...'" if len(text) > 60 else f"'{text}'"
