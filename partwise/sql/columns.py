"""Columns: what a query gives, and names in it that no table has.

Silent wherever there is doubt (a star over an unknown table, a struct's field, a lambda's argument):
a false error would stop a view that is right, while Spark finds what is missed here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partwise.spelling import did_you_mean
from partwise.sql.parse import SqlProblem
from partwise.sql.references import PART_COLUMNS

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.optimizer.scope import Scope

_MOST_QUERIES = 200

#: Words that stand for a function, though they look like a column.
_FUNCTIONS = frozenset(
    [
        "current_catalog",
        "current_database",
        "current_date",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_user",
        "grouping__id",
        "localtimestamp",
        "session_user",
        "user",
        "_metadata",
    ]
)

#: Functions that give rows, and names to their columns; some by the names of the parser's classes.
_GENERATORS = frozenset(
    ["explode", "explode_outer", "explodeouter", "posexplode", "posexplode_outer", "posexplodeouter", "inline",
     "inline_outer", "inlineouter", "stack", "json_tuple", "variant_explode", "variant_explode_outer"]
)  # fmt: skip

#: name of a table, lower case -> its columns, None if they are not known
Columns = Callable[[str], tuple[str, ...] | None]


@dataclass(frozen=True, slots=True)
class Output:
    """One column of a result; `name` is None if the query gives it none, offsets as in the text."""

    name: str | None
    start: int
    end: int


def outputs(tree: exp.Expr, columns: Columns) -> tuple[Output, ...] | None:
    """The columns of a query's result in order, stars resolved; None where they are not known for sure."""
    try:
        scope = _scope(tree)
        return _outputs(scope, columns) if scope is not None else None
    except Exception:  # sqlglot's scopes are a convenience; Spark has the last word
        return None


def unknown(tree: exp.Expr, columns: Columns) -> tuple[SqlProblem, ...]:
    """Columns that none of the tables in reach has."""
    try:
        root = _scope(tree)
        return tuple(p for scope in root.traverse() for p in _unknown_in(scope, columns)) if root else ()
    except Exception:
        return ()


def uneven(tree: exp.Expr, columns: Columns) -> tuple[SqlProblem, ...]:
    """Branches of UNION and its like that do not have the same number of columns."""
    from sqlglot import exp

    found: list[SqlProblem] = []
    try:
        root = _scope(tree)
        for scope in root.traverse() if root else ():
            if isinstance(scope.expression, exp.SetOperation) and not scope.expression.args.get("by_name"):
                sides = [_outputs(side, columns) for side in scope.set_operation_scopes]
                counts = [len(side) for side in sides if side]
                if len(counts) == 2 and counts[0] != counts[1]:
                    last = sides[1] or ()
                    message = (
                        f"one side of {scope.expression.key.upper()} has {counts[0]} columns, the other {counts[1]}"
                    )
                    found.append(
                        SqlProblem(
                            last[0].start, "sql-syntax", message, "both sides need the same columns", last[-1].end
                        )
                    )
    except Exception:  # sqlglot's scopes are a convenience; Spark has the last word
        return ()
    return tuple(found)


def ambiguous(tree: exp.Expr, columns: Columns) -> tuple[SqlProblem, ...]:
    """Columns without a table that two tables of a join have."""
    try:
        root = _scope(tree)
        return tuple(p for scope in root.traverse() for p in _ambiguous_in(scope, columns)) if root else ()
    except Exception:
        return ()


def _scope(tree: exp.Expr) -> Scope | None:
    from sqlglot import exp
    from sqlglot.optimizer.scope import build_scope

    # The time that scopes take grows with the square of the number of queries.
    queries = sum(1 for _ in tree.find_all(exp.Query))
    return build_scope(tree) if queries <= _MOST_QUERIES else None


def _outputs(scope: Scope, columns: Columns) -> tuple[Output, ...] | None:
    from sqlglot import exp

    query = scope.expression
    if isinstance(query, exp.SetOperation):
        return _outputs(scope.set_operation_scopes[0], columns) if scope.set_operation_scopes else None
    if not isinstance(query, exp.Select) or query.args.get("operation_modifiers"):
        return None
    found: list[Output] = []
    for item in query.expressions:
        if item.is_star:
            whole = _star(item, scope, columns)
            if whole is None:
                return None
            start, end = place(item)
            found += [Output(name, start, end) for name in whole]
        elif (one := _output(item)) is not None:
            found.append(one)
        else:
            return None
    return tuple(found)


def _output(item: exp.Expr) -> Output | None:
    from sqlglot import exp

    start, end = place(item)
    while isinstance(item, exp.Paren):
        item = item.this
    if isinstance(item, exp.Alias):
        return Output(item.alias, *place(item.args["alias"]))
    if isinstance(item, exp.Column):
        return Output(item.name, start, end)
    if isinstance(item, exp.Dot) or _generates(item):
        return None  # generators name several columns themselves
    if isinstance(item, exp.Binary | exp.Unary | exp.Func | exp.Predicate | exp.Window | exp.Filter | exp.Subquery):
        return Output(None, start, end)
    return None


def _generates(item: exp.Expr) -> bool:
    from sqlglot import exp

    name = item.name.lower() if isinstance(item, exp.Anonymous) else type(item).__name__.lower().strip("_")
    return name in _GENERATORS


def _star(item: exp.Expr, scope: Scope, columns: Columns) -> tuple[str, ...] | None:
    from sqlglot import exp

    star = item.this if isinstance(item, exp.Column) else item
    if not isinstance(star, exp.Star) or any(star.args.values()) or _extra_columns(scope):
        return None
    table = item.table if isinstance(item, exp.Column) else ""
    if any(join.args.get("using") or join.method or join.kind in ("SEMI", "ANTI") for join in scope.find_all(exp.Join)):
        return None
    wanted = [source for name, source in _read(scope) if not table or name.lower() == table.lower()]
    out: list[str] = []
    for source in wanted:
        known = _source_columns(source, columns)
        if known is None:
            return None
        out += known
    return tuple(out) if wanted else None


def _read(scope: Scope) -> list[tuple[str, object]]:
    """What stands in FROM and JOIN, by alias; also the right side of SEMI and ANTI joins, which conditions may use."""
    return [(name, scope.sources.get(name)) for name, _ in scope.references]


def _source_columns(source: object, columns: Columns) -> tuple[str, ...] | None:
    from sqlglot import exp
    from sqlglot.optimizer.scope import Scope

    if isinstance(source, exp.Table):
        alias = source.args.get("alias")
        if (alias is not None and alias.columns) or source.args.get("pivots"):
            return None
        return columns(".".join(part.name for part in source.parts).lower())
    if isinstance(source, Scope):
        if source.is_udtf or source.expression.args.get("pivots"):
            return None
        parent = source.expression.parent
        alias = parent.args.get("alias") if parent is not None else None
        if isinstance(alias, exp.TableAlias) and alias.columns:
            return tuple(column.name for column in alias.columns)
        if parent is not None and parent.args.get("pivots"):
            return None
        found = _outputs(source, columns)
        if found is None or any(output.name is None for output in found):
            return None
        return tuple(str(output.name) for output in found)
    return None


def _extra_columns(scope: Scope) -> bool:
    """Whether FROM brings columns that we do not follow: LATERAL VIEW, table functions, PIVOT."""
    from sqlglot import exp

    return bool(scope.expression.args.get("laterals")) or any(
        node is not scope.expression for node in scope.find_all(exp.Lateral, exp.UDTF, exp.Pivot)
    )


def _unknown_in(scope: Scope, columns: Columns) -> Iterator[SqlProblem]:
    from sqlglot import exp

    if not isinstance(scope.expression, exp.Select) or _extra_columns(scope):
        return
    known = _in_reach(scope, columns)
    everything = {c.lower() for names in known.values() if names is not None for c in names} | PART_COLUMNS | _FUNCTIONS
    sure = bool(known) and all(names is not None for names in known.values())
    aliases = {item.alias.lower() for item in scope.expression.expressions if item.alias}
    for column in scope.find_all(exp.Column):
        if isinstance(column.this, exp.Star) or _inside_lambda(column):
            continue
        name, table = column.name.lower(), column.table.lower()
        if column.args.get("db") is not None:
            continue  # a.b.c: fields of structs
        if table and table in known:
            names = known[table]
            if names is not None and name not in {c.lower() for c in names} | PART_COLUMNS:
                yield _problem(column, f"{column.table} has no column {column.name}", names)
        elif table:
            if sure and table not in everything | aliases:
                yield _problem(column, f"no table is called {column.table} here", list(known), "unknown-table")
        elif sure and name not in everything | aliases:
            yield _problem(
                column, f"none of the tables has a column {column.name}", sorted(everything - PART_COLUMNS - _FUNCTIONS)
            )


def _ambiguous_in(scope: Scope, columns: Columns) -> Iterator[SqlProblem]:
    from sqlglot import exp

    query = scope.expression
    if not isinstance(query, exp.Select) or _extra_columns(scope):
        return
    joins = query.args.get("joins") or ()
    if any(join.args.get("using") or join.method for join in joins):
        return  # columns of both sides are one
    unseen = {join.this.alias_or_name.lower() for join in joins if join.kind in ("SEMI", "ANTI")}
    owners: dict[str, list[str]] = {}
    for name, source in _read(scope):
        for each in (_source_columns(source, columns) or ()) if name.lower() not in unseen else ():
            owners.setdefault(each.lower(), []).append(name)
    aliases = {item.alias.lower() for item in query.expressions if item.alias}
    for column in scope.find_all(exp.Column):
        found = owners.get(column.name.lower(), ())
        if column.table or len(found) < 2 or column.name.lower() in aliases or _inside_lambda(column):
            continue
        start, end = place(column)
        what = f"{column.name} is a column of {' and of '.join(found)}"
        yield SqlProblem(start, "ambiguous-column", what, f"write {found[0]}.{column.name}", end=end)


def _in_reach(scope: Scope, columns: Columns) -> dict[str, tuple[str, ...] | None]:
    """Tables by alias, those of enclosing queries included: a subquery may be correlated."""
    known: dict[str, tuple[str, ...] | None] = {}
    at: Scope | None = scope
    while at is not None:
        for name, source in _read(at):
            known.setdefault(name.lower(), _source_columns(source, columns))
        if at.parent is not None and _extra_columns(at.parent):
            known.setdefault("", None)
        at = at.parent
    return known


def _inside_lambda(column: exp.Column) -> bool:
    from sqlglot import exp

    return column.find_ancestor(exp.Lambda, exp.Hint) is not None


def _problem(column: exp.Column, message: str, names: Iterable[str], code: str = "unknown-column") -> SqlProblem:
    names = [name for name in names if name]
    wrong = column.table if code == "unknown-table" else column.name
    hint = did_you_mean(wrong, names, f"there {'are' if len(names) > 1 else 'is'} {', '.join(names)}")
    part = column.args["table"] if code == "unknown-table" else column.this
    start, end = place(part)
    return SqlProblem(start, code, message, hint if names else "", end=end)


def place(node: exp.Expr) -> tuple[int, int]:
    """Where a node stands in the text; (0, 1) if sqlglot kept nothing."""
    from sqlglot import exp

    marks = [n.meta for n in node.find_all(exp.Identifier, exp.Func, exp.Literal, exp.Star) if "start" in n.meta]
    if not marks:
        return 0, 1
    return min(int(m["start"]) for m in marks), max(int(m["end"]) for m in marks) + 1


#: What uses columns that it does not name.
_UNNAMED = re.compile(r"\b(?:natural|pivot|unpivot|table|identifier)\b|\|>")
#: What stands before a star that is no list of columns: COUNT(*), or something to multiply.
_HARMLESS = re.compile(r"(?:\bcount\s*\(|[\w`)\]'\"](?<!\bselect)(?<!\bdistinct)(?<!\ball))\s*$")
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


def named_in(text: str, columns: Iterable[str]) -> list[str]:
    """Columns that a query may use, by its text alone: rather too many than one too few."""
    text = text.lower()
    # What looks like a comment may stand in a string.
    if _UNNAMED.search(text) or any(map(_lists_all, (text, _COMMENT.sub(" ", text)))):
        return list(columns)
    words = set(re.findall(r"\w+", text))
    return [c for c in columns if (c.lower() in words if re.fullmatch(r"\w+", c) else "`" in c or c.lower() in text)]


def _lists_all(text: str) -> bool:
    return any(not _HARMLESS.search(text[:at]) for at, letter in enumerate(text) if letter == "*")
