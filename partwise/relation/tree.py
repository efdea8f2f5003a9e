"""The relational tree of a query: what its operators are, with columns as numbers.

A number stands for one column of one operator, so no name can capture another. What is not understood is `Opaque`
(an operator) or `Other` (an expression): rules stop there, which costs a wider read and never a wrong result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from partwise.parts import Reference

# -- expressions


@dataclass(frozen=True, slots=True)
class Ref:
    """A column. `type` is Spark's, None if it is not known."""

    column: int
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Const:
    sql: str
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A function that never fails and always gives the same: `sql` has a {} for each argument.

    Only such functions may be evaluated on rows that the query itself would never have looked at.
    """

    sql: str
    args: tuple[Expr, ...]
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Other:
    """Anything else: which columns it looks at is known, what it makes of them is not.

    `sure` is False where it names columns that were not found.
    """

    columns: frozenset[int]
    text: str = ""
    sure: bool = True
    type: str | None = None


Expr: TypeAlias = Ref | Const | Call | Other
COALESCE = "coalesce({}, {})"


@dataclass(frozen=True, slots=True)
class Equal:
    """`left = right`, or `<=>` if null_safe, of total expressions of types that compare without loss."""

    left: Expr
    right: Expr
    null_safe: bool = False


Conjunct: TypeAlias = Equal | Other


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate: `function` is the lower-case name, `argument` None for COUNT(*) and where there are several."""

    function: str
    argument: Expr | None
    text: str
    plain: bool = True  # neither DISTINCT nor FILTER nor ORDER BY, at most one argument
    type: str | None = None


# -- operators


@dataclass(frozen=True)
class Scan:
    """A reference. `occurrence` counts the references of the text; a WITH query that is used twice has leaves alike."""

    occurrence: int
    table: str
    reference: Reference | None
    columns: tuple[int, ...]
    names: tuple[str, ...]
    key: tuple[str, ...] = ()  # of the table within one part, if one is known


@dataclass(frozen=True)
class Filter:
    child: Node
    conjuncts: tuple[Conjunct, ...]
    whole: tuple[Node, ...] = ()

    @property
    def columns(self) -> tuple[int, ...]:
        return self.child.columns


@dataclass(frozen=True)
class Project:
    child: Node
    items: tuple[tuple[int, Expr], ...]
    whole: tuple[Node, ...] = ()

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(column for column, _ in self.items)


JoinKind = Literal["inner", "left", "full", "semi", "anti"]


@dataclass(frozen=True)
class Join:
    """RIGHT is LEFT with its sides exchanged: columns are numbers, so their order does not count."""

    kind: JoinKind
    left: Node
    right: Node
    on: tuple[Conjunct, ...] = ()

    @property
    def columns(self) -> tuple[int, ...]:
        return self.left.columns if self.kind in ("semi", "anti") else self.left.columns + self.right.columns


@dataclass(frozen=True)
class Group:
    """GROUP BY. Without keys there is one row, always; `sets`: ROLLUP, CUBE or GROUPING SETS."""

    child: Node
    keys: tuple[tuple[int, Expr], ...]
    aggregates: tuple[tuple[int, Aggregate], ...]
    sets: bool = False
    whole: tuple[Node, ...] = ()

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(column for column, _ in (*self.keys, *self.aggregates))


@dataclass(frozen=True)
class Over:
    """One window function: what it is partitioned by. `first`: it is ROW_NUMBER()."""

    by: tuple[Expr, ...]
    text: str
    first: bool = False


@dataclass(frozen=True)
class Window:
    child: Node
    items: tuple[tuple[int, Over], ...]
    whole: tuple[Node, ...] = ()

    @property
    def columns(self) -> tuple[int, ...]:
        return (*self.child.columns, *(column for column, _ in self.items))


SetKind = Literal["union all", "union", "except", "except all", "intersect", "intersect all"]


@dataclass(frozen=True)
class SetOp:
    """By position: column n of the result is `left`'s n-th and `right`'s n-th. `same`: their types compare without loss."""

    kind: SetKind
    left: Node
    right: Node
    columns: tuple[int, ...]
    sides: tuple[tuple[Ref, Ref], ...]
    same: tuple[bool, ...]


@dataclass(frozen=True)
class Distinct:
    child: Node

    @property
    def columns(self) -> tuple[int, ...]:
        return self.child.columns


@dataclass(frozen=True)
class Limit:
    child: Node

    @property
    def columns(self) -> tuple[int, ...]:
        return self.child.columns


@dataclass(frozen=True)
class Opaque:
    """Not understood: its references are read whole. `start` is the place in the text."""

    why: str
    children: tuple[Node, ...]
    columns: tuple[int, ...] = ()
    start: int = 0


Node: TypeAlias = Scan | Filter | Project | Join | Group | Window | SetOp | Distinct | Limit | Opaque


@dataclass(frozen=True)
class Tree:
    """A query's tree: `names` and `types` of its result in order, `labels` of columns for people.

    `places` says where an operator stands in the text, by id of the operator.
    """

    root: Node
    names: tuple[str, ...]
    types: tuple[str | None, ...]
    labels: dict[int, str]
    places: dict[int, int]

    def place(self, node: Node) -> int:
        return node.start if isinstance(node, Opaque) else self.places.get(id(node), 0)


def children(node: Node) -> tuple[Node, ...]:
    """What an operator reads row by row; not its subqueries, which are in `whole`."""
    if isinstance(node, Scan):
        return ()
    if isinstance(node, Opaque):
        return node.children
    if isinstance(node, Join | SetOp):
        return (node.left, node.right)
    return (node.child,)


def whole(node: Node) -> tuple[Node, ...]:
    """Subqueries in an operator's expressions: their references are read whole."""
    return node.whole if isinstance(node, Filter | Project | Group | Window) else ()


def walk(node: Node) -> Iterator[Node]:
    yield node
    for child in (*children(node), *whole(node)):
        yield from walk(child)


def columns_of(expr: Expr) -> frozenset[int]:
    if isinstance(expr, Ref):
        return frozenset([expr.column])
    if isinstance(expr, Call):
        return frozenset(column for arg in expr.args for column in columns_of(arg))
    return expr.columns if isinstance(expr, Other) else frozenset()


def is_total(expr: Expr) -> bool:
    """Whether it may be evaluated on any row."""
    return not isinstance(expr, Other)


def substitute(expr: Expr, values: dict[int, Expr]) -> Expr | None:
    """The expression with columns replaced; None if a column has no total value."""
    if isinstance(expr, Ref):
        found = values.get(expr.column)
        return found if found is not None and is_total(found) else None
    if isinstance(expr, Call):
        args = [substitute(arg, values) for arg in expr.args]
        return Call(expr.sql, tuple(a for a in args if a is not None), expr.type) if None not in args else None
    return expr if isinstance(expr, Const) else None


def conjunct_columns(conjunct: Conjunct) -> frozenset[int]:
    if isinstance(conjunct, Equal):
        return columns_of(conjunct.left) | columns_of(conjunct.right)
    return conjunct.columns
