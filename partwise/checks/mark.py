"""A mark of a table's checks: when it changes, parts that failed are tried again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol


class _Check(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def arguments(self) -> Mapping[str, Any]: ...

    @property
    def severity(self) -> str: ...


def mark_of(checks: Iterable[_Check]) -> str:
    """Empty without checks. Their order does not count."""
    texts = sorted(
        json.dumps([check.name, dict(check.arguments), check.severity], sort_keys=True, default=str) for check in checks
    )
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:32] if texts else ""
