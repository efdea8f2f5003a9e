"""What an aggregate over a window is made from: columns of a pane that can be merged, maybe subtracted.

A cell is exact if subtracting what left gives what recomputation would give: integers and decimals, never doubles
(1e17 + 1 - 1e17 is 0, and a NaN would never leave).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from partwise.sql.text import Piece, conjunct, operand
from partwise.sql.types.names import decimal_of


@dataclass(frozen=True, slots=True)
class Cell:
    """`body`: its aggregate over rows; `merge`: over cells, `{0}` being the column. `type` where it must not move.

    A sketch has a `mark`: an aggregate over the same rows that is equal for equal rows in any order, which the
    bytes of a sketch are not. Where the cells are `folded` one after the other, their merge is long, and a formula
    that needs it several times is written over its result.
    """

    body: str
    merge: str
    exact: bool = False
    name: str = "value"
    type: str | None = None
    mark: str = ""
    folded: bool = False

    @property
    def rows(self) -> str:
        return cast(self.body, self.type)

    @property
    def rolled(self) -> str:
        """Over rows, for rolling sums: 0 instead of NULL, so that adding and subtracting works."""
        return self.rows if self.body.startswith("COUNT") else cast(f"COALESCE({self.body}, 0)", self.type)


@dataclass(frozen=True, slots=True)
class Values:
    """Counts of distinct values. `value` is the expression counted, `where` drops NULLs and applies FILTER.

    `over` is the aggregate over the distinct values, with `{value}` and `{n}`; `empty` is its value without any.
    """

    value: str
    where: str
    over: str
    empty: str


@dataclass(frozen=True, slots=True)
class Split:
    """`final` and `final_rolled`: the aggregate from its merged cells `{0}`, `{1}`, ...

    `direct` is the aggregate over the rows of the window where that is another expression; an aggregate without
    cells and values can only be computed so (`why` says the reason). `company` are cells over the same argument that
    are kept as well where views share helpers: with them SUM, AVG and COUNT of one argument read the same ones. They
    cannot fail where the aggregate itself does not.
    """

    cells: tuple[Cell, ...] = ()
    final: str = "{0}"
    rolled_cells: tuple[Cell, ...] | None = None
    final_rolled: str = ""
    values: Values | None = None
    company: tuple[Cell, ...] = ()
    direct: str | None = None
    why: str = ""

    @property
    def mergeable(self) -> bool:
        return bool(self.cells) or self.values is not None

    @property
    def exact(self) -> bool:
        return self.values is None and bool(self.cells) and all(cell.exact for cell in self.rolled_cells or self.cells)


def kept(split: Split, strategy: str) -> str:
    """How an aggregate is kept, in a word or two."""
    if strategy == "recompute":
        return f"recomputed, {split.why}" if split.why else "recomputed from the rows of the window"
    if split.values is not None:
        return "merged from counts of its values"
    if strategy == "subtract" and split.exact:
        return "subtracted"
    if any(cell.mark for cell in split.cells):
        return "merged from sketches"
    return "merged in the order of its values" if any(cell.folded for cell in split.cells) else "merged"


@dataclass(frozen=True, slots=True)
class Rows:
    """What aggregates need to know of the rows: types of expressions, and the columns of time and tie."""

    type_of: Callable[[Piece], str | None]
    text: Callable[[Piece], str]
    moment: tuple[str, ...]


def filtered(where: str) -> str:
    return f" FILTER (WHERE {where})" if where else ""


def both(*conditions: str) -> str:
    there = [c for c in conditions if c]
    return " AND ".join(map(conjunct, there)) if len(there) > 1 else "".join(there)


def there(arg: str) -> str:
    return f"{operand(arg)} IS NOT NULL"


def named(name: str, args: list[str]) -> str:
    simple = [a.split(".")[-1] for a in args if a.replace("_", "a").replace(".", "a").isalnum()]
    return "_".join([name, *simple]) if len(simple) == len(args) else name


def cast(text: str, kind: str | None) -> str:
    return f"CAST({text} AS {kind.upper()})" if kind is not None and decimal_of(kind) is not None else text
