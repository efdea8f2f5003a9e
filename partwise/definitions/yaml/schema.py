"""The JSON Schema for editors and the reference page, both made from the models.

`python -m partwise.definitions.yaml.schema --write` writes them; without `--write` it says whether they are current.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from partwise.definitions.problems import CODES, QUERY_CODES
from partwise.definitions.yaml.model import DOCUMENTS, INNER, Document

SCHEMA = Path(__file__).parents[1] / "definitions.schema.json"
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "definitions.md"
_COMMAND = "python -m partwise.definitions.yaml.schema --write"


def schema_text() -> str:
    made = TypeAdapter[Any](Document).json_schema()
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Partwise definitions",
        "description": "A source, a dimension or a view.",
    }
    return json.dumps({**head, **_tidy(made)}, indent=2) + "\n"


def _tidy(schema: Any) -> Any:
    """Without pydantic's titles, which repeat the names of keys and would hide descriptions in editors."""
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _tidy(item) for key, item in schema.items() if not (key == "title" and isinstance(item, str))}


def page_text() -> str:
    lines = [
        f"<!-- Made by `{_COMMAND}` from partwise/definitions/yaml/model.py: change it there. -->",
        "# Definitions",
        "",
        "Files in `view_defs/` hold one or several YAML documents, separated by `---`. Each defines one table: a source,",
        "a dimension or a view. `partwise validate` shows all problems of all files. Editors with YAML support check and",
        "complete the keys if the file starts with",
        "",
        "```yaml",
        "# yaml-language-server: $schema=../partwise/definitions/definitions.schema.json",
        "```",
        "",
        "Names are letters, digits and underscores; upper and lower case do not make different names. The column names",
        "`part`, `part_timestamp` and everything that starts with `__` belong to Partwise. Lengths of time are written",
        "`10 seconds`, `1 minute`, `5 minutes`, `1 hour`, `1 day`, `1 week`, or as a number of seconds.",
    ]
    for kind, model in DOCUMENTS.items():
        lines += ["", f"## `{kind}`", "", (model.__doc__ or "").strip(), *_keys(model)]
        for key in (key for key in INNER if key in model.model_fields):
            lines += ["", f"### `{key}` of a {kind}", "", (INNER[key].__doc__ or "").strip(), *_keys(INNER[key])]
    lines += ["", _REFERENCES, "", "## Problems", "", "| code | meaning |", "|---|---|"]
    lines += [f"| `{code}` | {meaning} |" for code, meaning in sorted(CODES.items())]
    lines += ["", "In `query` also", "", "| code | meaning |", "|---|---|"]
    lines += [f"| `{code}` | {meaning} |" for code, meaning in sorted(QUERY_CODES.items())]
    return "\n".join(lines) + "\n"


def _keys(model: type[BaseModel]) -> list[str]:
    lines = ["", "| key | default | meaning |", "|---|---|---|"]
    for name, field in model.model_fields.items():
        meaning = (field.description or "").replace("|", "\\|")
        if field.examples:
            meaning += f" For example `{_yaml(field.examples[0])}`."
        lines.append(f"| `{name}` | {_default(field)} | {meaning} |")
    return lines


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if field.default_factory is not None or value is None:
        return ""
    return f"`{json.dumps(value).strip(chr(34))}`"


def _yaml(value: object) -> str:
    """An example as people would write it in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_yaml(item) for item in value) + "]"
    return str(value)


_REFERENCES = """\
## References

In `initialize` (index `i`) and `update` (index `j`) every source and view is followed by the parts to read, both ends
of a range included. Part `j` of a table covers the seconds from `j * length` up to the next part.

| written | reads |
|---|---|
| `m[j]` | the part of the same time, if both tables have parts of the same length |
| `m[j-1]` | the part before it; the only way to read the view itself is a part before `j` |
| `m[j-9..j]` | the last ten parts |
| `m[60*j..60*j+59]` | the minutes of hour `j` |
| `m[j/60]` | the hour that minute `j` lies in; `/` rounds down |

Index arithmetic is linear: whole numbers, `+`, `-`, `*`, `/` and parentheses, and the parts must keep step with the
view. Dimensions are written without brackets. Everything else is Spark SQL, and it runs as it was written."""


def outdated() -> list[Path]:
    """Files that differ from what the models say."""
    return [path for path, text in _files() if not path.exists() or path.read_text(encoding="utf-8") != text]


def _files() -> list[tuple[Path, str]]:
    return [(SCHEMA, schema_text()), (PAGE, page_text())]


def main(arguments: list[str]) -> int:
    if arguments == ["--write"]:
        for path, text in _files():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return 0
    for path in outdated():
        print(f"{path} is not current; run {_COMMAND}")
    return 1 if outdated() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
