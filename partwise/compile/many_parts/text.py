"""From the text of a query to the text of the lifted one.

sqlglot's generator is not trusted. Functions stay what was written, because our dialect knows none; strings do not
pass through it at all; and the query is first written back unlifted: unless every name, number and function
comes out again in its place, it is not lifted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from partwise.compile.many_parts.model import INDEX, Lifted, LiftedInput, NotLiftable
from partwise.compile.many_parts.rewrite import Rewriter
from partwise.sql.parse import dialect as spark_dialect
from partwise.sql.parse import tokenise
from partwise.sql.references import find, splice

if TYPE_CHECKING:
    from sqlglot import exp

    from partwise.sql.tokens import Token

#: Names that the lifted text uses itself.
_OURS = re.compile(r"__(?:in|j|js|s|t)\d*", re.IGNORECASE)
_MASK = re.compile(r"'__text(\d+)__'")
_STRINGS = frozenset(["STRING", "RAW_STRING"])
#: Words before a parenthesis that are no functions, or whose place the generator may change (`x::INT` is a CAST).
_NO_FUNCTIONS = """
    ALL AND ANY AS BY CAST CROSS DECIMAL ELSE EXCEPT EXISTS FILTER FROM IN INTERSECT JOIN LATERAL NOT ON OR OVER SELECT
    SETS THEN UNION USING VALUES WHEN WHERE
"""
#: Words that say what is so anyway, which the generator adds or leaves out.
_DEFAULTS = frozenset(["NULLS", "FIRST", "LAST", "CURRENT", "ROW", "BETWEEN"])


@cache
def dialect() -> Any:
    """Spark's, with functions left as they are written."""
    from sqlglot import exp
    from sqlglot.dialects.spark import Spark

    spark_dialect()  # sets up logging

    class AsWritten(Spark):
        class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
            FUNCTIONS: dict[str, Any] = {}  # noqa: RUF012

        class Generator(Spark.Generator):  # type: ignore[misc, valid-type]
            # What the generator would make of SELECT is meant for older releases of Spark.
            TRANSFORMS = {k: v for k, v in Spark.Generator.TRANSFORMS.items() if k is not exp.Select}  # noqa: RUF012

            def nullsafeeq_sql(self, expression: exp.NullSafeEQ) -> str:
                return str(self.binary(expression, "<=>"))

    return AsWritten()


def lift(text: str, index: str = "j") -> Lifted:
    names = [token.text for token in tokenise(text).tokens if token.token_type.name not in _STRINGS]
    if ours := next((name for name in names if _OURS.fullmatch(name)), None):
        raise NotLiftable(f"it uses the name {ours}, which is kept for many parts at once")
    references = find(text, index)
    if references.problems:
        raise NotLiftable(references.problems[0].message)
    if not references.parts:
        raise NotLiftable("it reads no parts")
    called = {found.start: f"__in{at}" for at, found in enumerate(references.tables, start=1)}
    tree, strings = parsed(splice(text, lambda found: called[found.start], index, references))
    rewriter = Rewriter({called[found.start] for found in references.parts})
    lifted = unmasked(written(rewriter.query(tree, {}, name=INDEX)), strings)
    inputs = tuple(
        LiftedInput(called[f.start], f.table, f.reference, rewriter.columns.get(called[f.start]))
        for f in references.tables
    )
    if lost := [i.name for i in inputs if i.reference is not None and i.column is None]:
        raise NotLiftable(f"the reference {references.tables[int(lost[0][4:]) - 1].written} was not reached")
    return Lifted(lifted, inputs)


def parsed(text: str) -> tuple[exp.Expr, list[str]]:
    """The tree, with strings masked, and what they were. Raises NotLiftable if it could not be written back."""
    tokens, strings = _masked(text, tokenise(text).tokens)
    try:
        (tree,) = dialect().parser().parse(tokens, text)
        again = written(tree)
    except Exception:  # whatever it stumbled over: the query itself may be fine for Spark
        raise NotLiftable("the SQL parser does not understand it well enough") from None
    before, after = list(_words(tokens)), list(_words(tokenise(again).tokens))
    if before != after:
        lost = next((a for a, b in zip_longest(before, after) if a != b), None)
        near = "its end" if lost is None else unmasked(f"'{lost}'", strings) if lost.startswith("__text") else lost
        raise NotLiftable(f"it could not be written again as it is, near {near}")
    return tree, strings


def _masked(text: str, tokens: tuple[Token, ...]) -> tuple[list[Token], list[str]]:
    """Strings replaced by numbered ones: escapes are Spark's business."""
    from partwise.sql.tokens import TokenType

    out: list[Token] = []
    strings: list[str] = []
    for token in tokens:
        if token.token_type.name in _STRINGS:
            place = {"line": token.line, "col": token.col, "start": token.start, "end": token.end}
            out.append(type(token)(TokenType.STRING, f"__text{len(strings)}__", **place, comments=[]))
            strings.append(text[token.start : token.end + 1])
        else:
            out.append(token)
    return out, strings


def unmasked(text: str, strings: list[str]) -> str:
    return _MASK.sub(lambda match: strings[int(match[1])], text)


def _words(tokens: Iterable[Token]) -> Iterator[str]:
    """What must come out again: names, literals and functions, in order. Key words are the tree's business."""
    listed = list(tokens)
    for token, after in zip_longest(listed, listed[1:]):
        kind, word = token.token_type.name, token.text.upper()
        if kind in ("STRING", "NUMBER", "IDENTIFIER"):
            yield token.text
        elif after is not None and after.token_type.name == "L_PAREN":
            if word.isidentifier() and word not in _NO_FUNCTIONS.split():
                yield word
        elif kind == "VAR" and word not in _DEFAULTS:
            yield token.text


def written(tree: exp.Expr) -> str:
    return str(dialect().generate(tree, comments=False))
