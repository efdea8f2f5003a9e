"""NEXT and its bitmap: the part that each view builds next, and which of the parts it needs are there.

This is how ViewDF's maintainer sees the world. Here it is only for people: the planner decides by what is due.
Existing parts and starts are arguments, so that the same functions also tell what will be next once a plan has run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from partwise.parts import FOREVER, Parts, Range, Reference, part_text, range_text
from partwise.plan.reach import EVERYTHING, PartFacts, first_part, inputs_exist, required_of, self_closure
from partwise.tables import Graph, Table

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Need:
    """What a part requires of one table, and what of it exists. A dimension has no references."""

    table: str
    references: tuple[Reference, ...]
    needed: Parts
    there: Parts

    @property
    def missing(self) -> Parts:
        return self.needed - self.there

    def bitmap(self, most: int = 1440) -> str:
        """One character per required part, in order: 1 is there, 0 is missing. Longer ones are cut."""
        bits = ("1" if part in self.there else "0" for part in self.needed)
        text = "".join(bit for bit, _ in zip(bits, range(most), strict=False))
        return text if self.needed.count <= most else f"{text}..."


@dataclass(frozen=True, slots=True)
class Next:
    """The part that a view builds next; None while nothing says where it begins."""

    table: str
    part: int | None
    needs: tuple[Need, ...]

    @property
    def waits(self) -> bool:
        return any(need.missing or not need.needed for need in self.needs)


def needs_of(facts: PartFacts, table: Table, start: int, j: int) -> tuple[Need, ...]:
    """What part j requires of each table: by INITIALIZE at the start, by UPDATE after it.

    Its own parts before the start read nothing, so they are not required.
    """
    return _needs(facts, table, start, Range(j, j), first=j == start)


def needs_of_parts(facts: PartFacts, table: Table, start: int, parts: Range) -> tuple[Need, ...]:
    """What consecutive parts require together."""
    found: dict[str, Need] = {}
    spans = [Range(max(parts.lo, start + 1), parts.hi)]
    if start in parts:
        spans.append(Range(start, start))
    for span in spans:
        if span.lo > span.hi:
            continue
        for need in _needs(facts, table, start, span, first=span == (start, start)):
            found[need.table] = _both(found[need.table], need) if need.table in found else need
    return tuple(found.values())


def _both(one: Need, other: Need) -> Need:
    references = tuple(dict.fromkeys((*one.references, *other.references)))
    return Need(one.table, references, one.needed | other.needed, one.there | other.there)


def _needs(facts: PartFacts, table: Table, start: int, parts: Range, first: bool) -> tuple[Need, ...]:
    references: dict[str, list[Reference]] = {}
    needed: dict[str, Parts] = {}
    for item in table.initial if first else table.inputs:
        references.setdefault(item.table, [])
        if item.reference is not None:
            references[item.table].append(item.reference)
        span = required_of(table, item, parts, facts, first)
        if item.table == table.name:
            span = Range(max(span.lo, start), min(span.hi, parts.lo - 1))
        needed[item.table] = needed.get(item.table, Parts()) | Parts.of(span)
    return tuple(
        Need(name, tuple(references[name]), spans, spans & facts.existing(name, spans.first, spans.last))
        for name, spans in needed.items()
        if spans
    )


def next_part(
    graph: Graph, facts: PartFacts, name: str, start: int | None, lowest: int = -FOREVER, skip: Parts = Parts()
) -> Next:
    """NEXT of a view: its first part, from its start on, that neither exists nor is in `skip`.

    Generated helpers are looked through: what they wait for is what the view waits for.
    `lowest`: parts below it are frozen and never built.
    """
    view = graph[name]
    start = first_part(view, facts) if start is None else start
    if start is None and (start := _likely_start(view, facts)) is None:
        return Next(name, None, tuple(_without_parts(graph, facts, view)))
    there = facts.existing(name, -FOREVER, FOREVER) | skip
    j = (Parts.of((max(start, lowest), FOREVER)) - there).first
    own = Parts.of((start, j - 1)) if j > start else Parts()
    needs = needs_of(Ahead(facts, {name: own}, {}), view, start, j)
    return Next(name, j, tuple(n for n in through_helpers(graph, facts, needs) if n.table != name))


def _likely_start(view: Table, facts: PartFacts) -> int | None:
    """Where the view will begin if what is missing comes: the first part that does not reach before its inputs."""
    found = None
    for item in view.initial:
        there = facts.existing(item.table, -FOREVER, FOREVER) if item.table != view.name else Parts()
        if item.reference is not None and there:
            bound = item.reference.hi if item.table in view.optional else item.reference.lo
            first = bound.first_reaching(there.first)
            found = first if found is None else max(found, first)
    return found


def _without_parts(graph: Graph, facts: PartFacts, view: Table) -> Iterator[Need]:
    seen: set[str] = set()
    todo = [item for item in view.initial if item.table != view.name]
    while todo:
        item = todo.pop(0)
        if item.table in seen or item.table not in graph.tables:
            continue
        seen.add(item.table)
        if graph[item.table].helper_of is not None:
            todo += [inner for inner in graph[item.table].initial if inner.table != item.table]
        elif not facts.existing(item.table, -FOREVER, FOREVER):
            yield Need(item.table, () if item.reference is None else (item.reference,), Parts(), Parts())


def through_helpers(graph: Graph, facts: PartFacts, needs: Iterable[Need], always: bool = False) -> list[Need]:
    """What generated helpers need instead of the helpers, where parts of them are missing (or `always`)."""
    merged: dict[str, Need] = {}
    todo = list(needs)
    while todo:
        need = todo.pop(0)
        table = graph.tables.get(need.table)
        if table is not None and table.helper_of is not None and (always or need.missing):
            for span in need.needed.ranges:
                found = _needs(facts, table, -FOREVER, span, first=False)
                todo += (inner for inner in found if inner.table != table.name)
            continue
        old = merged.get(need.table)
        merged[need.table] = need if old is None else _both(old, need)
    return list(merged.values())


def next_text(graph: Graph, found: Next) -> str:
    """`high_loss[2026-10-03T10:05] waits: measurements 3/4, missing 10:05`."""
    view = graph[found.table]
    head = view.name if found.part is None else f"{view.name}[{part_text(found.part, view.length)}]"
    waiting = [n for n in found.needs if n.missing or not n.needed]
    day = "" if found.part is None else part_text(found.part, view.length)[:10]
    if not waiting:
        return f"{head} has everything it needs"
    return f"{head} waits: {'; '.join(waits_text(graph, need, day) for need in waiting)}"


def waits_text(graph: Graph, need: Need, day: str) -> str:
    """What is not there of one table; dates are left out where they are `day`."""
    table = graph[need.table]
    if table.kind == "dimension":
        return f"{table.name} is not loaded"
    if not need.needed:
        return f"{table.name} has no parts yet"
    missing = need.missing
    return (
        f"{table.name} {need.needed.count - missing.count}/{need.needed.count}, "
        f"missing {parts_text(missing, table.length, day)}"
    )


def parts_text(parts: Parts, length: int, day: str = "") -> str:
    """Parts for people, without the date where it is `day`; a few ranges, then how many more."""
    texts = [_short(range_text(span, length), day) for span in parts.ranges[:_SHOWN]]
    rest = len(parts.ranges) - _SHOWN
    return " and ".join(texts) if rest <= 0 else f"{', '.join(texts)} and {rest} more ranges"


def _short(text: str, day: str) -> str:
    return text.replace(f"{day}T", "") if day else text


@dataclass(frozen=True)
class Ahead:
    """The world after a plan has run: what existed, and what the plan and its consequences build."""

    before: PartFacts
    built: Mapping[str, Parts]
    follows: Mapping[str, Parts]  # parts that become possible, by table, in the order of computing

    def existing(self, table: str, lo: int, hi: int) -> Parts:
        found = self.before.existing(table, lo, hi)
        return found | self.built[table].within(lo, hi) if table in self.built else found

    def start(self, table: str) -> int | None:
        """Of a view that begins with this plan: the first part that it builds."""
        settled, built = self.before.start(table), self.built.get(table)
        return built.first if settled is None and built else settled

    def lost(self, table: str) -> Parts:
        return self.before.lost(table)


def look_ahead(
    graph: Graph,
    facts: PartFacts,
    ready: Mapping[str, Parts],
    held: Mapping[str, Parts],
    lowest: Callable[[str], int] = lambda _: -FOREVER,
) -> Ahead:
    """What follows when the `ready` parts are built: parts never built whose inputs then all exist.

    `held` are due parts that cannot be built now; what reads them through the view itself waits, too.
    """
    built: dict[str, Parts] = dict(ready)
    follows: dict[str, Parts] = {}
    world = Ahead(facts, built, follows)
    for name in (n for n in graph.order if graph[n].kind == "view"):
        view = graph[name]
        if not any(other in built for other in view.input_names) and name not in built:
            continue
        begin = facts.start(name)
        begin = first_part(view, world) if begin is None else begin
        if begin is None:
            continue
        there = world.existing(name, -FOREVER, FOREVER)
        stuck = held.get(name, Parts())
        new = inputs_exist(view, begin, EVERYTHING, world).within(lowest(name), FOREVER) - there - stuck
        if stuck and new:
            new -= self_closure(view, stuck, new.last)
        if new:
            follows[name] = new
            built[name] = built.get(name, Parts()) | new
    return world
