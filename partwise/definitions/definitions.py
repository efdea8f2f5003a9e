"""Definitions as the rest of Partwise uses them: frozen, checked, lengths in seconds."""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from partwise.definitions.problems import Problem
from partwise.definitions.yaml.places import Place, Placed
from partwise.sql.references import FoundReferences
from partwise.tables import Graph, Start

if TYPE_CHECKING:
    from partwise.compile.model import Choice, Strategy, WindowShape

_READ = re.compile(r"\b(?:FROM|JOIN)\s+`?([A-Za-z_]\w*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """A query as written (without a semicolon at its end), what it reads, and where its text stands.

    `canonical` is one text for all the ways to write the same query.
    """

    text: str
    index: str
    found: FoundReferences
    placed: Placed
    canonical: str


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation by its Great Expectations name; `place` is that of its name."""

    name: str
    arguments: Mapping[str, Any]
    severity: Literal["error", "warn"]
    place: Place


@dataclass(frozen=True, slots=True)
class Time:
    """The event time: `unit` None means the column holds times (or text that Spark reads as times).

    `tie` orders rows of equal time.
    """

    column: str
    unit: Literal["seconds", "milliseconds"] | None = None
    tie: str | None = None


@dataclass(frozen=True, slots=True)
class Close:
    """When a part is complete; `delay` in seconds, `marker` a path with `{part}`."""

    rule: Literal["delay", "marker", "manual"] = "delay"
    delay: int = 0
    marker: str | None = None


@dataclass(frozen=True, slots=True)
class Late:
    """Seconds; None: no bound."""

    accept: int | None = None
    future: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A table fed from outside. Exactly one of `files` (patterns) and `delta` is given. `poll` 0: only on demand.

    `key` and `max_removed` (a share of 1) are among the `checks` as well.
    """

    name: str
    place: Place
    part: int
    time: Time
    columns: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    delta: str | None = None
    close: Close = Close()
    late: Late = Late()
    keep: int | None = None
    poll: int | None = None
    checks: tuple[Check, ...] = ()
    description: str | None = None
    owner: str | None = None
    tags: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    max_removed: float | None = None


@dataclass(frozen=True, slots=True)
class Dimension:
    """A small unpartitioned table. Exactly one of `files` and `delta` is given."""

    name: str
    place: Place
    columns: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    delta: str | None = None
    poll: int | None = None
    checks: tuple[Check, ...] = ()
    description: str | None = None
    owner: str | None = None
    tags: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    max_removed: float | None = None


@dataclass(frozen=True, slots=True)
class View:
    """A table computed here: either `update` (with or without `initialize`), or `query`, which is translated.

    `columns` are the names of its result where they are known for sure, `types` those of their types that are, by
    lower-case name. `helper_of` names the view that
    this one was generated for. Of a translated query `initialize` and `update` are generated, too; `optional`,
    `fast_update`, `unique_update`, `unique_by`, `single_pass` and `sketches` are then as in
    `partwise.compile.model.GeneratedView`. A window that can be kept in several ways has `variants`; the generated
    statements are those of the one that is `chosen`, `notes` say more of it, `shape` is what choosing by counts has
    to know, and `mark` says which query it is, however it is kept: a choice holds as long as that stays.
    """

    name: str
    place: Place
    part: int
    start: Start = field(default_factory=Start)
    initialize: Statement | None = None
    update: Statement | None = None
    query: Placed | None = None
    gaps: Literal["break", "carry"] = "break"
    strategy: Literal["auto", "merge", "subtract", "recompute"] = "auto"
    partial: bool = False
    keep: int | None = None
    repair: Literal["automatic", "manual"] = "automatic"
    engine: Literal["connect", "submit"] | None = None
    patience: int | None = None
    timeout: int | None = None
    checks: tuple[Check, ...] = ()
    description: str | None = None
    owner: str | None = None
    tags: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    helper_of: str | None = None
    optional: tuple[str, ...] = ()
    fast_update: str | None = None
    unique_update: str | None = None
    unique_by: tuple[str, ...] = ()
    single_pass: str | None = None
    sketches: tuple[str, ...] = ()
    chosen: Choice | None = None
    notes: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    shape: WindowShape | None = None
    mark: str = ""

    @property
    def statements(self) -> tuple[Statement, ...]:
        return tuple(s for s in (self.initialize, self.update) if s is not None)

    def way(self, strategy: str) -> Way | None:
        """A way to keep this window; None where it is not possible, or the only one."""
        return next((variant.way for variant in self.variants if variant.strategy == strategy), None)

    def made_as(self, made: View) -> View:
        """This view with the statements that were generated for it."""
        return replace(
            self,
            initialize=made.initialize,
            update=made.update,
            optional=made.optional,
            fast_update=made.fast_update,
            unique_update=made.unique_update,
            unique_by=made.unique_by,
            single_pass=made.single_pass,
        )


@dataclass(frozen=True, slots=True)
class Way:
    """One way to keep a window: its generated statements (in `made`), its helpers, and what to say of it."""

    made: View
    helpers: tuple[View, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to keep a window, packed: commands read all definitions, but hardly ever a way that is not taken."""

    strategy: Strategy
    packed: bytes

    @classmethod
    def of(cls, strategy: Strategy, way: Way) -> Variant:
        return cls(strategy, pickle.dumps(way))

    @property
    def way(self) -> Way:
        found = pickle.loads(self.packed)
        assert isinstance(found, Way)
        return found


Definition = Source | Dimension | View


@dataclass(frozen=True)
class Definitions:
    """What a workspace defines. `tables` are the definitions as written, `helpers` were generated for them.

    `broken` are names (lower case) with errors. Their definitions may be in `tables` for looking at.
    """

    tables: Mapping[str, Definition] = field(default_factory=dict)
    helpers: Mapping[str, View] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    broken: frozenset[str] = frozenset()

    @property
    def ok(self) -> bool:
        """Whether there is no error; warnings and notes are allowed."""
        return not any(problem.severity == "error" for problem in self.problems)

    @cached_property
    def usable(self) -> Mapping[str, Definition]:
        """Definitions without errors, whose inputs are all usable; helpers included."""
        everything: dict[str, Definition] = {**self.tables, **self.helpers}
        good = {name.lower(): d for name, d in everything.items() if not self._is_broken(d) and _runs(d)}
        while True:
            kept = {name: d for name, d in good.items() if all(i in good for i in inputs_of(d))}
            if len(kept) == len(good):
                return {definition.name: definition for definition in kept.values()}
            good = kept

    def _is_broken(self, definition: Definition) -> bool:
        """A helper is as good as the view that it serves."""
        served = definition.helper_of if isinstance(definition, View) else None
        return (served or definition.name).lower() in self.broken

    def with_strategies(self, chosen: Mapping[str, Choice]) -> Definitions:
        """The same definitions with windows kept in these ways, by view; what is not possible stays as it is."""
        tables, helpers = dict(self.tables), dict(self.helpers)
        for name, choice in chosen.items():
            view = tables.get(name)
            if not isinstance(view, View) or view.strategy != "auto" or view.chosen in (None, choice):
                continue
            if view.chosen is not None and view.chosen.strategy == choice.strategy:
                tables[name] = replace(view, chosen=choice)
            elif (way := view.way(choice.strategy)) is not None:
                tables[name] = replace(view.made_as(way.made), chosen=choice, notes=way.notes)
                helpers = {n: helper for n, helper in helpers.items() if helper.helper_of != name}
                helpers |= {helper.name: helper for helper in way.helpers}
        same = all(tables[name] is view for name, view in self.tables.items())
        return self if same else replace(self, tables=tables, helpers=helpers)

    def graph(self) -> Graph:
        """The usable tables as the planner sees them."""
        return self._graph

    @cached_property
    def _graph(self) -> Graph:
        from partwise.compile.table import to_table

        return Graph.of(to_table(definition, self.usable) for definition in self.usable.values())


def inputs_of(definition: Definition) -> tuple[str, ...]:
    """Names (lower case) that a view reads, in order of appearance."""
    if not isinstance(definition, View):
        return ()
    if definition.query is not None and definition.update is None:
        # Not translated yet; what follows FROM and JOIN is all that the language of queries can read.
        return tuple(dict.fromkeys(name.lower() for name in _READ.findall(definition.query.text)))
    return tuple(dict.fromkeys(found.table.lower() for s in definition.statements for found in s.found.tables))


def _runs(definition: Definition) -> bool:
    return not isinstance(definition, View) or definition.update is not None
