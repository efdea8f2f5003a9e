"""Which parts of each table an ad-hoc query may read, as far as its text tells.

Only what is certain narrows: comparisons of `part_timestamp` or `part` with literals that every row of the result must
fulfil, and equality of these columns between joined tables. Everything else means all parts. So the answer may be too
large, never too small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from partwise.parts import FOREVER, Parts

EVERYTHING = Parts.of((-FOREVER, FOREVER))
_COLUMNS = ("part", "part_timestamp")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SIDES, _KINDS = ("", "LEFT", "RIGHT", "FULL"), ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI")
_MICRO = timedelta(microseconds=1)
#: A column of a table in FROM: its alias and name.
_Key = tuple[str, str]


def parts_read(sql: str, lengths: Mapping[str, int], dialect: str = "duckdb") -> dict[str, Parts]:
    """For each of these tables (with the length of their parts in seconds) the parts that the query may read."""
    names = {name.lower(): name for name in lengths}
    try:
        trees = [tree for tree in sqlglot.parse(sql, read=dialect) if tree is not None]
    except SqlglotError:
        return dict.fromkeys(lengths, EVERYTHING)
    found: dict[str, Parts] = {}
    for table in (node for tree in trees for node in tree.find_all(exp.Table)):
        name = names.get(table.name.lower())
        if name is not None:
            found[name] = found.get(name, Parts()) | _of_table(table, lengths[name])
    # Named in the text, but nowhere as a table: perhaps in a way that the reader of SQL does not know.
    return {name: found.get(name, EVERYTHING) for name in lengths}


def _of_table(table: exp.Table, length: int) -> Parts:
    select = table.parent.parent if isinstance(table.parent, exp.From | exp.Join) else None
    extra = [key for key, value in table.args.items() if value and key not in ("this", "alias", "db", "catalog")]
    if not isinstance(select, exp.Select) or extra or not length:
        return EVERYTHING
    scope = _scope(select)
    if scope is None:
        return EVERYTHING
    alias = table.alias_or_name.lower()
    size = length * 1_000_000
    starts = Parts.of(
        *(
            (-FOREVER if lo <= -FOREVER else -(-lo // size), FOREVER if hi >= FOREVER else hi // size)
            for lo, hi in scope.of((alias, "part_timestamp")).ranges
        )
    )
    return scope.of((alias, "part")) & starts


@dataclass
class _Scope:
    """What the rows of one SELECT fulfil: `part` as indexes, `part_timestamp` as microseconds since 1970."""

    fulfil: dict[_Key, Parts] = field(default_factory=dict)
    alone: dict[_Key, Parts] = field(default_factory=dict)  # of a joined table only, not of what it equals
    same: list[set[_Key]] = field(default_factory=list)

    def of(self, key: _Key) -> Parts:
        found = self.alone.get(key, EVERYTHING)
        for other in next((group for group in self.same if key in group), {key}):
            found &= self.fulfil.get(other, EVERYTHING)
        return found

    def equal(self, *keys: _Key) -> None:
        groups = [group for group in self.same if group & set(keys)]
        self.same = [group for group in self.same if group not in groups] + [set(keys).union(*groups)]


def _scope(select: exp.Select) -> _Scope | None:
    """None: nothing is certain."""
    joins: list[exp.Join] = select.args.get("joins") or []
    start = select.args.get("from_") or select.args.get("from")
    if start is None or any(select.args.get(key) for key in ("laterals", "sample", "pivots")):
        return None
    if any(join.side not in _SIDES or join.kind not in _KINDS or join.method for join in joins):
        return None  # an as-of join picks one of all rows before WHERE looks at it
    aliases = [start.this.alias_or_name.lower(), *(join.this.alias_or_name.lower() for join in joins)]
    if len(set(aliases)) != len(aliases):
        return None
    scope = _Scope()
    for at, join in enumerate(joins):
        _join(scope, join, aliases[: at + 1], aliases[at + 1])
    where = select.args.get("where")
    for condition in _conjuncts(where.this if where is not None else None):
        _condition(scope, condition, aliases)
    return scope


def _join(scope: _Scope, join: exp.Join, before: list[str], alias: str) -> None:
    for column in join.args.get("using") or ():
        if column.name.lower() in _COLUMNS and len(before) == 1:
            scope.equal((before[0], column.name.lower()), (alias, column.name.lower()), ("", column.name.lower()))
        elif column.name.lower() in _COLUMNS:
            together = ("", column.name.lower())
            if any(together in group for group in scope.same):
                scope.equal(together, (alias, column.name.lower()))
    for condition in _conjuncts(join.args.get("on")):
        keys = _equality(condition)
        if keys is not None and alias in (keys[0][0], keys[1][0]) and keys[0][0] != keys[1][0]:
            scope.equal(*keys)
        elif join.side in ("", "LEFT") and (found := _bounds(condition)) is not None and found[0][0] == alias:
            scope.alone[found[0]] = scope.alone.get(found[0], EVERYTHING) & found[1]


def _condition(scope: _Scope, condition: exp.Expr, aliases: list[str]) -> None:
    if (keys := _equality(condition)) is not None:
        if keys[0][0] in aliases and keys[1][0] in aliases:
            scope.equal(*keys)
    elif (found := _bounds(condition)) is not None:
        (alias, column), parts = found
        key = (aliases[0] if not alias and len(aliases) == 1 else alias, column)
        scope.fulfil[key] = scope.fulfil.get(key, EVERYTHING) & parts


def _conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    if node is None:
        return
    node = node.unnest()
    if isinstance(node, exp.And):
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    else:
        yield node


def _equality(node: exp.Expr) -> tuple[_Key, _Key] | None:
    if not isinstance(node, exp.EQ):
        return None
    left, right = _column(node.left), _column(node.right)
    if left is None or right is None or left[1] != right[1] or not left[0] or not right[0]:
        return None
    return left, right


def _column(node: exp.Expr) -> _Key | None:
    node = node.unnest()
    name = node.name.lower() if isinstance(node, exp.Column) else ""
    return (node.text("table").lower(), name) if name in _COLUMNS else None


_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ,
    exp.GT: exp.LT,
    exp.LT: exp.GT,
    exp.GTE: exp.LTE,
    exp.LTE: exp.GTE,
}


def _bounds(node: exp.Expr) -> tuple[_Key, Parts] | None:
    """A comparison of one of the columns with literals: which values fulfil it."""
    if isinstance(node, exp.Between) and (key := _column(node.this)) is not None:
        low, high = _value(node.args["low"], key), _value(node.args["high"], key)
        if node.args.get("symmetric") or low is None or high is None:
            return None
        return key, Parts.of((low, high))
    if isinstance(node, exp.In) and (key := _column(node.this)) is not None:
        values = [_value(item, key) for item in node.expressions]
        if not values or any(node.args.get(k) for k in ("query", "unnest", "field")) or None in values:
            return None
        return key, Parts.single(*(value for value in values if value is not None))
    if not isinstance(node, exp.Binary) or type(node) not in _FLIPPED:
        return None
    kind: type[exp.Expr] = type(node)
    left, right = node.left, node.right
    if _column(left) is None:
        left, right, kind = right, left, _FLIPPED[kind]
    key = _column(left)
    value = None if key is None else _value(right, key)
    if key is None or value is None:
        return None
    ranges: dict[type[exp.Expr], tuple[int, int]] = {
        exp.EQ: (value, value),
        exp.GT: (value + 1, FOREVER),
        exp.GTE: (value, FOREVER),
        exp.LT: (-FOREVER, value - 1),
        exp.LTE: (-FOREVER, value),
    }
    return key, Parts.of(ranges[kind])


def _value(node: exp.Expr, key: _Key) -> int | None:
    node = node.unnest()
    if key[1] == "part":
        sign = -1 if isinstance(node, exp.Neg) else 1
        node = node.this if isinstance(node, exp.Neg) else node
        return sign * int(node.this) if isinstance(node, exp.Literal) and node.is_int else None
    day = False
    if isinstance(node, exp.Cast):
        day = node.to.this == exp.DataType.Type.DATE
        if not day and node.to.this not in (*exp.DataType.TEMPORAL_TYPES,):
            return None
        node = node.this
    if not isinstance(node, exp.Literal) or not node.is_string:
        return None
    try:
        moment = datetime.fromisoformat(node.this.strip())
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if day and (moment.hour, moment.minute, moment.second, moment.microsecond) != (0, 0, 0, 0):
        return None
    return (moment - _EPOCH) // _MICRO
