"""What runs: the tables that a workspace computes, made of what its authors wrote.

    View (as written) -> CompiledView (every way to run it) -> Choice (which of them) -> Runnable (what a step computes)

A query can often be kept in several ways, one an alternative, each with helper tables of its own. All are compiled;
which one runs is a Choice, which the ledger records (see `partwise.choose`). The ways that are not taken cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from partwise.compile.model import Choice, PaneShape, Strategy, WindowShape
from partwise.definitions.definitions import Check, Definition, Definitions, Dimension, Source, Statement, View
from partwise.definitions.problems import Problem
from partwise.definitions.yaml.places import Place
from partwise.tables import Graph, Start


@dataclass(frozen=True)
class KeptOutput:
    """Outputs of operators of a query that helpers keep, and the query over them and what is left of its references.

    `kept` are the numbers of the references in the query that the helpers stand for, `occurrences` those of the
    references of `rest`, None for a helper.
    """

    helpers: tuple[str, ...]
    kept: frozenset[int]
    rest: Statement
    occurrences: tuple[int | None, ...]


@dataclass(frozen=True)
class Runnable:
    """A table that steps compute: a view as it runs, or a helper that was generated for one.

    `written` is the author's view: the one that this table is, or the one that it serves. A helper runs as that view
    does (engine, repair, patience, timeout), but it has no checks and no retention of its own. `optional`,
    `fast_update`, `unique_update`, `unique_by`, `single_pass` and `sketches` are as in
    `partwise.compile.model.GeneratedView`; plain SQL has none of them.

    A shared helper serves the views in `others`, too. `meaning` is then what its name is made of, and all that its
    fingerprint says: whose text of it runs does not matter.

    A helper `beside` its view is not needed by it: a sample, or a kept output. It is always repaired at once, whatever
    the view waits for, and it is kept as long as the view, or for `kept_for` seconds. `keeps` says what of its view's
    query a helper keeps; `states` are the kept outputs that a step of the view may read, the best first.
    """

    name: str
    written: View
    part: int
    start: Start
    update: Statement
    initialize: Statement | None = None
    description: str | None = None
    optional: tuple[str, ...] = ()
    fast_update: str | None = None
    unique_update: str | None = None
    unique_by: tuple[str, ...] = ()
    single_pass: str | None = None
    sketches: tuple[str, ...] = ()
    beside: bool = False
    kept_for: int | None = None
    keeps: Literal["", "join", "groups"] = ""
    states: tuple[KeptOutput, ...] = ()
    meaning: str | None = None
    others: tuple[View, ...] = ()

    @property
    def helper_of(self) -> str | None:
        """The first view that this helper serves; None for the view itself."""
        return None if self.name == self.written.name else self.written.name

    @property
    def served(self) -> tuple[View, ...]:
        """The views that this helper serves, in the order of computing; the view itself if it is none."""
        return (self.written, *self.others)

    @property
    def state_helpers(self) -> tuple[str, ...]:
        """Helpers that a step may read if they are up to date."""
        return tuple(dict.fromkeys(name for state in self.states for name in state.helpers))

    @property
    def rolling(self) -> bool:
        """Whether it is one table without parts, which holds what its newest part would."""
        return self.helper_of is None and self.written.output == "rolling"

    @property
    def statements(self) -> tuple[Statement, ...]:
        return (self.update,) if self.initialize is None else (self.initialize, self.update)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names (lower case) of the tables that it reads, in order of appearance."""
        return tuple(dict.fromkeys(found.table.lower() for s in self.statements for found in s.found.tables))

    @property
    def place(self) -> Place:
        return self.written.place

    @property
    def checks(self) -> tuple[Check, ...]:
        return () if self.helper_of else self.written.checks

    @property
    def keep(self) -> int | None:
        if self.kept_for is not None:
            return self.kept_for
        return None if self.helper_of and not self.beside else self.written.keep


#: Whatever has a table in the warehouse.
ProgramTable = Source | Dimension | Runnable


@dataclass(frozen=True)
class Alternative:
    """One way to run a view: its own table, the helpers behind it, and what to say about it.

    `strategy` names it; plain SQL has one way without a name.
    """

    strategy: Strategy | Literal["pattern"] | None
    table: Runnable
    helpers: tuple[Runnable, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def kept_helpers(self) -> tuple[Runnable, ...]:
        return tuple(helper for helper in self.helpers if helper.keeps)

    def without_state(self) -> Alternative:
        """The same, with nothing kept."""
        if not self.kept_helpers:
            return self
        helpers = tuple(helper for helper in self.helpers if not helper.keeps)
        return replace(self, table=replace(self.table, states=()), helpers=helpers)


@dataclass(frozen=True)
class Sampled:
    """What readers of a sample have to know: its tables, by which columns (with types) keys are hashed, how many.

    `unique`: a key has one row in a part at most. `sized` are columns of which `sizes` bounds what a key can hold,
    `summed` those of them that are no counts. `row_key` tells the rows of a part apart, if there is one.
    """

    sample: str
    was: str
    sizes: str | None
    key: tuple[tuple[str, str], ...]
    ratio: float
    keep: int
    exact: tuple[str, ...]
    unique: bool
    sized: tuple[str, ...]
    summed: tuple[str, ...] = ()
    row_key: tuple[str, ...] = ()

    @property
    def fresh_tables(self) -> tuple[str, ...]:
        """Those that follow the inputs, not what is published."""
        return (self.sample,) if self.sizes is None else (self.sample, self.sizes)


@dataclass(frozen=True, slots=True)
class CompiledView:
    """Every way to run a view, each strategy once.

    `usual` is the choice that the query alone suggests (or its author asks for); plain SQL has none. A window has a
    `shape`, which is what choosing by counts has to know, and a `mark`, which says which query it is, however it is
    kept: a choice holds as long as that stays. `own` are the same ways with helpers that no other view reads, where
    `alternatives` have helpers that can be shared, and `panes` what those of merging hold. `columns` are the names of the result where they are known for sure,
    `types` those of their types that are, by lower-case name.
    """

    written: View
    alternatives: tuple[Alternative, ...]
    usual: Choice | None = None
    shape: WindowShape | None = None
    mark: str = ""
    columns: tuple[str, ...] | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    sampled: Sampled | None = None
    own: tuple[Alternative, ...] = ()
    panes: PaneShape | None = None

    @property
    def name(self) -> str:
        return self.written.name

    @property
    def is_free(self) -> bool:
        """Whether its author leaves it to Partwise how it is kept."""
        return self.written.strategy == "auto"

    def alternative(self, choice: Choice | None, own: bool = False) -> Alternative:
        """The one that a choice names, with helpers of its `own` if need be. Raises KeyError if there is no such way."""
        strategy = None if choice is None else choice.strategy
        ways = self.own if own and self.own else self.alternatives
        found = next((each for each in ways if each.strategy == strategy), None)
        if found is None:
            raise KeyError(strategy)
        return found

    def can(self, strategy: str) -> bool:
        return any(each.strategy == strategy for each in self.alternatives)


@dataclass(frozen=True)
class KeptWay:
    """A way to run a view with outputs of its operators kept, and the choice that it was made for."""

    chosen: object
    way: Alternative


@dataclass(frozen=True)
class Program:
    """Everything that a workspace runs. `views` are compiled, by name, in an order in which they can be computed.

    `choices` are those that differ from what a query alone suggests. `owning` are views that share no helpers, because
    theirs were built before others could read them, or because those of others lack parts. `covered` are those that
    read panes which hold more than they need, with how they do. `written` is what the authors wrote, with all
    problems: of a definition with errors there may be a compiled view for looking at, which is not `usable`.
    `kept` are ways with what was chosen to be kept of views; without `keeping` nothing is, whoever wants it.
    """

    written: Definitions = field(default_factory=Definitions)
    views: Mapping[str, CompiledView] = field(default_factory=dict)
    choices: Mapping[str, Choice] = field(default_factory=dict)
    owning: frozenset[str] = frozenset()
    kept: Mapping[str, KeptWay] = field(default_factory=dict)
    keeping: bool = True
    covered: Mapping[str, Alternative] = field(default_factory=dict)

    @property
    def tables(self) -> Mapping[str, Definition]:
        """What the authors wrote, by name."""
        return self.written.tables

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self.written.problems

    @property
    def ok(self) -> bool:
        """Whether there is no error; warnings and notes are allowed."""
        return self.written.ok

    def choice(self, view: str) -> Choice | None:
        """How a query is kept, and why; None for plain SQL."""
        compiled = self.views.get(view)
        return None if compiled is None else self.choices.get(view, compiled.usual)

    def alternative(self, view: str) -> Alternative:
        """The way in which a compiled view runs."""
        choice = self.choice(view)
        if view in self.covered and view not in self.owning and choice is not None and choice.strategy == "merge":
            way = self.covered[view]
        else:
            way = self.views[view].alternative(choice, view in self.owning)
        if not self.keeping:
            return way.without_state()
        return self.kept[view].way if view in self.kept else way

    def own_way(self, view: str) -> Alternative:
        """The same, with helpers that no other view reads."""
        return self.views[view].alternative(self.choice(view), own=True)

    def with_own(self, views: Iterable[str]) -> Program:
        """The same program in which these views, and no others, have helpers of their own that could be shared."""
        wanted = frozenset(view for view in views if view in self.views and self.views[view].own)
        return self if wanted == self.owning else replace(self, owning=wanted)

    def with_covered(self, covered: Mapping[str, Alternative]) -> Program:
        """The same program in which these views, and no others, read panes that hold more than they need."""
        return replace(self, covered=dict(covered)) if covered or self.covered else self

    def choosing(self, choices: Mapping[str, Choice]) -> Program:
        """The same program with these choices, by view. What is not possible, or up to the author, stays as it is."""
        changed = {view: choice for view, choice in choices.items() if self._may_choose(view, choice)}
        return replace(self, choices={**self.choices, **changed}) if changed else self

    def _may_choose(self, view: str, choice: Choice) -> bool:
        compiled = self.views.get(view)
        if compiled is None or not compiled.is_free:
            return False
        return compiled.can(choice.strategy) and self.choice(view) != choice

    def with_kept(self, kept: Mapping[str, KeptWay]) -> Program:
        """The same program with these outputs kept, and no others but those that definitions name."""
        return self if kept == self.kept else replace(self, kept=kept)

    def keeping_nothing(self) -> Program:
        return replace(self, keeping=False) if self.keeping else self

    @cached_property
    def helpers(self) -> Mapping[str, Runnable]:
        """Tables that were generated for views, as they are chosen."""
        taken = {name.lower() for name in self.tables}
        found: dict[str, list[Runnable]] = {}
        for view in self.views:
            for helper in self.alternative(view).helpers:
                if helper.name.lower() not in taken:
                    found.setdefault(helper.name, []).append(helper)
        return {name: self._one(alike) for name, alike in found.items()}

    def _one(self, alike: list[Runnable]) -> Runnable:
        """The helper that all of these are. Views with errors have no say in it while there is another one."""
        sound = [each for each in alike if each.written.name.lower() not in self.written.broken] or alike
        return sound[0] if len(sound) == 1 else replace(sound[0], others=tuple(each.written for each in sound[1:]))

    @cached_property
    def usable(self) -> Mapping[str, ProgramTable]:
        """Tables without errors, whose inputs are all usable; helpers included."""
        good = {table.name.lower(): table for table in self._tables() if not self._is_broken(table)}
        while True:
            kept = {name: t for name, t in good.items() if not isinstance(t, Runnable) or good.keys() >= set(t.inputs)}
            if len(kept) == len(good):
                return {table.name: table for table in kept.values()}
            good = kept

    def _tables(self) -> Iterator[ProgramTable]:
        for name, definition in self.tables.items():
            if not isinstance(definition, View):
                yield definition
            elif name in self.views:
                yield self.alternative(name).table
        yield from self.helpers.values()

    def _is_broken(self, table: ProgramTable) -> bool:
        """A helper is as good as the view that it serves."""
        served = table.helper_of if isinstance(table, Runnable) else None
        return (served or table.name).lower() in self.written.broken

    def graph(self) -> Graph:
        """The usable tables as the planner sees them."""
        return self._graph

    @cached_property
    def _graph(self) -> Graph:
        from partwise.compile.table import to_table

        return Graph.of(to_table(table, self.usable, self) for table in self.usable.values())
