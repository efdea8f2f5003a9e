"""Tables as the ledger knows them: their definitions, and what has been settled about them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import bindparam, select

from partwise.ledger.database import Reading
from partwise.ledger.schema import catalog
from partwise.parts import Bound, Reference
from partwise.plan.refresh import Refresh
from partwise.tables import Graph, Input, Keyed, Start, Table

_SETTLED = select(catalog.c.start, catalog.c.floor, catalog.c.generation).where(catalog.c.table == bindparam("t"))
# By name, so that everything that follows the order of tables is the same each time.
_ALL = select(catalog.c.definition).where(catalog.c.retired.is_(False)).order_by(catalog.c.table)


@dataclass(frozen=True, slots=True)
class Settled:
    """What the ledger has decided about a table."""

    start: int | None
    floor: int | None
    generation: int


def settled(r: Reading, table: str) -> Settled:
    row = r.on.execute(_SETTLED, {"t": table}).one_or_none()
    return Settled(*row) if row else Settled(None, None, 0)


class Catalog:
    """The definitions in the ledger, read again only after they changed.

    They are ledger state, not the caller's: a writer with old files must still mark the parts of
    a view that it has never heard of.
    """

    def __init__(self) -> None:
        self._defined = -1
        self._graph = Graph()

    def graph(self, r: Reading) -> Graph:
        if r.defined != self._defined:
            self._graph = Graph.of(from_json(text) for text in r.on.execute(_ALL).scalars())
            self._defined = r.defined
        return self._graph

    def forget(self) -> None:
        """After a transaction that was rolled back."""
        self._defined = -1


def to_json(table: Table) -> str:
    fields: dict[str, object] = {
        "name": table.name,
        "kind": table.kind,
        "length": table.length,
        "fingerprint": table.fingerprint,
        "inputs": [_input(i) for i in table.inputs],
        "initial": [_input(i) for i in table.initial],
        "start": [table.start.rule, table.start.part],
        "repair": table.repair,
        "patience": table.patience,
        "helper_of": table.helper_of,
        "optional": list(table.optional),
        "checks": table.checks,
        "refresh": None if table.refresh is None else table.refresh.to_json(),
    }
    if table.freshness is not None:
        fields["freshness"] = table.freshness
    if table.rolling:
        fields["rolling"] = True
    if table.forward:
        fields["forward"] = True
    if table.timed:
        fields["timed"] = True
    if table.own_times:
        fields["own_times"] = True
    if table.also:
        fields["also"] = list(table.also)
    if table.keyed:
        fields["keyed"] = [
            [item.dimension, list(item.own), item.table, list(item.columns), _bounds(item.reference)]
            for item in table.keyed
        ]
    return json.dumps(fields)


def from_json(text: str) -> Table:
    raw: Mapping[str, object] = json.loads(text)
    fields = dict(raw)
    fields["inputs"] = tuple(_from_input(i) for i in raw["inputs"])  # type: ignore[attr-defined]
    fields["initial"] = tuple(_from_input(i) for i in raw["initial"])  # type: ignore[attr-defined]
    fields["start"] = Start(*raw["start"])  # type: ignore[misc]
    fields["optional"] = tuple(raw["optional"])  # type: ignore[arg-type]
    fields["also"] = tuple(raw.get("also", ()))  # type: ignore[arg-type]
    if raw.get("refresh") is not None:
        fields["refresh"] = Refresh.from_json(raw["refresh"])  # type: ignore[arg-type]
    fields["keyed"] = tuple(_keyed(*item) for item in raw.get("keyed", ()))  # type: ignore[attr-defined]
    return Table(**fields)  # type: ignore[arg-type]


def _input(item: Input) -> list[object]:
    if item.reference is None:
        return [item.table]
    return [item.table, *_bounds(item.reference)]


def _bounds(reference: Reference) -> list[int]:
    lo, hi = reference.lo, reference.hi
    return [lo.times, lo.plus, lo.over, hi.times, hi.plus, hi.over]


def _reference(bounds: list[int]) -> Reference:
    return Reference(Bound(*bounds[:3]), Bound(*bounds[3:]))


def _keyed(dimension: str, own: list[str], table: str, columns: list[str], bounds: list[int]) -> Keyed:
    return Keyed(dimension, tuple(own), table, tuple(columns), _reference(bounds))


def _from_input(item: list[int]) -> Input:
    name = str(item[0])
    if len(item) == 1:
        return Input(name, None)
    return Input(name, _reference(item[1:]))
