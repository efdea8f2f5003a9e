"""What came of the checks of a part: kept in the ledger, shown by `why` and `checks`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

#: Failing rows that are kept of one check of one part, and characters of one row.
MOST_ROWS = 10
MOST_TEXT = 2_000

Outcome = Literal["passed", "warned", "failed", "accepted"]


@dataclass(frozen=True)
class CheckResult:
    """One check of one part. `broken`: it could not be run, which counts as failed. `rows` are a sample of failing
    rows, as JSON texts; `observed` is what was found where that is one value."""

    check: str
    arguments: Mapping[str, Any]
    severity: str
    ok: bool
    message: str
    observed: Any = None
    elements: int | None = None
    unexpected: int | None = None
    broken: bool = False
    rows: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        given = ", ".join(f"{key}: {_short(value)}" for key, value in self.arguments.items())
        return f"{self.check}: {{{given}}}" if given else self.check


@dataclass(frozen=True)
class Checked:
    """All checks of one part. `digest` is that of the content that was looked at."""

    part: int
    rows: int
    digest: str
    results: tuple[CheckResult, ...] = ()
    accepted_by: str | None = None

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        return tuple(r for r in self.results if not r.ok and r.severity == "error")

    @property
    def warnings(self) -> tuple[CheckResult, ...]:
        return tuple(r for r in self.results if not r.ok and r.severity != "error")

    @property
    def outcome(self) -> Outcome:
        if self.failures:
            return "failed" if self.accepted_by is None else "accepted"
        return "warned" if self.warnings else "passed"

    @property
    def published(self) -> bool:
        return self.outcome != "failed"

    def message(self) -> str:
        """One line for reports."""
        first, *others = self.failures or self.warnings
        word = "failed" if self.failures else "warned"
        more = f" (and {len(others)} more {word})" if others else ""
        return f"check {word}: {first.message}{more}"

    def accepted(self, who: str) -> Checked:
        return replace(self, accepted_by=who)


@dataclass(frozen=True, slots=True)
class KeptResults:
    """What the ledger keeps of the last checks of a part."""

    part: int
    at: float
    outcome: Outcome
    rows: int
    digest: str
    mark: str  # which checks these were
    results: tuple[CheckResult, ...] = field(default_factory=tuple)
    accepted_by: str | None = None
    accepted_at: float | None = None


def to_json(results: Sequence[CheckResult]) -> str:
    return json.dumps([_plain(result) for result in results], ensure_ascii=False, default=str)


def from_json(text: str) -> tuple[CheckResult, ...]:
    return tuple(CheckResult(**{**raw, "rows": tuple(raw["rows"])}) for raw in json.loads(text))


def _plain(result: CheckResult) -> dict[str, Any]:
    raw = asdict(result)
    raw["rows"] = [row[:MOST_TEXT] for row in result.rows[:MOST_ROWS]]
    raw["message"] = result.message[:MOST_TEXT]
    return raw


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str) if not isinstance(value, str) else value
    return text if len(text) <= 60 else text[:57] + "..."
