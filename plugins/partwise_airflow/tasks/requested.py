"""What a run is for: the key of an event, a part that somebody typed into the form, or whatever is due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from partwise.announce.keys import same_time
from partwise.parts import parse_range, range_text


@dataclass(frozen=True)
class RequestedParts:
    """`parts` as text, None for whatever is due. `requested`: by a person, so it is computed even if it is fine."""

    parts: str | None
    requested: bool

    def of(self, length: int, other: int) -> str | None:
        """The same time in parts of another length: a helper may have its own."""
        if self.parts is None or length == other:
            return self.parts
        return range_text(same_time(parse_range(self.parts, length), length, other), other)


def asked_of(context: Any) -> RequestedParts:
    run = context["dag_run"]
    typed = (run.conf or {}).get("part") or context["params"].get("part")
    if typed and str(typed).strip():
        return RequestedParts(str(typed).strip(), requested=True)
    key = run.partition_key
    return RequestedParts(key or None, requested=bool(key) and by_hand(run))


def by_hand(run: Any) -> bool:
    """Whether somebody triggered it; tasks and the scheduler have objects of different kinds for it."""
    return str(getattr(run.run_type, "value", run.run_type)) == "manual"
