"""Imports point downwards only: dags > plugins, spark_jobs > partwise.

The core decides and must stay free of the engines: whoever breaks this makes every command slow to start and ties
the decisions to one engine's version.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: Airflow puts the folder of plugins on the path, so that what lies in it is imported by its own name.
IN_PLUGINS = {path.stem for path in (ROOT / "plugins").iterdir() if not path.name.startswith(("_", "."))}
OURS = {"dags", "spark_jobs", "partwise"} | IN_PLUGINS
ENGINES = {"airflow", "pyspark", "pandas", "great_expectations", "delta"}
# Layer → what it must not import.
FORBIDDEN = {
    "partwise": ENGINES | (OURS - {"partwise"}),
    "plugins": {"spark_jobs", "dags", "pyspark", "delta", "great_expectations"},
    "spark_jobs": {"dags", "airflow"} | IN_PLUGINS,
    "dags": {"spark_jobs", "pyspark", "delta", "great_expectations"},
}


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Line and full name of every import, also those inside functions, of type checkers, and by `import_module`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name in {"import_module", "__import__"} and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value


def breaches(layer: str, source: str) -> list[tuple[int, str]]:
    return [(line, name) for line, name in imported(source) if name.partition(".")[0] in FORBIDDEN[layer]]


@pytest.mark.parametrize("layer", sorted(FORBIDDEN))
def test_imports_point_downwards(layer: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {layer} must not import {name}"
        for path in sorted((ROOT / layer).rglob("*.py"))
        for line, name in breaches(layer, path.read_text())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "layer, source",
    [
        ("partwise", "import airflow"),
        ("partwise", "from pyspark.sql import functions as F"),
        ("partwise", "def f():\n    import pandas as pd"),
        ("partwise", "from great_expectations import core"),
        ("partwise", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import delta.tables"),
        ("partwise", "from spark_jobs.steps import run"),
        ("partwise", "import importlib\nimportlib.import_module('partwise_airflow.operators')"),
        ("plugins", "import spark_jobs"),
        ("spark_jobs", "from partwise_page import app"),
        ("spark_jobs", "import airflow.sdk"),
        ("spark_jobs", "from partwise_airflow import dags"),
        ("partwise", "import partwise_airflow.render"),
        ("dags", "import spark_jobs.compute_part"),
    ],
)
def test_a_breach_is_seen(layer: str, source: str) -> None:
    assert len(breaches(layer, source)) == 1


@pytest.mark.parametrize(
    "layer, source",
    [
        ("partwise", "import deltalake, duckdb, sqlglot\nfrom partwise.parts import length\nfrom . import tables"),
        ("plugins", "from airflow.sdk import DAG\nfrom partwise import plan"),
        ("spark_jobs", "from pyspark.sql import SparkSession\nimport great_expectations\nimport partwise.ledger"),
        ("dags", "from partwise_airflow import PartsSensor"),
    ],
)
def test_what_is_allowed_passes(layer: str, source: str) -> None:
    assert breaches(layer, source) == []


#: All that verify may know of the core: what authors wrote, what the ledger says, and how text falls into tokens and
#: references. Nothing of what makes, chooses or computes the tables that it judges.
JUDGE_MAY_IMPORT = (
    "partwise.definitions",
    "partwise.ledger",
    "partwise.object_store",
    "partwise.parts",
    "partwise.sql.parse",
    "partwise.sql.references",
    "partwise.sql.tokens",
    "partwise.storage.files",
    "partwise.storage.handle",
    "spark_jobs.engine",
    "spark_jobs.paths",
    "spark_jobs.step.copies",
    "spark_jobs.verify",
)


def shared(source: str) -> list[tuple[int, str]]:
    """What a module of verify has in common with what it judges."""
    return [
        (line, name)
        for line, name in imported(source)
        if name.partition(".")[0] in OURS
        and not any(name == known or name.startswith(known + ".") for known in JUDGE_MAY_IMPORT)
    ]


def test_verify_shares_nothing_with_what_it_judges() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: verify must not import {name}"
        for path in sorted((ROOT / "spark_jobs" / "verify").rglob("*.py"))
        for line, name in shared(path.read_text())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        "from partwise.compile.parse import parse",
        "from partwise.sql.calls import Call",
        "from partwise.sql.types.known import type_of",
        "def f():\n    from partwise.compile.pattern.plan import plan_pattern",
        "import partwise.choose.window",
        "import partwise.relation",
        "from spark_jobs.step.compute import Computing",
    ],
)
def test_a_shared_module_is_seen(source: str) -> None:
    assert len(shared(source)) == 1
