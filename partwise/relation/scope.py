"""Which column a name in a query means. Names that are not found for certain mean nothing here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from partwise.relation.tree import Expr

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass
class Relation:
    """Something in FROM, by its alias. `open`: it may have columns that are not listed; `hidden` ones are not in a star."""

    alias: str
    columns: list[tuple[str, Expr]]
    open: bool = False
    hidden: frozenset[str] = frozenset()


@dataclass
class Scope:
    """The relations that a query's expressions see. `merged` are the columns of USING, `aliases` those of its SELECT."""

    relations: list[Relation] = field(default_factory=list)
    merged: dict[str, Expr] = field(default_factory=dict)
    aliases: set[str] = field(default_factory=set)
    outer: Scope | None = None
    by_name: bool = False  # a star would not be all columns in order: USING, or a side that joins hide

    def types(self) -> dict[str, str | None]:
        """Types by name; None for names that two relations have."""
        found: dict[str, str | None] = {}
        for relation in self.relations:
            for name, expr in relation.columns:
                found[name.lower()] = expr.type if name.lower() not in found else None
        return found

    def find(self, column: exp.Column) -> Expr | None:
        names = [part.name.lower() for part in column.parts]
        if len(names) > 2:
            return None
        return self._plain(names[0]) if len(names) == 1 else self._qualified(*names)

    def _plain(self, name: str) -> Expr | None:
        if name in self.merged:
            return self.merged[name]
        found = [expr for relation in self.relations for n, expr in relation.columns if n.lower() == name]
        if found:
            return found[0] if len(found) == 1 else None
        if name in self.aliases or any(relation.open for relation in self.relations):
            return None
        return self.outer._plain(name) if self.outer is not None else None

    def _qualified(self, table: str, name: str) -> Expr | None:
        here = [relation for relation in self.relations if relation.alias.lower() == table]
        if here:
            found = [expr for n, expr in here[0].columns if n.lower() == name]
            return found[0] if len(here) == len(found) == 1 else None
        # Perhaps the field of a struct.
        if table in self.aliases or any(r.open or table in {n.lower() for n, _ in r.columns} for r in self.relations):
            return None
        return self.outer._qualified(table, name) if self.outer is not None else None
