"""A query for the largest keys of a part: one grouped pass over what the view itself reads.

FROM and WHERE stay as they are written, so joins count as they do in the view. Per key and summed column of the view
it adds up the absolute values of what goes into the aggregate: no row of the view can hold more. The `keep` largest
keys come out one by one, all others as one row with the most that any of them has.

Sums are of millionths, rounded up, as whole numbers: doubles added in another order would differ, a part must be the same
whenever it is computed, and decimals take several times as long. Only the rows that come out are decimals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from partwise.sql.text import Piece, Token, plain, quoted
from partwise.sql.types.names import INTEGERS

#: What larger values come out as: they have no useful bound.
HUGE = 10**23
_KIND = "DECIMAL(38,6)"
#: Millionths that 64 bits can hold; a sum that goes beyond is NULL.
_MOST, _MILLIONTHS = 9 * 10**18, 10**6
_ROWS = "1"  # what COUNT adds up
_ENDS = frozenset(
    ["GROUP BY", "HAVING", "QUALIFY", "ORDER BY", "SORT BY", "CLUSTER BY", "DISTRIBUTE BY", "LIMIT", "OFFSET", "WINDOW"]
)
_SETS = frozenset(["UNION", "EXCEPT", "INTERSECT", "MINUS"])
_AGGREGATES = frozenset(["SUM", "MIN", "MAX", "AVG", "MEAN", "COUNT"])


class NotMeasured(Exception):
    """A column of the view that is neither an aggregate of what a key has nor a column of the inputs."""


@dataclass(frozen=True)
class SizesQuery:
    """`sized` are the columns of the view of which there is a bound, `summed` those that are no counts."""

    text: str
    sized: tuple[str, ...]
    summed: tuple[str, ...] = ()


def sizes_query(
    text: str,
    names: Sequence[str],
    types: Mapping[str, str | None],
    key: Sequence[str],
    outliers: str | None,
    keep: int,
    listed: str | None,
) -> SizesQuery | None:
    """None where the text is not one SELECT that shows the key. `listed` is a condition on keys that are exact anyway.

    `outliers` is a column of the view or of what it reads. Raises NotMeasured.
    """
    found = _select(text)
    if found is None:
        return None
    head, items, rest, grouped = found
    if len(items) != len(names) or any(
        "*" in [t.text for t in item.tokens][:3] and len(item.tokens) <= 3 for item in items
    ):
        return None
    bodies = {name: _body(item, name) for name, item in zip(names, items, strict=True)}
    made_here = {plain(name) for name, body in bodies.items() if plain(body.text.rpartition(".")[2]) != plain(name)}
    if any(_uses(bodies[name], made_here) or _is_windowed(bodies[name]) for name in key):
        return None
    measured = {
        name: argument
        for name, body in bodies.items()
        if name not in key and (argument := _argument(body, types.get(name), grouped, made_here)) is not None
    }
    if outliers is not None and outliers not in measured:
        body = bodies.get(outliers)
        if body is not None and not _is_column(body):
            raise NotMeasured(outliers)
        measured[outliers] = quoted(outliers) if body is None else body.text
    columns = [f"{bodies[name].text} AS key_{n}" for n, name in enumerate(key)]
    columns += [f"{argument} AS value_{n}" for n, argument in enumerate(measured.values()) if argument != _ROWS]
    keys = ", ".join(f"key_{n}" for n in range(len(key)))
    sums = [_sum(n, argument) for n, argument in enumerate(measured.values())]
    inner = f"SELECT {', '.join([keys, 'count(*) AS rows', *sums])} FROM (\n{head}SELECT {', '.join(columns)}\n{rest}\n) GROUP BY {keys}"
    if listed is not None:
        inner = f"SELECT * FROM ({inner}) WHERE NOT ({listed})"
    shown = ["max(rows) AS rows"]
    shown += [
        f"{_largest(n, argument)} AS {quoted(f'size_{name}')}, min(least_{n}) AS {quoted(f'least_{name}')}"
        for n, (name, argument) in enumerate(measured.items())
    ]
    summed = tuple(name for name, argument in measured.items() if argument != _ROWS)
    if not keep:
        return SizesQuery(f"SELECT 1 AS place, {', '.join(shown)} FROM (\n{inner}\n)", tuple(measured), summed)
    assert outliers is not None
    by = f"size_{list(measured).index(outliers)}"
    order = ", ".join([f"{by} DESC", *(f"key_{n} NULLS FIRST" for n in range(len(key)))])
    own = [f"max(CASE WHEN place <= {keep} THEN key_{n} END) AS key_{n}" for n in range(len(key))]
    return SizesQuery(
        f"SELECT least(place, {keep + 1}) AS place, {', '.join([*own, *shown])} FROM (\n"
        f"SELECT *, row_number() OVER (ORDER BY {order}) AS place FROM (\n{inner}\n)\n) GROUP BY least(place, {keep + 1})",
        tuple(measured),
        summed,
    )


def _sum(n: int, argument: str) -> str:
    """Of one key: the sum of absolute values, and the least value."""
    if argument == _ROWS:
        return f"count(*) AS size_{n}, 1D AS least_{n}"
    value = f"CAST(value_{n} AS DOUBLE)"
    # NaN is larger than any number.
    scaled = (
        f"CASE WHEN {value} IS NULL THEN 0 WHEN abs({value}) < {_MOST // _MILLIONTHS}D "
        f"THEN CAST(ceil(abs({value}) * {_MILLIONTHS}D) AS BIGINT) ELSE {_MOST} END"
    )
    return f"coalesce(try_sum({scaled}), {_MOST}) AS size_{n}, min({value}) AS least_{n}"


def _largest(n: int, argument: str) -> str:
    """Of all keys, as a decimal."""
    if argument == _ROWS:
        return f"CAST(max(size_{n}) AS {_KIND})"
    return (
        f"CAST(CASE WHEN max(size_{n}) >= {_MOST} THEN CAST({HUGE} AS {_KIND}) "
        f"ELSE CAST(CAST(max(size_{n}) AS DECIMAL(20,0)) * 0.000001 AS {_KIND}) END AS {_KIND})"
    )


def _select(text: str) -> tuple[str, list[Piece], str, bool] | None:
    """What stands before SELECT (WITH), its list, FROM and WHERE, and whether rows are grouped."""
    whole = Piece.of_query(text)
    top = [t for t in whole.tokens if t.depth == 0]
    if any(t.keyword in _SETS for t in top):
        return None
    start = next((t for t in top if t.keyword == "SELECT"), None)
    origin = next((t for t in top if t.keyword == "FROM"), None)
    if start is None or origin is None:
        return None
    end = next((t.start for t in top if t.keyword in _ENDS and t.start > origin.start), len(whole.text))
    listed = whole.cut(start.end, origin.start)
    if listed.tokens and listed.tokens[0].keyword == "DISTINCT":
        listed = whole.cut(listed.tokens[0].end, origin.start)
    before = whole.text[: start.start].strip()
    grouped = any(t.keyword == "GROUP BY" for t in top)
    return (f"{before}\n" if before else ""), listed.split(), whole.text[origin.start : end].rstrip(), grouped


def _body(item: Piece, name: str) -> Piece:
    """Without its alias."""
    tokens = item.tokens
    if len(tokens) > 2 and tokens[-2].keyword == "AS":
        return item.cut(item.offset, tokens[-2].start)
    if len(tokens) > 1 and tokens[-1].word and not tokens[-1].dotted and plain(tokens[-1].text) == plain(name):
        return item.cut(item.offset, tokens[-1].start)
    return item


def _is_column(piece: Piece) -> bool:
    """`amount` or `o.amount`."""
    return all(t.word or t.text == "." for t in piece.tokens)


def _uses(piece: Piece, names: set[str]) -> bool:
    """Whether it names a column of the same SELECT list, which is not there without that list."""
    return any(t.word and not t.dotted and plain(t.text) in names for t in piece.tokens)


def _is_windowed(piece: Piece) -> bool:
    return any(t.keyword == "OVER" for t in piece.tokens)


def _argument(body: Piece, kind: str | None, grouped: bool, made_here: set[str]) -> str | None:
    """What is added up for a column: of an aggregate its argument, of a plain column of numbers itself."""
    if _is_windowed(body) or _uses(body, made_here):
        return None
    call = _whole_call(body.tokens)
    if not grouped:
        return body.text if call is None and _is_number(kind) else None
    if call is None:
        return None
    inside = body.cut(body.tokens[1].end, body.tokens[-1].start)
    if call == "COUNT":
        return _ROWS
    if not inside.tokens or inside.tokens[0].keyword in ("DISTINCT", "ALL") or len(inside.split()) != 1:
        return None
    return inside.text if _is_number(kind) or call in ("SUM", "AVG", "MEAN") else None


def _whole_call(tokens: Sequence[Token]) -> str | None:
    """The aggregate that the whole expression is."""
    if len(tokens) < 3 or tokens[0].keyword not in _AGGREGATES or tokens[1].text != "(" or tokens[-1].text != ")":
        return None
    return tokens[0].keyword if all(t.depth > 0 for t in tokens[2:-1]) else None


def _is_number(kind: str | None) -> bool:
    return kind is not None and (kind in INTEGERS or kind in ("float", "double") or kind.startswith("decimal("))
