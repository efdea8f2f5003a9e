"""SQL of other databases that our parser reads and Spark does not, and aggregates at places where Spark allows none.

Only what Spark refuses in any case: what depends on types or settings, Spark itself says at the first run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from partwise.sql.columns import place
from partwise.sql.parse import SqlProblem

if TYPE_CHECKING:
    from sqlglot import exp

    from partwise.sql.tokens import Token

#: By the name of sqlglot's class: what it is, and what to write in Spark.
_FORMS = {
    "SimilarTo": ("SIMILAR TO", "RLIKE takes a regular expression"),
    "Glob": ("GLOB", "LIKE and RLIKE compare with a pattern"),
    "Overlaps": ("OVERLAPS", "compare the ends: a.start < b.end AND b.start < a.end"),
    "AtTimeZone": ("AT TIME ZONE", "from_utc_timestamp(t, 'Europe/Berlin') gives the time of a zone"),
    "National": ("N'...'", "write the text without N"),
    "Unnest": ("UNNEST", "explode, in SELECT or behind LATERAL VIEW, gives a row for each element"),
    "Parameter": ("a parameter", "write the value itself"),
    "Fetch": ("FETCH FIRST", "write LIMIT"),
    "Into": ("SELECT INTO", "remove INTO: Partwise itself creates and fills the table"),
    "Lock": ("FOR UPDATE", "remove it"),
    "Connect": ("CONNECT BY", "a view may read its own earlier parts: v[j-1]"),
    "MatchRecognize": ("MATCH_RECOGNIZE", "write PATTERN [a, b+] under query:"),
}
_JOINS = {
    "ASOF": "ASOF JOIN",
    "POSITIONAL": "POSITIONAL JOIN",
    "STRAIGHT": "STRAIGHT_JOIN",
    "STRAIGHT_JOIN": "STRAIGHT_JOIN",
}


def foreign(tree: exp.Expr, tokens: tuple[Token, ...]) -> Iterator[SqlProblem]:
    """Forms that Spark's parser refuses."""
    from sqlglot import exp

    for node in tree.walk():
        if (form := _FORMS.get(type(node).__name__)) is not None:
            yield _refused(node, *form)
        elif isinstance(node, exp.Between) and node.args.get("symmetric"):
            yield _refused(node, "BETWEEN SYMMETRIC", "use LEAST and GREATEST of both bounds")
        elif isinstance(node, exp.Distinct) and node.args.get("on") is not None:
            hint = "MAX_BY(value, order) with GROUP BY, or ROW_NUMBER() in a subquery, takes one row of each group"
            yield _refused(node, "DISTINCT ON", hint)
        elif isinstance(node, exp.Placeholder) and node.args.get("widget"):
            yield _refused(node, *_FORMS["Parameter"])
        elif isinstance(node, exp.Star) and node.args.get("replace"):
            yield _refused(node, "* REPLACE", "write * EXCEPT (x), and the new column behind it")
        elif isinstance(node, exp.All | exp.Any) and isinstance(node.this, exp.Query):
            yield _refused(node, f"{type(node).__name__.upper()} with a subquery", "compare with its MAX or MIN")
        elif isinstance(node, exp.Join) and (name := _JOINS.get(node.method.upper()) or _JOINS.get(node.kind.upper())):
            yield _refused(node, name, "join on a condition")
    yield from _words(tokens)


def _words(tokens: tuple[Token, ...]) -> Iterator[SqlProblem]:
    """What the tree does not show."""
    for at, token in enumerate(tokens[:-1]):
        name, following = token.token_type.name, tokens[at + 1]
        if name == "ALIAS" and following.token_type.name == "STRING":
            message = f"Spark takes no text as the name of a column: {following.text!r}"
            hint = "write the name without quotes, or in back quotes"
            yield SqlProblem(following.start, "sql-syntax", message, hint, end=following.end + 1)
        elif name == "COMMA" and following.token_type.name in ("FROM", "R_PAREN", "WHERE", "GROUP_BY", "ORDER_BY"):
            message = f"a comma too many before '{following.text}'"
            yield SqlProblem(token.start, "sql-syntax", message, "remove it", end=token.end + 1)
        elif name == "SELECT" and following.token_type.name == "FROM":
            yield SqlProblem(
                token.start, "sql-syntax", "SELECT without columns", "name them, or write *", end=token.end + 1
            )
        elif name in ("ISNULL", "NOTNULL") and _behind_value(tokens, at):
            hint = f"write {'IS NULL' if name == 'ISNULL' else 'IS NOT NULL'}"
            yield SqlProblem(token.start, "sql-syntax", f"Spark has no {name} behind a value", hint, end=token.end + 1)
        elif name == "VAR" and not token.text.isascii():
            message = f"Spark wants back quotes around {token.text}: it has other letters than a to z"
            yield SqlProblem(token.start, "sql-syntax", message, f"write `{token.text}`", end=token.end + 1)


def _behind_value(tokens: tuple[Token, ...], at: int) -> bool:
    """Neither a function nor the name of a table."""
    before, after = tokens[at - 1].token_type.name if at else "", tokens[at + 1].token_type.name
    return before in ("VAR", "IDENTIFIER", "R_PAREN", "NUMBER", "STRING") and after not in (
        "L_PAREN",
        "L_BRACKET",
        "DOT",
    )


def misplaced(tree: exp.Expr) -> tuple[SqlProblem, ...]:
    """Aggregates and window functions where no query can have them, and columns beside an aggregate without GROUP BY."""
    try:
        return tuple(_misplaced(tree))
    except RecursionError:
        return ()  # nested deeper than anybody writes by hand: Spark says at the first run what it thinks of it


def _misplaced(tree: exp.Expr) -> Iterator[SqlProblem]:
    from sqlglot import exp

    for select in tree.find_all(exp.Select):
        if select.find_ancestor(exp.Having) is not None:
            continue  # what stands there may be an aggregate of the query around it
        for clause, name in (("where", "WHERE"), ("group", "GROUP BY")):
            for call in _calls(select.args.get(clause)):
                what = "window functions" if isinstance(call, exp.Window) else "aggregates"
                hint = (
                    "HAVING compares aggregates"
                    if what == "aggregates"
                    else "use a subquery, and compare outside of it"
                )
                yield _wrong(call, f"{what} are not allowed in {name}", hint)
        for item in select.expressions:
            for call in _calls(item):
                inner = next((c for c in _calls_inside(call) if not isinstance(c, exp.Window)), None)
                if inner is not None and not isinstance(call, exp.Window):
                    yield _wrong(
                        inner, "an aggregate stands inside an aggregate", "compute the inner one in a subquery"
                    )
        yield from _ungrouped(select)


def _ungrouped(select: exp.Select) -> Iterator[SqlProblem]:
    from sqlglot import exp

    if select.args.get("group") is not None:
        return
    aggregates = [c for item in select.expressions for c in _calls(item) if not isinstance(c, exp.Window)]
    if not aggregates:
        return
    aliases: set[str] = set()
    for item in select.expressions:
        value = item.this if isinstance(item, exp.Alias) else item
        for column in _outside(value):
            if not column.table and column.name.lower() in aliases:
                continue
            message = f"{column.sql()} stands beside an aggregate, and there is no GROUP BY"
            yield _wrong(column, message, f"add GROUP BY {column.sql()}, or take MAX({column.sql()})")
            return
        if item.alias:
            aliases.add(item.alias.lower())


def _calls(root: exp.Expr | None) -> Iterator[exp.Expr]:
    """Outermost aggregates and window functions, not those of subqueries."""
    if root is not None:
        yield from _calls_at(root)


def _calls_inside(call: exp.Expr) -> Iterator[exp.Expr]:
    for child in call.iter_expressions():
        yield from _calls_at(child)


def _calls_at(node: exp.Expr) -> Iterator[exp.Expr]:
    from sqlglot import exp

    if isinstance(node, exp.Query | exp.Lambda):
        return
    if isinstance(node, exp.Window) or _aggregates(node):
        yield node
        return
    for child in node.iter_expressions():
        yield from _calls_at(child)


def _outside(node: exp.Expr) -> Iterator[exp.Column]:
    """Columns that are surely in no aggregate, window or subquery."""
    from sqlglot import exp

    if isinstance(node, exp.Column):
        if not isinstance(node.this, exp.Star):
            yield node
    elif isinstance(node, exp.Paren | exp.Neg | exp.Cast | exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Coalesce):
        # Other functions may be aggregates that are not known here.
        for child in node.iter_expressions():
            yield from _outside(child)


def _aggregates(node: exp.Expr) -> bool:
    from sqlglot import exp

    return isinstance(
        node,
        exp.Sum | exp.Count | exp.Avg | exp.Min | exp.Max | exp.CountIf | exp.Stddev | exp.Variance | exp.ArrayAgg
        | exp.ArgMax | exp.ArgMin | exp.ApproxDistinct | exp.Median,
    )  # fmt: skip


def _refused(node: exp.Expr, what: str, hint: str) -> SqlProblem:
    start, end = place(node)
    return SqlProblem(start, "sql-syntax", f"Spark has no {what}" if what != "a parameter" else
                      "this is a parameter, and nothing gives it a value", hint, end=end)  # fmt: skip


def _wrong(node: exp.Expr, message: str, hint: str) -> SqlProblem:
    start, end = place(node)
    return SqlProblem(start, "sql-syntax", message, hint, end=end)
