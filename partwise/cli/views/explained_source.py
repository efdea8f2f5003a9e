"""A source taken apart: what is still to come for its parts by their age, and the settings that speaks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partwise.choose.arrivals import Suggestion, percent, suggestions
from partwise.cli.views.show import heading, plural, say, table
from partwise.definitions import Source
from partwise.ledger.records.files import quarantine_counts
from partwise.parts import duration_text, lasting
from partwise.sources.arrivals import arrivals_of
from partwise.sources.expected import StillToCome

if TYPE_CHECKING:
    from partwise.ledger.read.snapshot import Snapshot
    from partwise.tables import Graph

#: Ages of a part at which it is said what is still to come, in seconds.
AGES = (0, 60, 300, 900, 3600, 21600, 86400, 604800, 2592000)


@dataclass(frozen=True, slots=True)
class ToCome:
    """For one part of this age. `seen`: deliveries that the figures rest on."""

    age: int
    deliveries: float
    rows: float
    share: float
    seen: int


@dataclass(frozen=True)
class ExplainedSource:
    """`known`: up to which age parts were watched. `too_old`: rows quarantined because they were older than accepted."""

    source: Source
    feeds: tuple[str, ...]
    watched: float
    known: float
    usual: float | None
    to_come: tuple[ToCome, ...]
    suggestions: tuple[Suggestion, ...]
    too_old: int


def explained_source(snapshot: Snapshot, source: Source) -> ExplainedSource:
    graph = snapshot.graph
    readers = (graph[other] for other in graph.consumers.get(source.name, ()))
    feeds = tuple(dict.fromkeys(view for reader in readers for view in reader.for_views))
    reasons = quarantine_counts(snapshot.r).get(source.name, {})
    too_old = sum(count for reason, count in reasons.items() if reason.startswith("older than late.accept"))
    seen = arrivals_of(snapshot.r, source.name, source.part)
    if seen is None:
        return ExplainedSource(source, feeds, 0.0, 0.0, None, (), (), too_old)
    horizon = min((bound for bound in (source.late.accept, source.keep) if bound is not None), default=None)
    expected = StillToCome(seen, horizon)
    to_come = tuple(
        ToCome(age, expected.deliveries(age), expected.rows(age), share, expected.seen(age))
        for age in AGES
        if age <= expected.known and (share := expected.share(age)) is not None
    )
    found = suggestions(source, expected, _reach(graph, source.name))
    return ExplainedSource(
        source, feeds, seen.now - seen.begun, expected.known, expected.usual, to_come, found, too_old
    )


def _reach(graph: Graph, name: str) -> int:
    """How far back the views that read a table look, from the end of their part to the begin of the oldest part read."""
    found = graph[name].length
    for view in (graph[other] for other in graph.consumers.get(name, ())):
        for item in view.inputs:
            if item.table == name and item.reference is not None:
                # References that round down reach furthest at the end of a coarser part: look at a day of the finest ones.
                for j in (0, 59, 1439, 86399):
                    found = max(found, (j + 1) * view.length - item.reference.requires(j)[0] * graph[name].length)
    return found


def show(item: ExplainedSource) -> None:
    source = item.source
    heading(f"{source.name}: source, parts of {duration_text(source.part)}")
    if source.description:
        say(source.description)
    say(f"feeds: {', '.join(item.feeds) or 'nothing'}")
    if not item.to_come:
        said = f"for {lasting(item.watched)} of event time" if item.watched else "yet"
        say(f"arrivals: none seen {said} from which to tell what is still to come")
        return
    say(f"arrivals: watched for {lasting(item.watched)} of event time, parts up to an age of {lasting(item.known)}")
    say(f"  a part has {item.usual:,.4g} rows when all have come; of one that is so old there are still to come:")
    table(
        ("age", "deliveries", "rows", "of all rows", "rests on"),
        [
            (
                lasting(each.age) if each.age else "at its end",
                f"{each.deliveries:.2g}",
                f"{each.rows:,.3g}",
                percent(each.share),
                plural(each.seen, "late delivery").replace("deliverys", "deliveries"),
            )
            for each in item.to_come
        ],
        indent=2,
    )
    if item.too_old:
        say(f"  {plural(item.too_old, 'row')} came later than late.accept and were quarantined")
    say("suggestions:")
    for each in item.suggestions:
        say(f"  {each.setting}: {each.text}")


def source_json(item: ExplainedSource) -> dict[str, Any]:
    return {
        "name": item.source.name,
        "part": item.source.part,
        "feeds": list(item.feeds),
        "arrivals": {
            "watched_seconds": item.watched,
            "known_up_to": item.known,
            "rows_per_part": item.usual,
            "too_old": item.too_old,
            "to_come": [
                {"age": c.age, "deliveries": c.deliveries, "rows": c.rows, "share": c.share, "seen": c.seen}
                for c in item.to_come
            ],
        },
        "suggestions": [
            {
                "setting": each.setting,
                "now": each.now,
                "suggested": each.seconds,
                "text": each.text,
                "options": [{"seconds": o.seconds, "share": o.share, "deliveries": o.deliveries} for o in each.options],
            }
            for each in item.suggestions
        ],
    }
