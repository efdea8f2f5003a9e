"""What is wrong with a definition, said so that a person can repair it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]

#: Every code, with what it means. Codes are stable: people and programs may look for them.
CODES = {
    "cannot-read": "A file or folder cannot be read.",
    "encoding": "A file is not UTF-8 text.",
    "yaml-syntax": "A file is not valid YAML, or uses what definitions do not need (tags, deep nesting).",
    "duplicate-key": "A key is written twice.",
    "not-a-definition": "A document is not a map with exactly one of `source`, `dimension` or `view`.",
    "unknown-key": "A key that does not exist here.",
    "missing-key": "A key that must be there is not.",
    "keys-exclude": "Keys that exclude each other.",
    "wrong-type": "A value of the wrong type: text, number, list or map.",
    "wrong-value": "A value that is not one of the possible ones.",
    "bad-length": "A length of time that cannot be understood.",
    "bad-time": "A time that cannot be understood, or is not the start of a part.",
    "bad-name": "A name that is not letters, digits and underscores.",
    "duplicate-name": "Two definitions with the same name.",
    "reserved-name": "A name that Partwise uses itself: of a column, or of one of its own DAGs.",
    "bad-type": "A column type that Spark does not have.",
    "time-unit": "A time column of numbers without a unit, or a unit for a column that needs none.",
    "bad-check": "A check that is not written as an expectation with its arguments.",
    "unknown-check": "An expectation that does not exist, or cannot be had here.",
    "bad-repair": "A way to repair parts that is not exact for the query.",
    "bad-sample": "A sample that cannot be taken, or would not be fresh.",
    "bad-state": "A join that cannot be kept for repairs.",
    "no-outliers": "A sample of sums that keeps no large keys exactly: few of its sums can be answered.",
    "sql-syntax": "SQL that cannot be understood.",
    "not-a-query": "A statement that is not one query.",
    "not-linear": "A reference that is not a linear function of the index that grows.",
    "wrong-index": "`j` in INITIALIZE or `i` in UPDATE.",
    "range-backwards": "A range of parts whose end comes before its start.",
    "range-shifted": "A range that covers as much time as one part, but not the time of that part.",
    "part-lengths": "A reference that does not fit the part lengths of the two tables.",
    "unknown-function": "A function that Spark does not have.",
    "unknown-table": "A table that is not defined.",
    "unknown-column": "A column that the tables do not have.",
    "unnamed-column": "A column of the result without a name.",
    "duplicate-column": "Two columns of the result with the same name.",
    "columns-differ": "INITIALIZE and UPDATE give different columns.",
    "missing-reference": "A table that is split into parts, read without saying which.",
    "dimension-reference": "A reference to parts of a dimension, which has none.",
    "forward-query": "A `query` that reads a forward dimension in a way that cannot be joined part by part.",
    "valid-from": "A dimension with `valid_from` that is joined in a way in which it is not plain what was valid when.",
    "forward-range": "A forward dimension beside several parts of another table: one version counts for all of them.",
    "no-parts": "A view that reads no source and no other view, so that nothing defines which parts it has.",
    "missing-initialize": "A view that reads its own earlier parts, without a query for its first part.",
    "initialize-reads-itself": "A query for the first part that reads the view itself.",
    "self-not-earlier": "A view that reads its own part j or a later one, or a translated query that reads itself.",
    "cycle": "Tables that need each other.",
    "not-repeatable": "A function that gives another value each time.",
    "depends-on-order": "A result that depends on the order of rows, which is not the same each time.",
    "updates-class": "A view whose rows leave in a worse way than `updates` says.",
    "rolling-reference": "A table that reads a view with `output: rolling`, which has no parts.",
    "not-translated": "A query that could not be turned into plain definitions.",
    "query-warning": "A query that was translated, but perhaps does not mean what was intended.",
    "internal": "A fault of Partwise itself while it looked at a definition.",
}

#: Codes of the translator of queries. Where it means the same as above, the code above is used.
QUERY_CODES = {
    "ambiguous-column": "A column without a table that two tables of a join have.",
    "bad-aggregate": "An aggregate over rows of several pattern variables.",
    "bad-condition": "A condition on variables that do not exist, or are not neighbours in the pattern.",
    "bad-expression": "An expression that cannot be understood.",
    "bad-from": "FROM reads something that is neither a table with PATTERN or WINDOW nor a dimension.",
    "bad-group": "GROUP BY of something that cannot be grouped by.",
    "bad-pattern": "PATTERN that is not a list of variables such as [a, b+].",
    "bad-query": "A query that is not SELECT ... FROM ... in the usual order.",
    "bad-strategy": "A strategy that is not possible for these aggregates.",
    "bad-window": "WINDOW or SLIDE with a length that is not possible.",
    "impossible-condition": "A condition that never holds, so that nothing would match.",
    "no-aggregate": "A window that shows neither a group nor an aggregate.",
    "no-pattern": "A query with neither PATTERN nor WINDOW.",
    "not-in": "NOT IN (SELECT ...), which is empty as soon as one value is NULL.",
    "not-grouped": "A column that is neither in GROUP BY nor inside an aggregate.",
    "pairs-negation": "ANTI, NOT EXISTS, EXCEPT or LEFT JOIN with `output: pairs`: they take rows back.",
    "pairs-query": "A query with `output: pairs` that is not a join of windows.",
    "rolling-query": "A query with `output: rolling` that is a pattern.",
    "rows-window": "`[ROWS ...]` without WITHIN, PER or a tie column.",
    "select-star": "SELECT * in a query; name the columns.",
    "top-k": "ORDER BY with LIMIT, or FREQUENT, that does not say which groups are the largest.",
    "unknown-type": "A sum of something that is not known to be a number, or of too many digits to divide it.",
    "unsupported-aggregate": "An aggregate that queries cannot have.",
    "unsupported-clause": "A clause that queries cannot have.",
    "unsupported-expression": "An expression that queries cannot have.",
    "unsupported-type": "A column in a pattern whose values have no order.",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem; line and column count from 1. Only `error` keeps a definition from being used."""

    file: str
    line: int
    column: int
    code: str
    message: str
    hint: str = ""
    severity: Severity = "error"
    table: str | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.code}: {self.message}"

    @property
    def order(self) -> tuple[str, int, int, str, str]:
        return self.file, self.line, self.column, self.code, self.message


def list_of(words: Iterable[str], last: str = "or") -> str:
    """`a`, `a or b`, `a, b or c`."""
    words = list(words)
    return f" {last} ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
