"""Which parts of a source are complete by now: by its rule, by markers, or because somebody closed them."""

from __future__ import annotations

from partwise.definitions import Source
from partwise.ledger.ledger import Ledger
from partwise.ledger.records.checks import decided
from partwise.parts import BadTime, Parts, parse_part
from partwise.sources.closing import Closing, by_delay, by_marker
from partwise.workspace import Workspace
from spark_jobs.ingest.files.find import matches
from spark_jobs.ingest.state import SourceState


def complete_parts(
    ledger: Ledger,
    workspace: Workspace,
    source: Source,
    state: SourceState,
    opened: Parts,
    watermark: int | None = None,
) -> Closing:
    """`opened` are the parts that have rows and are not closed; `watermark` is that of the load at hand, if any."""
    found = _by_rule(workspace, source, state, opened, watermark)
    with ledger.database.reading() as r:
        requested = Parts.single(*decided(r, source.name, "close")) - state.existing
    # What was closed once is closed again, whoever or whatever closed it, as soon as the table is made again.
    return Closing((found.parts | requested | state.lost) - state.existing, found.left)


def _by_rule(workspace: Workspace, source: Source, state: SourceState, opened: Parts, watermark: int | None) -> Closing:
    rule = source.close
    if rule.rule == "delay":
        seen = [m for m in (state.intake.watermark, watermark) if m is not None]
        return by_delay(max(seen, default=None), rule.delay, source.part, state.existing, opened, state.floor)
    if rule.rule == "marker":
        marked = markers(workspace, rule.marker or "", source.part)
        return by_marker(marked, state.existing, opened, state.floor)
    return Closing(Parts())


def markers(workspace: Workspace, pattern: str, length: int) -> Parts:
    """Parts whose marker file is there. `{part}` is written without colons: 2026-10-03T10-05."""
    before, _, after = workspace.locate(pattern).partition("{part}")
    found = []
    for path in matches(workspace, pattern.replace("{part}", "*")).values():
        if path.startswith(before) and path.endswith(after):
            try:
                found.append(parse_part(path[len(before) : len(path) - len(after)], length))
            except BadTime:
                continue
    return Parts.single(*found)
