"""Columns, conditions and aggregates in a piece of a query, for verify alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partwise.sql.parse import dialect, tokenise
from spark_jobs.verify.clauses import Cut, QueryCut, SelectItem, Word, name_of

if TYPE_CHECKING:
    from partwise.sql.tokens import Token

_BEFORE = "SELECT "
#: Words that only begin statements are names in an expression.
_STATEMENTS = frozenset(["ALTER", "CREATE", "DESCRIBE", "DROP", "GRANT", "INSERT", "REVOKE", "ROLLBACK", "UNCACHE"])
#: Aggregates by every name that they have; both columns as documented.
_AGGREGATES = {
    name: name
    for name in (
        "count", "sum", "avg", "min", "max", "bool_and", "bool_or", "first", "last", "max_by", "min_by", "count_if",
        "var_samp", "var_pop", "stddev_samp", "stddev_pop", "covar_samp", "covar_pop", "corr", "percentile", "median",
        "approx_count_distinct", "approx_percentile", "percentile_cont", "percentile_disc",
    )
} | {
    "every": "bool_and", "some": "bool_or", "any": "bool_or", "first_value": "first", "last_value": "last",
    "arg_max": "max_by", "arg_min": "min_by", "mean": "avg", "variance": "var_samp", "stddev": "stddev_samp",
    "std": "stddev_samp", "percentile_approx": "approx_percentile", "countif": "count_if",
}  # fmt: skip


@dataclass(frozen=True)
class NamedColumn:
    """A column where it is used: `start`..`end` covers the qualifier and the column, not fields of it."""

    qualifier: str | None
    name: str
    start: int
    end: int


def uses(span: Cut, qualifiers: Collection[str]) -> list[NamedColumn]:
    """`v.x` is column x of v if v is one of `qualifiers`, else field x of column v."""
    from sqlglot import exp

    tokens = [_as_name(token) for token in tokenise(_BEFORE + span.text).tokens[1:]]
    (tree,) = dialect().parser().parse_into(exp.Expr, tokens, _BEFORE + span.text)
    found = []
    for node in tree.find_all(exp.Column):
        names = [part for part in node.parts if isinstance(part, exp.Identifier)]
        if not names:
            continue  # `b.*`
        first = names[0].name.lower()
        qualified = first in qualifiers and len(names) > 1
        column = names[1] if qualified else names[0]
        start, end = (span.start - len(_BEFORE) + m for m in (names[0].meta["start"], column.meta["end"] + 1))
        found.append(NamedColumn(first if qualified else None, column.name.lower(), start, end))
    return sorted(found, key=lambda use: use.start)


def _as_name(token: Token) -> Token:
    from partwise.sql.tokens import TokenType

    if token.token_type.name not in _STATEMENTS:
        return token
    place = {"line": token.line, "col": token.col, "start": token.start, "end": token.end}
    return type(token)(TokenType.VAR, token.text, **place, comments=token.comments)


def conjuncts(span: Cut) -> list[Cut]:
    """What AND connects, outside brackets, CASE and BETWEEN; the whole if OR connects it."""
    cuts: list[Word] = []
    between = 0
    for word in (w for w in span.words if w.depth == 0):
        if word.upper == "OR":
            return [span]
        between += word.upper == "BETWEEN"
        if word.upper == "AND" and between:
            between -= 1
        elif word.upper == "AND":
            cuts.append(word)
    if cuts:
        return [each for piece in span.split(cuts) for each in conjuncts(piece)]
    inner = unwrapped(span)
    return [span] if inner is span else conjuncts(inner)


def unwrapped(span: Cut) -> Cut:
    """Without brackets around the whole."""
    found = span.words
    around = len(found) > 2 and found[0].text == "(" and found[-1].text == ")"
    if around and all(word.depth > 0 for word in found[1:-1]):
        return unwrapped(span.cut(found[0].end, found[-1].start))
    return span


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate, `name` in one spelling; `start`..`end` covers FILTER and IGNORE NULLS, too."""

    name: str
    args: tuple[Cut, ...]
    distinct: bool
    filter: Cut | None
    ignore_nulls: bool
    start: int
    end: int

    @property
    def star(self) -> bool:
        return len(self.args) == 1 and self.args[0].text == "*"


def calls(span: Cut) -> list[AggregateCall]:
    """Every aggregate, in order."""
    found: list[AggregateCall] = []
    for at, word in enumerate(span.words[:-1]):
        name = _AGGREGATES.get(word.text.strip("`").lower())
        opens = span.words[at + 1].text == "(" and not word.dotted
        like = at > 0 and span.words[at - 1].upper in ("LIKE", "ILIKE")  # LIKE ANY (...)
        if name is not None and opens and not like and not (found and word.start < found[-1].end):
            found.append(_call(span, at, name))
    return found


def _call(span: Cut, at: int, name: str) -> AggregateCall:
    found = span.words
    end = _closing(found, at + 1)
    inside = span.cut(found[at + 1].end, found[end].start)
    distinct = bool(inside.words) and inside.words[0].upper == "DISTINCT"
    if distinct:
        inside = inside.cut(inside.words[0].end, inside.end)
    inside, ignore = _without_nulls(inside)
    condition, ordered = None, []
    while end + 1 < len(found):
        rest = [word.upper or word.text for word in found[end + 1 : end + 5]]
        if rest[:2] == ["FILTER", "("]:
            close = _closing(found, end + 2)
            condition, end = span.cut(found[end + 3].end, found[close].start), close
        elif rest[:3] == ["WITHIN", "GROUP", "("]:
            close = _closing(found, end + 3)
            by = span.cut(found[end + 4].end, found[close].start)
            ordered, end = [without_ascending(by)], close
        elif rest[0] in ("IGNORE NULLS", "RESPECT NULLS"):
            ignore, end = rest[0] == "IGNORE NULLS", end + 1
        elif rest[0] in ("IGNORE", "RESPECT") and rest[1:2] == ["NULLS"]:
            ignore, end = rest[0] == "IGNORE", end + 2
        else:
            break
    args = (*ordered, *inside.items())
    return AggregateCall(name, args, distinct, condition, ignore, found[at].start, found[end].end)


def _closing(found: tuple[Word, ...], opening: int) -> int:
    return next(at for at in range(opening + 1, len(found)) if found[at].depth == found[opening].depth)


def _without_nulls(inside: Cut) -> tuple[Cut, bool]:
    """`FIRST(x IGNORE NULLS)` is `FIRST(x) IGNORE NULLS`."""
    for last in (inside.words[-1:], inside.words[-2:]):
        said = " ".join(word.upper for word in last)
        if said in ("IGNORE NULLS", "RESPECT NULLS"):
            return inside.cut(inside.start, last[0].start), said == "IGNORE NULLS"
    return inside, False


def without_ascending(span: Cut) -> Cut:
    last = span.words[-1]
    return span.cut(span.start, last.start) if len(span.words) > 1 and last.upper == "ASC" else span


# -- the SELECT list, GROUP BY and HAVING ------------------------------------------------------------


def column_of(span: Cut, qualifiers: Collection[str]) -> str | None:
    """The column that the whole piece is."""
    span = unwrapped(span)
    found = uses(span, qualifiers) if all(w.name or w.text == "." for w in span.words) else []
    return found[0].name if len(found) == 1 and (found[0].start, found[0].end) == (span.start, span.end) else None


def keys_of(query: QueryCut, columns: Collection[str]) -> list[Cut]:
    """What GROUP BY means: an item by its number or its name, unless a column has that name, or an expression."""
    found = []
    for clause in query.group_by:
        written = unwrapped(clause) if len(unwrapped(clause).items()) == 1 else clause
        named = {name_of(item.alias): item.body for item in query.items if item.alias}
        if written.text.isdigit():
            found.append(query.items[int(written.text) - 1].body)
        elif (name := name_of(written.text)) in named and name not in columns:
            found.append(named[name])
        else:
            found.append(written)
    return found


def calls_in_having(query: QueryCut) -> list[AggregateCall]:
    """Aggregates that HAVING looks at, also by the name of an item."""
    if query.having is None:
        return []
    return [*calls(query.having), *(c for _, _, item in named_in_having(query, ()) for c in calls(item.body))]


def named_in_having(query: QueryCut, keys: Collection[str]) -> Iterator[tuple[int, int, SelectItem]]:
    """Where HAVING names an item of the SELECT list. `keys`: columns that are grouped by, which come first."""
    assert query.having is not None
    inside = [(call.start, call.end) for call in calls(query.having)]
    items = {name_of(item.alias): item for item in query.items if item.alias}
    for use in uses(query.having, ()):
        loose = not any(a <= use.start < b for a, b in inside)
        if loose and use.name in items and use.name not in keys:
            yield use.start, use.end, items[use.name]
