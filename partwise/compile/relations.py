"""A view's query as a relational tree: its key, what its inputs carry, and how its parts can be repaired.

recompute   always
keys        rows of the touched keys are computed again; for changes of references that carry a column
merge       changed rows are merged into what is published; for linear queries over exact types
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from partwise.compile.program import Program, Runnable
from partwise.definitions.definitions import Statement
from partwise.relation import Carried, Delta, Known, Tree, build, carried, delta, key
from partwise.relation.restriction import restriction

By = Literal["recompute", "keys", "merge"]
_BEGINS = "parts of a view with initialize are always computed again"
_ALONG = "from part to part, until nothing changes; the first part recomputes"
#: A view whose inputs are nested deeper than this has no known key.
_DEEPEST = 50


@dataclass(frozen=True)
class Repair:
    """A way to repair parts, and whether it is exact for the query. `start` is where the obstacle stands in the text."""

    by: By
    possible: bool
    columns: tuple[str, ...]
    why: str
    operator: str = ""
    start: int | None = None


@dataclass(frozen=True)
class Relation:
    """The UPDATE of a view, understood."""

    tree: Tree
    key: tuple[str, ...] | None
    statement: Statement
    begins: bool = False  # whether it has INITIALIZE
    name: str = ""
    part_by_part: bool = True  # whether parts are computed one after the other, and no check looks at whole ones

    @cached_property
    def carried(self) -> dict[int, Carried]:
        return carried(self.tree)

    @cached_property
    def delta(self) -> Delta:
        return delta(self.tree)

    @cached_property
    def repairs(self) -> tuple[Repair, ...]:
        found: tuple[Repair, ...] = (self._by_keys(), self._by_merging())
        if self.begins:
            along = self._along()
            found = tuple(replace(r, possible=False, why=_BEGINS, start=None) if r.possible else r for r in found)
            found = (along, *found[1:]) if along is not None else found
        return (Repair("recompute", True, (), "always exact"), *found)

    def repair(self, by: str) -> Repair:
        return next(found for found in self.repairs if found.by == by)

    def _by_keys(self) -> Repair:
        names = [table.written for table in self.statement.found.tables]
        good = {n: found for n, found in self.carried.items() if found}
        bad = [name for n, name in enumerate(names) if n not in good]
        if not good:
            obstacle = self.delta.obstacle
            why = "no column of the result can be followed to a reference"
            start = obstacle.start if obstacle is not None else None
            return Repair("keys", False, (), why, obstacle.operator if obstacle is not None else "", start)
        columns = tuple(c for c in self.tree.names if any(c in found for found in good.values()))
        less = f"; changes of {', '.join(bad)}, which carries none, recompute" if bad else ""
        return Repair("keys", True, columns, f"for changes of {', '.join(names[n] for n in good)}{less}")

    def _along(self) -> Repair | None:
        """Of a view that reads its own parts before: by keys that these carry as they are, so that a changed key stays one."""
        tables = self.statement.found.tables if self.part_by_part else ()
        own = [n for n, table in enumerate(tables) if table.table.lower() == self.name.lower()]
        good: dict[int, tuple[str, ...]] = {}
        for n in (n for n in range(len(tables)) if own and n not in own):
            plan = restriction(self.carried, [n, *own], self.key or ())
            only = plan.sets[0] if plan is not None and len(plan.sets) == 1 else None
            if only is not None and all(only.taken[o] == tuple(f"`{c}`" for c in only.columns) for o in own):
                good[n] = only.columns
        if not good:
            return None
        columns = tuple(c for c in self.tree.names if any(c in found for found in good.values()))
        return Repair("keys", True, columns, f"for changes of {', '.join(tables[n].written for n in good)}, {_ALONG}")

    def _by_merging(self) -> Repair:
        found = self.delta
        if found.obstacle is not None:
            return Repair("merge", False, (), found.obstacle.why, found.obstacle.operator, found.obstacle.start)
        if found.groups is None:
            return Repair("merge", True, (), "changed rows of the inputs are changed rows of the result")
        if not found.published:
            lacking = ", ".join(_partial(p.function, p.argument) for p in found.partials if p.column is None)
            why = (
                f"the result does not show {lacking}" if lacking else "HAVING, or a group that is not shown, hides rows"
            )
            return Repair("merge", False, found.groups, why, "group", found.start)
        return Repair("merge", True, found.groups, "partials of the changed rows are added to those of their groups")


def _partial(function: str, argument: str) -> str:
    return "COUNT(*)" if function == "count_all" else f"{function.upper()}({argument})"


def bad_repair(relations: Relations, view: Runnable) -> str | None:
    """Why the repair that a view's definition asks for is not exact, with the operator and its line; None if it is."""
    if view.written.repair_by == "auto":
        return None
    relation = relations.of(view)
    found = relation.repair(view.written.repair_by)
    if found.possible:
        return None
    where = ""
    if found.start is not None and found.operator:
        where = f" ({found.operator}, line {relation.statement.placed.at(found.start).line})"
    return f"repair by {found.by} is not {'possible' if found.why == _BEGINS else 'exact'} for {view.name}: {found.why}{where}"


class Relations:
    """Trees of the views of a workspace; `stored` are the columns of tables that exist, which know all their types."""

    def __init__(self, program: Program, stored: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self._program = program
        self._tables = {name.lower(): table for name, table in program.usable.items()}
        self._stored = {name.lower(): columns for name, columns in (stored or {}).items()}
        self._found: dict[str, Known | None] = {}

    def of(self, view: Runnable) -> Relation:
        """The tree of a view's UPDATE."""
        own = self._known(view.name.lower(), 0)
        tree = self._tree(view.update, 0)
        found = own.key if own is not None and own.key else key(tree)
        alone = view.single_pass is None and not view.checks
        return Relation(tree, found, view.update, view.initialize is not None, view.name, alone)

    def known(self, name: str) -> Known | None:
        """Columns and types of a table, as far as they are known."""
        return self._known(name.lower(), 0)

    def _tree(self, statement: Statement, depth: int, own: tuple[str, Known] | None = None) -> Tree:
        def known(name: str) -> Known | None:
            if own is not None and name == own[0]:
                return own[1]
            return self._known(name, depth + 1)

        return build(statement.text, known, statement.index)

    def _known(self, name: str, depth: int) -> Known | None:
        """Columns, types and key of a table, as far as they are known."""
        if name not in self._found and depth <= _DEEPEST:
            self._found[name] = None  # whoever asks while this is found out learns nothing
            table = self._tables.get(name)
            if isinstance(table, Runnable):
                self._found[name] = self._of_view(table, depth)
            elif table is not None:
                columns: Mapping[str, str | None] = self._stored.get(name) or dict(table.columns)
                declared = tuple(getattr(table, "key", ()) or ())
                self._found[name] = Known(columns, declared) if columns else None
        return self._found.get(name)

    def _of_view(self, view: Runnable, depth: int) -> Known | None:
        """As INITIALIZE, or UPDATE without one, gives them; the key only if UPDATE keeps it."""
        found: Known | None = None
        name = view.name.lower()
        for statement in view.statements:
            tree = self._tree(statement, depth, None if found is None else (name, found))
            here = _shape(tree)
            if here is None:
                return None
            found = here if found is None else _in_both(found, here)
        compiled = self._program.views.get(view.name)
        names = None if compiled is None else compiled.columns
        if found is None or (names is not None and [c.lower() for c in names] != [*map(str.lower, found.columns)]):
            return None
        types = {} if compiled is None else compiled.types
        declared = {c.lower(): kind for c, kind in {**types, **self._stored.get(name, {})}.items()}
        return Known({c: declared.get(c.lower(), kind) for c, kind in found.columns.items()}, found.key)


def _shape(tree: Tree) -> Known | None:
    if not tree.names or len(set(tree.names)) < len(tree.names):
        return None
    return Known(dict(zip(tree.names, tree.types, strict=True)), key(tree) or ())


def _in_both(first: Known, update: Known) -> Known:
    same = {c: kind if update.columns.get(c) == kind else None for c, kind in first.columns.items()}
    return Known(same, first.key if update.key and set(update.key) <= set(first.key) else ())
