"""Aggregate calls in an expression, found in the text: `SUM(x) FILTER (WHERE y > 0) / COUNT(*)`."""

from __future__ import annotations

from dataclasses import dataclass

from partwise.sql.parse import SqlProblem, TranslationError
from partwise.sql.text import Piece, Token, one_line

#: Other spellings of the same aggregate.
_NAMES = {
    "every": "bool_and", "some": "bool_or", "any": "bool_or", "first_value": "first", "last_value": "last",
    "arg_max": "max_by", "arg_min": "min_by", "mean": "avg", "variance": "var_samp", "stddev": "stddev_samp",
    "std": "stddev_samp", "percentile_approx": "approx_percentile", "countif": "count_if",
}  # fmt: skip
SPELLINGS = frozenset(_NAMES)
SUPPORTED = (
    "count", "sum", "avg", "min", "max", "bool_and", "bool_or", "first", "last", "max_by", "min_by", "count_if",
    "var_samp", "var_pop", "stddev_samp", "stddev_pop", "covar_samp", "covar_pop", "corr", "percentile", "median",
    "approx_count_distinct", "approx_percentile", "percentile_cont", "percentile_disc",
)  # fmt: skip
#: With their first argument behind: PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x).
_ORDERED = ("percentile_cont", "percentile_disc")
_KNOWN_ELSEWHERE = (
    "any_value", "array_agg", "bit_and", "bit_or", "bit_xor", "collect_list", "collect_set", "count_min_sketch",
    "grouping", "grouping_id", "histogram_numeric", "hll_sketch_agg", "hll_union_agg", "kurtosis", "listagg", "mode",
    "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2",
    "regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "skewness", "string_agg", "try_avg", "try_sum",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """`name` in its usual spelling; `start`..`end` covers FILTER and IGNORE NULLS too."""

    name: str
    args: tuple[Piece, ...]
    distinct: bool
    filter: Piece | None
    ignore_nulls: bool
    start: int
    end: int

    @property
    def text(self) -> str:
        """As people write it, for telling of it."""
        args = [one_line(arg.text) for arg in self.args]
        ordered = f" WITHIN GROUP (ORDER BY {args.pop(0)})" if self.name in _ORDERED else ""
        inside = ("DISTINCT " if self.distinct else "") + ", ".join(args)
        where = f" FILTER (WHERE {one_line(self.filter.text)})" if self.filter is not None else ""
        return f"{self.name.upper()}({inside})" + ordered + where + (" IGNORE NULLS" if self.ignore_nulls else "")

    @property
    def star(self) -> bool:
        return len(self.args) == 1 and self.args[0].text == "*"


def calls(piece: Piece) -> list[Call]:
    """Every aggregate call, outermost, in order."""
    found: list[Call] = []
    tokens = piece.tokens
    at = 0
    while at + 1 < len(tokens):
        name = tokens[at].text.strip("`").lower()
        name = _NAMES.get(name, name)
        before = tokens[at - 1].keyword if at else ""
        called = (
            tokens[at + 1].text == "(" and not tokens[at].dotted and before not in ("LIKE", "ILIKE")
        )  # LIKE ANY (...)
        if called and name in _KNOWN_ELSEWHERE:
            raise TranslationError(
                SqlProblem(tokens[at].start, "unsupported-aggregate", f"{tokens[at].upper} is not supported here",
                        f"supported: {', '.join(SUPPORTED).upper()}")
            )  # fmt: skip
        if called and name in SUPPORTED:
            call, at = _call(piece, tokens, at, name)
            found.append(call)
        else:
            at += 1
    return found


def _call(piece: Piece, tokens: tuple[Token, ...], at: int, name: str) -> tuple[Call, int]:
    close = _closing(tokens, at + 1)
    inside = piece.cut(tokens[at + 1].end, tokens[close].start)
    distinct = bool(inside.tokens) and inside.tokens[0].upper == "DISTINCT"
    if distinct:
        inside = inside.cut(inside.tokens[0].end, inside.offset + len(inside.text))
        if inside.text == "*" or inside.text.endswith(".*"):
            raise TranslationError(
                SqlProblem(inside.offset, "unsupported-aggregate", f"'{inside.text}' is not allowed after DISTINCT",
                        "name the columns: COUNT(DISTINCT a, b)")
            )  # fmt: skip
    inside, ignore = _ignoring(inside) if name in ("first", "last") else (inside, False)
    nested = calls(inside)
    if nested:
        raise TranslationError(
            SqlProblem(nested[0].start, "unsupported-aggregate", "an aggregate is not allowed inside another one")
        )
    condition: Piece | None = None
    ordered: list[Piece] = []
    end = close
    while end + 1 < len(tokens):
        word = tokens[end + 1].upper
        if word == "FILTER" and end + 2 < len(tokens) and tokens[end + 2].text == "(":
            last = _closing(tokens, end + 2)
            if tokens[end + 3].upper != "WHERE" or last < end + 5:
                raise TranslationError(
                    SqlProblem(tokens[end + 3].start, "bad-expression", "FILTER takes WHERE and a condition",
                            "write FILTER (WHERE condition)")
                )  # fmt: skip
            condition = piece.cut(tokens[end + 3].end, tokens[last].start)  # after WHERE
            end = last
        elif word in ("IGNORE", "RESPECT") and end + 2 < len(tokens) and tokens[end + 2].upper == "NULLS":
            ignore, end = word == "IGNORE", end + 2
        elif word in ("IGNORE NULLS", "RESPECT NULLS"):
            ignore, end = word == "IGNORE NULLS", end + 1
        elif word == "WITHIN" and name in _ORDERED and not ordered:
            ordered, end = _within(piece, tokens, end + 1, name)
        elif word in ("OVER", "WITHIN GROUP", "WITHIN"):
            raise TranslationError(
                SqlProblem(tokens[end + 1].start, "unsupported-aggregate", f"{word} is not supported here",
                        "aggregates are taken over the window or the matched rows; PERCENTILE(x, 0.5) for WITHIN GROUP")
            )  # fmt: skip
        else:
            break
    if name in _ORDERED and not ordered:
        raise TranslationError(_bad_order(tokens[at].start, name))
    if ignore and name not in ("first", "last"):
        raise TranslationError(
            SqlProblem(tokens[at].start, "unsupported-aggregate", f"{tokens[at].upper} does not take IGNORE NULLS",
                    "FIRST and LAST do; others leave out NULL by themselves")
        )  # fmt: skip
    args = (*ordered, *inside.split())
    return Call(name, args, distinct, condition, ignore, tokens[at].start, tokens[end].end), end + 1


def _ignoring(inside: Piece) -> tuple[Piece, bool]:
    """`FIRST(x IGNORE NULLS)` is `FIRST(x) IGNORE NULLS`."""
    words = [(t.upper, t.start) for t in inside.tokens[-2:]]
    for said, ignore in (("IGNORE NULLS", True), ("RESPECT NULLS", False)):
        for last in (words, words[-1:]):
            if last and " ".join(word for word, _ in last) == said:
                return inside.cut(inside.offset, last[0][1]), ignore
    return inside, False


def _within(piece: Piece, tokens: tuple[Token, ...], at: int, name: str) -> tuple[list[Piece], int]:
    """What stands in `WITHIN GROUP (ORDER BY x)`, and where that ends."""
    if [token.upper for token in tokens[at + 1 : at + 4]] == ["GROUP", "(", "ORDER BY"]:
        end = _closing(tokens, at + 2)
        last = tokens[end - 1]
        by = piece.cut(tokens[at + 3].end, last.start if last.upper == "ASC" else tokens[end].start).split()
        if len(by) == 1 and last.upper != "DESC":
            return by, end
    raise TranslationError(_bad_order(tokens[at].start, name))


def _bad_order(at: int, name: str) -> SqlProblem:
    hint = "write PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x); for ORDER BY x DESC take 0.1 of x"
    return SqlProblem(
        at, "unsupported-aggregate", f"{name.upper()} takes WITHIN GROUP and one expression, ascending", hint
    )


def _closing(tokens: tuple[Token, ...], opening: int) -> int:
    for at in range(opening + 1, len(tokens)):
        if tokens[at].text == ")" and tokens[at].depth == tokens[opening].depth:
            return at
    raise TranslationError(SqlProblem(tokens[opening].start, "bad-expression", "'(' is not closed by ')'"))
