"""How often estimates of fresh answers were right, for `status`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from partwise.ledger.records.estimates import LEAST, Coverage, coverage

if TYPE_CHECKING:
    from partwise.ledger.read.snapshot import Snapshot


def coverage_of(snapshot: Snapshot, view: str) -> Coverage | None:
    """None for views without a sample, and before the first refresh of a part that was estimated."""
    sample = f"{view}__sample"
    return coverage(snapshot.r, view, sample) if sample in snapshot.graph.tables else None


def coverage_json(found: Coverage | None) -> dict[str, Any] | None:
    return None if found is None else {"covered": round(found.covered, 4), "of": found.of}


def low_coverage(snapshot: Snapshot) -> list[str]:
    """Of views whose intervals do not hold what they promise."""
    found = []
    for name in snapshot.graph.order:
        known = coverage_of(snapshot, name)
        if known is not None and known.is_low:
            found.append(
                f"{name}: fresh answers covered only {known.text()}, and {100 * LEAST:.0f} % are expected at least; "
                "keep more of its largest keys (sample: outliers:), or sample more keys."
            )
    return found
