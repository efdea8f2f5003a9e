"""Random definition graphs: self-references, windows, diamonds, mixed lengths, chains, dimensions."""

from __future__ import annotations

from random import Random

from partwise.parts import Bound, Reference
from partwise.tables import Graph, Input, Start, Table
from tests.simulation.world import Model

LENGTHS = (60, 60, 60, 120, 30)


def random_reference(rng: Random, view_length: int, table_length: int) -> Reference:
    """A reference that fits the lengths: one part, a window back in time, or a shifted one."""
    if view_length >= table_length:
        times, over = view_length // table_length, 1
        width = times - 1 if rng.random() < 0.7 else 0
    else:
        times, over, width = 1, table_length // view_length, 0
    back = rng.choice((0, 0, 0, 1, 2, 3)) * over
    shift = rng.choice((0, 0, 0, -over, -2 * over))
    return Reference(Bound(times, shift - back, over), Bound(times, shift + width * over, over))


def random_self(rng: Random) -> Reference:
    """The part before, a few parts, and now and then only ones further back: chains that never become dense."""
    first, last = rng.choice(((-1, -1), (-1, -1), (-2, -2), (-3, -1), (-2, -1), (-3, -2)))
    if (first, last) == (-2, -2) and rng.random() < 0.6:
        first, last = rng.choice(((-5, -5), (-7, -7), (-8, -6)))
    return Reference.window(first, last)


def random_view(rng: Random, name: str, above: list[Table]) -> Table:
    length = rng.choice([60] * 6 + list(LENGTHS))
    partitioned = [t for t in above if t.kind != "dimension"]
    dimensions = [t for t in above if t.kind == "dimension"]
    # The newest tables are likelier: chains and diamonds rather than many readers of one source.
    picked = [partitioned[max(rng.randrange(len(partitioned)), rng.randrange(len(partitioned)))]]
    picked += [rng.choice(partitioned) for _ in range(rng.choice((0, 0, 1, 1, 2)))]
    inputs = [Input(t.name, random_reference(rng, length, t.length)) for t in picked]
    if dimensions and rng.random() < 0.3:
        inputs.append(Input(rng.choice(dimensions).name, None))
    initial = list(inputs)
    if rng.random() < 0.4:
        inputs.append(Input(name, random_self(rng)))
        if rng.random() < 0.4:
            initial = [Input(t.name, random_reference(rng, length, t.length)) for t in picked[:1]]
    rule = rng.choice(("earliest", "earliest", "earliest", "latest", "at"))
    start = Start(rule, rng.randrange(0, 8) * 60 // length if rule == "at" else None)  # type: ignore[arg-type]
    patience = rng.choice((None, None, 0.0, 50.0))
    # A generator of its own: histories without optional inputs stay as they were.
    some = Random(repr(inputs))
    optional = tuple(n for n in sorted({t.name for t in picked}) if some.random() < 0.5) if some.random() < 0.4 else ()
    return Table(name, "view", length, "", tuple(inputs), tuple(initial), start, patience=patience, optional=optional)


def random_model(rng: Random, views: int | None = None) -> Model:
    tables = [Table("s", "source", 60, "s")]
    if rng.random() < 0.5:
        tables.append(Table("u", "source", rng.choice((60, 60, 120)), "u"))
    if rng.random() < 0.3:
        tables.append(Table("d", "dimension", 0, "d"))
    model = Model(Graph.of(tables), {})
    for n in range(views or rng.randint(1, 5)):
        view = random_view(rng, f"v{n}", tables)
        model = model.with_view(view, rng.randrange(1000))
        tables.append(model.graph[view.name])
    return model


def changed_model(rng: Random, model: Model) -> Model:
    """Another definition for one view: another query, other references, or another part length."""
    views = [t for t in model.graph.tables.values() if t.kind == "view"]
    view = rng.choice(views)
    above = [model.graph[n] for n in model.graph.order[: model.graph.rank[view.name]]]
    above = [t for t in above if t.name not in model.graph.downstream([view.name])]
    kind = rng.random()
    if kind < 0.6:
        return model.with_view(view, rng.randrange(1000))
    new = random_view(rng, view.name, above)
    changed = model.with_view(new, model.salts[view.name])
    if new.length != view.length:
        # Readers of a table with other part numbers must be written again, all the way down.
        for name in model.graph.order:
            if name in model.graph.downstream([view.name]) and name != view.name:
                above = [changed.graph[n] for n in model.graph.order[: model.graph.rank[name]]]
                reader = random_view(
                    rng, name, [t for t in above if t.kind != "view" or t.name in model.graph.upstream([name])]
                )
                # An unchanged length keeps readers further down meaningful.
                changed = changed.with_view(reader, rng.randrange(1000))
    return changed
