"""The JSON Schema and the reference page are current, and the schema agrees with the loader."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from partwise.compile.load import load_texts
from partwise.definitions.yaml.schema import PAGE, SCHEMA, outdated

ROOT = Path(__file__).parents[2]


def test_schema_and_reference_page_are_current() -> None:
    assert outdated() == [], "run python -m partwise.definitions.yaml.schema --write"
    assert PAGE.exists()
    assert SCHEMA.exists()


@pytest.mark.parametrize("path", sorted((ROOT / "view_defs").glob("*.yaml")), ids=lambda p: p.name)
def test_the_schema_accepts_the_examples(path: Path) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        jsonschema.validate(document, schema)


@pytest.mark.parametrize(
    "document",
    [
        {"view": "v", "part": "5 minuets", "update": "SELECT 1 AS a"},
        {"view": "v", "part": "5 minutes", "udpate": "SELECT 1 AS a"},
        {"view": "v", "update": "SELECT 1 AS a"},
        {"view": "a b", "part": 5, "update": "SELECT 1 AS a"},
        {"view": "v", "part": 5, "update": "SELECT 1 AS a", "repair": "never"},
        {"source": "s", "part": 5, "time": ["t"], "delta": "x"},
        {"source": "s", "part": 5, "time": "t", "delta": "x", "close": "soon"},
        {"source": "s", "part": 5, "time": "t", "delta": "x", "close": {"dealy": 5}},
    ],
)
def test_schema_and_loader_refuse_the_same(document: dict[str, object]) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)
    assert not load_texts({"a.yaml": json.dumps(document).encode()}).ok
