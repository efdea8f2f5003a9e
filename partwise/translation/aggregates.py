"""How each aggregate over a window splits into cells: columns of a pane that can be merged, maybe subtracted.

A cell is exact if subtracting what left gives what recomputation would give: integers and decimals, never doubles
(1e17 + 1 - 1e17 is 0, and a NaN would never leave).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from partwise.translation.calls import SUPPORTED, Call
from partwise.translation.model import Problem, TranslationError
from partwise.translation.text import Piece, conjunct, operand
from partwise.translation.types import decimal_of, is_integer, is_number, sum_type


@dataclass(frozen=True, slots=True)
class Cell:
    """`body`: its aggregate over rows; `merge`: over cells, `{0}` being the column. `type` where it must not move.

    A sketch has a `mark`: an aggregate over the same rows that is equal for equal rows in any order, which the
    bytes of a sketch are not.
    """

    body: str
    merge: str
    exact: bool = False
    name: str = "value"
    type: str | None = None
    mark: str = ""

    @property
    def rows(self) -> str:
        return _cast(self.body, self.type)

    @property
    def rolled(self) -> str:
        """Over rows, for rolling sums: 0 instead of NULL, so that adding and subtracting works."""
        return self.rows if self.body.startswith("COUNT") else _cast(f"COALESCE({self.body}, 0)", self.type)


@dataclass(frozen=True, slots=True)
class Values:
    """Counts of distinct values. `value` is the expression counted, `where` drops NULLs and applies FILTER.

    `over` is the aggregate over the distinct values, with `{value}` and `{n}`; `empty` is its value without any.
    """

    value: str
    where: str
    over: str
    empty: str


@dataclass(frozen=True, slots=True)
class Split:
    """`final` and `final_rolled`: the aggregate from its merged cells `{0}`, `{1}`, ...

    `direct` is the aggregate over the rows of the window where that is another expression; an aggregate without
    cells and values can only be computed so (`why` says the reason).
    """

    cells: tuple[Cell, ...] = ()
    final: str = "{0}"
    rolled_cells: tuple[Cell, ...] | None = None
    final_rolled: str = ""
    values: Values | None = None
    direct: str | None = None
    why: str = ""

    @property
    def mergeable(self) -> bool:
        return bool(self.cells) or self.values is not None

    @property
    def exact(self) -> bool:
        return self.values is None and bool(self.cells) and all(cell.exact for cell in self.rolled_cells or self.cells)


@dataclass(frozen=True, slots=True)
class Rows:
    """What aggregates need to know of the rows: types of expressions, and the columns of time and tie."""

    type_of: Callable[[Piece], str | None]
    text: Callable[[Piece], str]
    moment: tuple[str, ...]


def split(call: Call, rows: Rows) -> Split:
    name, args = call.name, [rows.text(arg) for arg in call.args]
    wanted = {"count": None, "max_by": 2, "min_by": 2, "covar_samp": 2, "covar_pop": 2, "corr": 2, "percentile": 2}
    most = {"approx_percentile": 3, "approx_count_distinct": 2, "first": 2, "last": 2}.get(name)
    least = 2 if name == "approx_percentile" else 1
    number = wanted.get(name, 1)
    if (most and not least <= len(args) <= most) or (not most and number is not None and len(args) != number):
        raise _bad(call, f"{name.upper()} takes another number of arguments")
    if call.star and name != "count":
        raise _bad(call, f"* cannot stand in {name.upper()}")
    if call.distinct and name not in ("count", "min", "max", "bool_and", "bool_or"):
        raise _bad(call, f"{name.upper()}(DISTINCT ...) is not supported", "COUNT(DISTINCT x) is")
    where = rows.text(call.filter) if call.filter is not None else ""
    kinds = [rows.type_of(arg) if arg.text != "*" else None for arg in call.args]
    if name == "count":
        return (
            _distinct(args, where)
            if call.distinct
            else _simple(f"COUNT({', '.join(args)})", where, "SUM", "count", args)
        )
    if name == "count_if":
        return _simple("COUNT(*)", _both(args[0], where), "SUM", "count_if", args)
    if name in ("min", "max", "bool_and", "bool_or"):
        upper = name.upper()
        return Split((Cell(f"{upper}({args[0]})" + _filter(where), f"{upper}({{0}})", False, _named(name, args)),))
    if name in ("sum", "avg"):
        return _sum(call, args[0], kinds[0], where)
    if name in ("first", "last"):
        ignore = call.ignore_nulls or (len(args) == 2 and args[1].upper() == "TRUE")
        return _by_time(name, args[0], _both(where, _there(args[0])) if ignore else where, rows)
    if name in ("max_by", "min_by"):
        return _by_value(name, args, where, rows)
    if name in ("percentile", "median"):
        return _percentile(args, where)
    if name == "approx_count_distinct":
        return _approx_distinct(call, args, kinds[0], where)
    if name == "approx_percentile":
        return _approx_percentile(args, kinds[0], where, many=isinstance(call.args[1].tree, exp.Array))
    return _moments(name, args, kinds, where)


def _bad(call: Call, message: str, hint: str = "") -> TranslationError:
    return TranslationError(
        Problem(call.start, "unsupported-aggregate", message, hint or f"supported: {', '.join(SUPPORTED).upper()}")
    )


def _filter(where: str) -> str:
    return f" FILTER (WHERE {where})" if where else ""


def _both(*conditions: str) -> str:
    there = [c for c in conditions if c]
    return " AND ".join(map(conjunct, there)) if len(there) > 1 else "".join(there)


def _there(arg: str) -> str:
    return f"{operand(arg)} IS NOT NULL"


def _named(name: str, args: list[str]) -> str:
    simple = [a.split(".")[-1] for a in args if a.replace("_", "a").replace(".", "a").isalnum()]
    return "_".join([name, *simple]) if len(simple) == len(args) else name


def _cast(text: str, kind: str | None) -> str:
    return f"CAST({text} AS {kind.upper()})" if kind is not None and decimal_of(kind) is not None else text


def _simple(rows: str, where: str, merge: str, name: str, args: list[str]) -> Split:
    named = "n" if args == ["*"] and not where else _named(name, args) if not where else name
    return Split((Cell(rows + _filter(where), f"{merge}({{0}})", True, named, "bigint"),))


def _sum(call: Call, arg: str, kind: str | None, where: str) -> Split:
    if kind is not None and not is_number(kind):
        raise _bad(call, f"{call.name.upper()} needs a number, '{arg}' is {kind}", "write CAST(... AS DOUBLE)")
    count = Cell(f"COUNT({arg})" + _filter(where), "SUM({0})", True, _named("count", [arg]), "bigint")
    exact = is_integer(kind) or decimal_of(kind) is not None
    # Sums of bigint are kept wide: whether bigint overflows on the way depends on the order of the rows.
    wide = "decimal(38,0)" if kind == "bigint" else sum_type(kind)
    inside = f"CAST({arg} AS DECIMAL(38,0))" if kind == "bigint" else arg
    total = Cell(f"SUM({inside})" + _filter(where), _cast("SUM({0})", wide), exact, _named("sum", [arg]), wide)
    if call.name == "sum":
        shown = "CAST({0} AS BIGINT)" if kind == "bigint" else "{0}"
        rolled = f"CASE WHEN {{1}} > 0 THEN {shown} END"
        return Split((total,), shown, (total, count), rolled)
    if (found := decimal_of(kind)) is not None:
        precision, scale = found
        average = f"DECIMAL({min(38, precision + 4)},{min(38, scale + 4)})"
        if precision > 24 and scale > 2:
            # Dividing a sum of so many digits loses some of them; only AVG over the rows has them all.
            return Split(direct=f"AVG({arg})" + _filter(where), why=f"AVG of {kind} cannot be put together from sums")
        return Split((total, count), f"CAST({{0}} / NULLIF({{1}}, 0) AS {average})")
    # Dividing two bigints gives a double; of an unknown type Spark divides as that type wants it.
    return Split((total, count), "CAST({0} AS DOUBLE) / NULLIF({1}, 0)" if kind == "bigint" else "{0} / NULLIF({1}, 0)")


def _by_time(name: str, arg: str, where: str, rows: Rows) -> Split:
    function = "MIN" if name == "first" else "MAX"
    fields = ", ".join([*rows.moment, f"{arg} AS value"])
    cell = Cell(f"{function}(struct({fields}))" + _filter(where), f"{function}({{0}})", False, _named(name, [arg]))
    return Split((cell,), "({0}).value")


def _by_value(name: str, args: list[str], where: str, rows: Rows) -> Split:
    """Among rows of equal key, the latest for MAX_BY and the earliest for MIN_BY: Spark alone takes any."""
    function = name[:3].upper()
    fields = ", ".join([f"{args[1]} AS key", *rows.moment, f"{args[0]} AS value"])
    condition = _both(where, _there(args[1]))
    cell = Cell(f"{function}(struct({fields}))" + _filter(condition), f"{function}({{0}})", False, _named(name, args))
    return Split((cell,), "({0}).value")


def _distinct(args: list[str], where: str) -> Split:
    value = args[0] if len(args) == 1 else f"struct({', '.join(f'{a} AS value_{k}' for k, a in enumerate(args, 1))})"
    there = _both(where, *map(_there, args))
    direct = f"COUNT(DISTINCT {', '.join(args)})" + _filter(where)
    return Split(values=Values(value, there, "COUNT(*)", "0"), direct=direct)


def _percentile(args: list[str], where: str) -> Split:
    share = args[1] if len(args) == 2 else "0.5"
    there = _both(where, _there(args[0]))
    direct = f"percentile({args[0]}, {share})" + _filter(where)
    return Split(values=Values(args[0], there, f"percentile({{value}}, {share}, {{n}})", "NULL"), direct=direct)


def _approx_distinct(call: Call, args: list[str], kind: str | None, where: str) -> Split:
    bits = 12
    if len(args) == 2:
        try:
            error = float(args[1])
            bits = min(21, max(4, next(b for b in range(4, 22) if 1.04 / 2 ** (b / 2) <= error or b == 21)))
        except ValueError:
            raise _bad(call, "the second argument of APPROX_COUNT_DISTINCT must be a number") from None
    value = args[0] if kind in ("int", "bigint", "string", "binary") else f"CAST({args[0]} AS STRING)"
    cell = Cell(
        f"hll_sketch_agg({value}, {bits})" + _filter(where), "hll_union_agg({0})", False,
        _named("sketch", [args[0]]), mark=_mark(value, where),
    )  # fmt: skip
    # The estimate of a sketch that saw rows depends on their order, that of a union only on what they were.
    return Split((cell,), "hll_sketch_estimate(hll_union({0}, {0}))")


def _mark(value: str, where: str) -> str:
    """Sums of two hashes of each value, in halves of 32 bits so that they never overflow."""
    hashes = [f"xxhash64({salt}, {value})" for salt in (42, 7)]
    sums = [f"SUM({half})" + _filter(where) for h in hashes for half in (f"shiftright({h}, 32)", f"{h} & 4294967295L")]
    return f"array({', '.join(sums)})"


def _approx_percentile(args: list[str], kind: str | None, where: str, *, many: bool) -> Split:
    """`many`: the second argument is an array of shares."""
    flavour = "bigint" if is_integer(kind) else "float" if kind == "float" else "double"
    value = args[0] if kind in ("bigint", "float", "double") else f"CAST({args[0]} AS {flavour.upper()})"
    sketch = Cell(
        f"kll_sketch_agg_{flavour}({value})" + _filter(where), f"kll_merge_agg_{flavour}({{0}})", False,
        _named("sketch", [args[0]]), mark=_mark(value, where),
    )  # fmt: skip
    count = Cell(f"COUNT({args[0]})" + _filter(where), "SUM({0})", True, _named("count", [args[0]]), "bigint")
    quantile = f"kll_sketch_get_quantile_{flavour}({{0}}, {args[1]})"
    shown = quantile
    if kind and kind != flavour and is_number(kind):
        shown = f"CAST({quantile} AS {f'ARRAY<{kind.upper()}>' if many else kind.upper()})"
    return Split((sketch, count), f"CASE WHEN {{1}} > 0 THEN {shown} END")


def _moments(name: str, args: list[str], kinds: list[str | None], where: str) -> Split:
    """Variance, covariance and correlation: from exact sums of whole numbers, else only over the rows."""
    x, y = args[0], args[-1]
    there = _both(where, _there(x), _there(y)) if len(args) == 2 else where
    scales = [_scale(kind) for kind in kinds]
    if any(scale is None for scale in scales):
        direct = f"{name.upper()}({', '.join(args)})" + _filter(where)
        if name == "corr":  # Spark's CORR of a constant column divides by zero
            both = _filter(there)
            direct = f"(COVAR_POP({x}, {y}){both} / NULLIF(STDDEV_POP({x}){both} * STDDEV_POP({y}){both}, 0))"
        kind = next(k for k, scale in zip(kinds, scales, strict=True) if scale is None)
        return Split(direct=direct, why=f"{name.upper()} of {kind or 'an unknown type'} has no exact sums")
    whole = [_whole(arg, scale or 0) for arg, scale in zip(args, scales, strict=True)]
    count = Cell(f"COUNT({x})" + _filter(there), "SUM({0})", True, _named("count", args), "bigint")
    sums = [_big(w, there, _named("sum", [a])) for w, a in zip(whole, args, strict=True)]
    if len(args) == 1:
        square = _big(f"{whole[0]} * {whole[0]}", there, _named("squares", args))
        spread = "CAST({0} * {2} - {1} * {1} AS DOUBLE)"
        final = _spread(name, spread, 10 ** (2 * (scales[0] or 0)))
        return Split((count, *sums, square), f"SQRT({final})" if name.startswith("stddev") else final)
    product = _big(f"{whole[0]} * {whole[1]}", there, _named("products", args))
    both = "CAST({0} * {3} - {1} * {2} AS DOUBLE)"
    if name != "corr":
        return Split((count, *sums, product), _spread(name, both, 10 ** ((scales[0] or 0) + (scales[1] or 0))))
    squares = [_big(f"{w} * {w}", there, _named("squares", [a])) for w, a in zip(whole, args, strict=True)]
    spreads = [f"SQRT(CAST({{0}} * {{{at}}} - {{{at - 3}}} * {{{at - 3}}} AS DOUBLE))" for at in (4, 5)]
    return Split((count, *sums, product, *squares), f"{both} / NULLIF({spreads[0]} * {spreads[1]}, 0)")


def _scale(kind: str | None) -> int | None:
    """Digits after the point of types whose squares sum up exactly in 38 digits; None for the others."""
    if is_integer(kind) and kind != "bigint":
        return 0
    found = decimal_of(kind)
    return found[1] if found is not None and found[0] <= 10 else None


def _whole(arg: str, scale: int) -> str:
    return f"CAST({arg} AS DECIMAL(18,0))" if scale == 0 else f"CAST({operand(arg)} * {10**scale} AS DECIMAL(18,0))"


def _big(text: str, where: str, name: str) -> Cell:
    kind = "decimal(38,0)"
    return Cell(f"SUM({text})" + _filter(where), _cast("SUM({0})", kind), True, name, kind)


def _spread(name: str, spread: str, factor: int) -> str:
    below = "CAST({0} AS DOUBLE) * {0}" if name.endswith("pop") else "CAST({0} AS DOUBLE) * ({0} - 1)"
    scaled = f"{spread} / NULLIF({below}, 0)"
    return scaled if factor == 1 else f"{scaled} / {factor}"
