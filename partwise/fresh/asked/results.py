"""Results of a query: formulas over totals, quantiles, and the largest or smallest value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sqlglot import exp

from partwise.estimate.formula import Formula, Number, Operation, SquareRoot, SumAt, TotalAt, average, variance
from partwise.fresh.asked.refused import not_answerable


@dataclass(frozen=True)
class Total:
    """A sum over rows. `value` is SQL for one row, `row` its expression (None: rows are counted), `squared` of x * x."""

    value: str
    row: exp.Expression | None
    squared: bool = False


@dataclass(frozen=True)
class QuantileOf:
    """The value below which a share of rows lies. `only` is a condition of the rows that count, or empty."""

    value: str
    share: float
    only: str = ""


@dataclass(frozen=True)
class ExtremeOf:
    """MAX (`largest`) or MIN of a value of rows, of which `row` is the expression."""

    value: str
    row: exp.Expression
    largest: bool
    only: str = ""


Result: TypeAlias = Formula | QuantileOf | ExtremeOf


@dataclass
class TotalsOf:
    """Totals that formulas need, each once."""

    totals: list[Total] = field(default_factory=list)
    coupled: list[tuple[int, int]] = field(default_factory=list)

    def at(self, total: Total) -> int:
        for n, known in enumerate(self.totals):
            if known.value == total.value:
                return n
        self.totals.append(total)
        return len(self.totals) - 1

    def pairs(self) -> list[tuple[int, int]]:
        """Sums with the count of their rows, and with the count of all rows: where that is 0, so is every sum."""
        whole = next((n for n, t in enumerate(self.totals) if t.value == _EVERY_ROW), None)
        more = [] if whole is None else [(n, whole) for n, t in enumerate(self.totals) if t.row is not None]
        return list(dict.fromkeys([*self.coupled, *more]))

    def count(self, row: exp.Expression | None, only: str) -> int:
        holds = [c for c in (only, "" if row is None else f"({row.sql('duckdb')}) IS NOT NULL") if c]
        return self.at(Total(f"CASE WHEN {' AND '.join(holds) or 'TRUE'} THEN 1e0 ELSE 0e0 END", None))

    def sum(self, row: exp.Expression, only: str, squared: bool = False) -> int:
        value = f"CAST({row.sql('duckdb')} AS DOUBLE)"
        value = f"{value} * {value}" if squared else value
        chosen = f"CASE WHEN {only} THEN {value} END" if only else value
        return self.at(Total(f"COALESCE({chosen}, 0e0)", row, squared))


_EVERY_ROW = "CASE WHEN TRUE THEN 1e0 ELSE 0e0 END"
_SPREADS = {
    exp.Variance: (True, False), exp.VariancePop: (False, False),
    exp.Stddev: (True, True), exp.StddevSamp: (True, True), exp.StddevPop: (False, True),
}  # fmt: skip
_OPERATORS: dict[type[exp.Binary], Literal["+", "-", "*", "/"]] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
}


def result_of(body: exp.Expression, made: TotalsOf) -> Result:
    """Raises Refused."""
    inner, only = body.unnest(), ""
    if isinstance(inner, exp.Filter):
        inner, only = inner.this, f"({inner.expression.this.sql('duckdb')})"
    if isinstance(inner, exp.Max | exp.Min) and not inner.args.get("count") and not inner.expressions:
        row = inner.this
        return ExtremeOf(row.sql("duckdb"), row, isinstance(inner, exp.Max), only)
    return _quantile(inner, only) or _formula(body, made)


def duckdb_text(body: exp.Expression) -> str:
    """Of a result: PERCENTILE, which DuckDB does not have, is QUANTILE_CONT."""
    found = body.copy()
    for call in list(found.find_all(exp.Anonymous)):
        if call.name.upper() == "PERCENTILE":
            call.replace(exp.func("QUANTILE_CONT", *call.expressions, dialect="duckdb"))
    return found.sql("duckdb")


def _quantile(call: exp.Expr, only: str) -> QuantileOf | None:
    """MEDIAN(x), QUANTILE_CONT(x, 0.9), PERCENTILE(x, 0.9), PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)."""
    row: exp.Expr | None = None
    share: exp.Expr | None = None
    falls = False
    if isinstance(call, exp.Median):
        row, share = call.this, exp.Literal.number("0.5")
    elif isinstance(call, exp.WithinGroup) and isinstance(call.this, exp.PercentileCont | exp.PercentileDisc):
        (item,) = call.expression.expressions
        row, share, falls = item.this, call.this.this, bool(item.args.get("desc"))
    elif isinstance(call, exp.PercentileCont | exp.PercentileDisc):
        row, share = call.this, call.expression
    elif isinstance(call, exp.Quantile):
        row, share = call.this, call.args.get("quantile")
    elif isinstance(call, exp.Anonymous) and call.name.upper() == "PERCENTILE" and len(call.expressions) == 2:
        row, share = call.expressions
    if row is None:
        return None
    written = isinstance(share, exp.Literal) and not share.is_string and 0 <= float(share.name) <= 1
    if share is None or not written or isinstance(row, exp.Distinct | exp.Ordered):
        raise not_answerable(f"'{call.sql('duckdb')}'", "write one share between 0 and 1, for example 0.9")
    return QuantileOf(row.sql("duckdb"), 1 - float(share.name) if falls else float(share.name), only)


def _formula(body: exp.Expression, made: TotalsOf, only: str = "") -> Formula:
    if isinstance(body, exp.Paren):
        return _formula(body.this, made, only)
    if isinstance(body, exp.Neg):
        return Operation("-", Number(0.0), _formula(body.this, made, only))
    if isinstance(body, exp.Literal) and not body.is_string:
        return Number(float(body.name))
    if isinstance(body, exp.Cast) and body.to.is_type("double", "float"):
        return _formula(body.this, made, only)
    if isinstance(body, exp.Add | exp.Sub | exp.Mul | exp.Div):
        left, right = _formula(body.this, made, only), _formula(body.expression, made, only)
        return Operation(_OPERATORS[type(body)], left, right)
    if isinstance(body, exp.Filter) and not only:
        return _formula(body.this, made, f"({body.expression.this.sql('duckdb')})")
    if isinstance(body, exp.AggFunc):
        return _aggregate(body, made, only)
    raise not_answerable(f"'{body.sql('duckdb')}'", "only sums, differences, products and quotients of aggregates can")


def _aggregate(call: exp.AggFunc, made: TotalsOf, only: str) -> Formula:
    row = call.this
    if isinstance(row, exp.Distinct) or call.args.get("order"):
        raise not_answerable(f"'{call.sql('duckdb')}'", "values that are not in it may be distinct ones")
    if isinstance(call, exp.Count):
        if call.expressions:
            raise not_answerable(f"'{call.sql('duckdb')}'", "")
        return TotalAt(made.count(None if row is None or isinstance(row, exp.Star) else row, only))
    if isinstance(call, exp.Sum):
        return SumAt(made.sum(row, only), made.count(row, only))
    if isinstance(call, exp.Avg):
        total, count = made.sum(row, only), made.count(row, only)
        made.coupled.append((total, count))
        return average(total, count)
    if type(call) in _SPREADS:
        of_sample, root = _SPREADS[type(call)]
        found = variance(made.sum(row, only), made.sum(row, only, squared=True), made.count(row, only), of_sample)
        return SquareRoot(found) if root else found
    raise not_answerable(
        f"'{call.sql('duckdb')}'", "SUM, COUNT, AVG, VAR and STDDEV can, MEDIAN, PERCENTILE, MIN and MAX by themselves"
    )
