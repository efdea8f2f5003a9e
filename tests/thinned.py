"""Random tests of which `make test` runs some and `make test-slow` the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def thinned(values: Iterable[Any], quick: int) -> list[Any]:
    """The first few for every change; the rest is marked slow."""
    return [value if at < quick else pytest.param(value, marks=pytest.mark.slow) for at, value in enumerate(values)]
