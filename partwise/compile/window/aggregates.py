"""How each aggregate over a window splits into cells."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, pow

from sqlglot import exp

from partwise.compile.window.cells import Cell, Rows, Split, Values, both, cast, filtered, named, there
from partwise.compile.window.moments import moments
from partwise.sql.calls import SUPPORTED, Call
from partwise.sql.parse import SqlProblem, TranslationError
from partwise.sql.types.known import average_type, is_number, sum_type
from partwise.sql.types.names import decimal_of, is_integer


def split(call: Call, rows: Rows) -> Split:
    name, args = call.name, [rows.text(arg) for arg in call.args]
    wanted = {
        "count": None, "max_by": 2, "min_by": 2, "covar_samp": 2, "covar_pop": 2, "corr": 2, "percentile": 2,
        "percentile_cont": 2, "percentile_disc": 2,
    }  # fmt: skip
    most = {"approx_percentile": 3, "approx_count_distinct": 2, "first": 2, "last": 2}.get(name)
    least = 2 if name == "approx_percentile" else 1
    number = wanted.get(name, 1)
    if (most and not least <= len(args) <= most) or (not most and number is not None and len(args) != number):
        raise _bad(call, f"{name.upper()} takes another number of arguments")
    if call.star and name != "count":
        raise _bad(call, f"* is not allowed in {name.upper()}")
    if call.distinct and name not in ("count", "min", "max", "bool_and", "bool_or"):
        raise _bad(call, f"{name.upper()}(DISTINCT ...) is not supported", "COUNT(DISTINCT x) is")
    where = rows.text(call.filter) if call.filter is not None else ""
    kinds = [rows.type_of(arg) if arg.text != "*" else None for arg in call.args]
    if name == "count":
        return _distinct(args, where) if call.distinct else _count(args, kinds, where)
    if name == "count_if":
        return _simple("COUNT(*)", both(args[0], where), "SUM", "count_if", args)
    if name in ("min", "max", "bool_and", "bool_or"):
        upper = name.upper()
        return Split((Cell(f"{upper}({args[0]})" + filtered(where), f"{upper}({{0}})", False, named(name, args)),))
    if name in ("sum", "avg"):
        return _sum(call, args[0], kinds[0], where)
    if name in ("first", "last"):
        ignore = call.ignore_nulls or (len(args) == 2 and args[1].upper() == "TRUE")
        return _by_time(name, args[0], both(where, there(args[0])) if ignore else where, rows)
    if name in ("max_by", "min_by"):
        return _by_value(name, args, where, rows)
    if name in ("percentile", "percentile_cont", "median"):
        return _percentile(args, where)
    if name == "percentile_disc":
        direct = f"percentile_disc({args[1]}) WITHIN GROUP (ORDER BY {args[0]})" + filtered(where)
        return Split(direct=direct, why="PERCENTILE_DISC is taken from the rows")
    if name == "approx_count_distinct":
        return _approx_distinct(call, args, kinds[0], where)
    if name == "approx_percentile":
        return _approx_percentile(call, args, kinds[0], where)
    return moments(name, args, kinds, where)


def _bad(call: Call, message: str, hint: str = "") -> TranslationError:
    return TranslationError(
        SqlProblem(call.start, "unsupported-aggregate", message, hint or f"supported: {', '.join(SUPPORTED).upper()}")
    )


def _simple(rows: str, where: str, merge: str, name: str, args: list[str]) -> Split:
    wish = "n" if args == ["*"] and not where else named(name, args) if not where else name
    return Split((Cell(rows + filtered(where), f"{merge}({{0}})", True, wish, "bigint"),))


def _count(args: list[str], kinds: list[str | None], where: str) -> Split:
    found = _simple(f"COUNT({', '.join(args)})", where, "SUM", "count", args)
    # Sums of integers and floats never fail, those of decimals may.
    safe = len(args) == 1 and (is_integer(kinds[0]) or kinds[0] in ("float", "double"))
    return replace(found, company=(_total(args[0], kinds[0] or "", where),)) if safe else found


def _total(arg: str, kind: str, where: str) -> Cell:
    """Sums of bigint are kept wide: whether bigint overflows on the way depends on the order of the rows."""
    exact = is_integer(kind) or decimal_of(kind) is not None
    wide = "decimal(38,0)" if kind == "bigint" else sum_type(kind)
    inside = f"CAST({arg} AS DECIMAL(38,0))" if kind == "bigint" else arg
    return Cell(f"SUM({inside})" + filtered(where), cast("SUM({0})", wide), exact, named("sum", [arg]), wide)


def _sum(call: Call, arg: str, kind: str | None, where: str) -> Split:
    if kind is not None and not is_number(kind):
        raise _bad(call, f"{call.name.upper()} needs a number, '{arg}' is {kind}", "write CAST(... AS DOUBLE)")
    if kind is None:
        # A sum of sums has other digits than a sum of decimals, and so has a quotient: only the rows are sure.
        why = f"the type of {arg} is not known here (CAST({arg} AS ...) tells it)"
        return Split(direct=f"{call.name.upper()}({arg})" + filtered(where), why=why)
    count = Cell(f"COUNT({arg})" + filtered(where), "SUM({0})", True, named("count", [arg]), "bigint")
    total = _total(arg, kind, where)
    if call.name == "sum":
        shown = "CAST({0} AS BIGINT)" if kind == "bigint" else "{0}"
        rolled = f"CASE WHEN {{1}} > 0 THEN {shown} END"
        return Split((total,), shown, (total, count), rolled, company=(count,))
    if (found := decimal_of(kind)) is not None:
        precision, scale = found
        average = (average_type(kind) or "").upper()
        if precision > 24 and scale > 2:
            # Dividing a sum of so many digits loses some of them; only AVG over the rows has them all.
            return Split(direct=f"AVG({arg})" + filtered(where), why=f"AVG of {kind} cannot be put together from sums")
        return Split((total, count), f"CAST({{0}} / NULLIF({{1}}, 0) AS {average})")
    # Dividing two bigints gives a double.
    return Split((total, count), "CAST({0} AS DOUBLE) / NULLIF({1}, 0)" if kind == "bigint" else "{0} / NULLIF({1}, 0)")


def _by_time(name: str, arg: str, where: str, rows: Rows) -> Split:
    function = "MIN" if name == "first" else "MAX"
    fields = ", ".join([*_moment(rows), f"{arg} AS value"])
    cell = Cell(f"{function}(struct({fields}))" + filtered(where), f"{function}({{0}})", False, named(name, [arg]))
    return Split((cell,), "({0}).value")


def _moment(rows: Rows) -> list[str]:
    """Every field has a name of ours: a column may be called `key` or `value`, too."""
    return [f"{text} AS {name}" for text, name in zip(rows.moment, ("moment", "tie"), strict=False)]


def _by_value(name: str, args: list[str], where: str, rows: Rows) -> Split:
    """Among rows of equal key, the latest for MAX_BY and the earliest for MIN_BY: Spark alone takes any."""
    function = name[:3].upper()
    fields = ", ".join([f"{args[1]} AS key", *_moment(rows), f"{args[0]} AS value"])
    condition = both(where, there(args[1]))
    cell = Cell(f"{function}(struct({fields}))" + filtered(condition), f"{function}({{0}})", False, named(name, args))
    return Split((cell,), "({0}).value")


def _distinct(args: list[str], where: str) -> Split:
    value = args[0] if len(args) == 1 else f"struct({', '.join(f'{a} AS value_{k}' for k, a in enumerate(args, 1))})"
    known = both(where, *map(there, args))
    direct = f"COUNT(DISTINCT {', '.join(args)})" + filtered(where)
    return Split(values=Values(value, known, "COUNT(*)", "0"), direct=direct)


def _percentile(args: list[str], where: str) -> Split:
    share = args[1] if len(args) == 2 else "0.5"
    known = both(where, there(args[0]))
    direct = f"percentile({args[0]}, {share})" + filtered(where)
    return Split(values=Values(args[0], known, f"percentile({{value}}, {share}, {{n}})", "NULL"), direct=direct)


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
        f"hll_sketch_agg({value}, {bits})" + filtered(where), "hll_union_agg({0})", False,
        named("sketch", [args[0]]), mark=_mark(value, where),
    )  # fmt: skip
    # The estimate of a sketch that saw rows depends on their order, that of a union only on what they were.
    return Split((cell,), "hll_sketch_estimate(hll_union({0}, {0}))")


def _mark(value: str, where: str) -> str:
    """Sums of two hashes of each value, in halves of 32 bits so that they never overflow."""
    hashes = [f"xxhash64({salt}, {value})" for salt in (42, 7)]
    sums = [f"SUM({half})" + filtered(where) for h in hashes for half in (f"shiftright({h}, 32)", f"{h} & 4294967295L")]
    return f"array({', '.join(sums)})"


def _approx_percentile(call: Call, args: list[str], kind: str | None, where: str) -> Split:
    """With an array of shares for the second argument the result is an array, too."""
    flavour = "bigint" if is_integer(kind) else "float" if kind == "float" else "double"
    value = args[0] if kind in ("bigint", "float", "double") else f"CAST({args[0]} AS {flavour.upper()})"
    size = f", {_sketch_size(call, args[2])}" if len(args) == 3 else ""
    sketch = Cell(
        f"kll_sketch_agg_{flavour}({value}{size})" + filtered(where), f"kll_merge_agg_{flavour}({{0}}{size})", False,
        named("sketch", args[:1]), mark=_mark(value, where),
    )  # fmt: skip
    count = Cell(f"COUNT({args[0]})" + filtered(where), "SUM({0})", True, named("count", args[:1]), "bigint")
    quantile = f"kll_sketch_get_quantile_{flavour}({{0}}, {args[1]})"
    shown = quantile
    if kind and kind != flavour and is_number(kind):
        many = isinstance(call.args[1].tree, exp.Array)
        shown = f"CAST({quantile} AS {f'ARRAY<{kind.upper()}>' if many else kind.upper()})"
    return Split((sketch, count), f"CASE WHEN {{1}} > 0 THEN {shown} END")


def _sketch_size(call: Call, accuracy: str) -> int:
    """The k of a KLL sketch whose error in rank is 1/accuracy: 2.296 / k^0.9021, as its authors measured it."""
    if not accuracy.isdigit() or not 1 <= int(accuracy) <= 10_000:
        raise _bad(call, f"the accuracy of APPROX_PERCENTILE must be a whole number from 1 to 10000, not {accuracy}",
                   "1000 means an error in rank of a thousandth; PERCENTILE(x, p) is exact")  # fmt: skip
    return min(65_535, max(8, ceil(pow(2.296 * int(accuracy), 1 / 0.9021))))
