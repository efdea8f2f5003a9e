"""Reads docker-compose.yml as compose does: with the variables of an environment in place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).resolve().parents[1] / "docker-compose.yml"
_VARIABLE = re.compile(r"\$\{(\w+)(?:(:[-?])([^}]*))?\}")


class Missing(Exception):
    """A variable without a default is not set."""


def read(environment: Mapping[str, str]) -> dict[str, Any]:
    """The file with its variables in place. Raises Missing."""

    def put(match: re.Match[str]) -> str:
        name, kind, rest = match.groups()
        if value := environment.get(name):
            return value
        if kind == ":-":
            return str(rest)
        raise Missing(f"{name}: {rest}")

    def walk(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: walk(value) for key, value in node.items()}
        if isinstance(node, list):
            return [walk(item) for item in node]
        return _VARIABLE.sub(put, node).replace("$$", "$") if isinstance(node, str) else node

    found: dict[str, Any] = walk(yaml.safe_load(FILE.read_text()))
    return found


def variables() -> dict[str, str]:
    """Variables without a default, with what compose says when they are missing."""
    return {name: rest for name, kind, rest in _VARIABLE.findall(FILE.read_text()) if kind == ":?"}
