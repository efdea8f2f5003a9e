"""Variance, covariance and correlation over a window.

Of integers and short decimals they come from exact sums of whole numbers. Of everything else, which Spark takes as
doubles, each pane keeps its count, means and sums of squared distances from them; panes are put together by the
formulas of Chan, Golub and LeVeque, in an order that depends on nothing but their values. The difference of two sums
of squares would lose all digits where values lie far from zero.
"""

from __future__ import annotations

from partwise.compile.window.cells import Cell, Split, both, cast, filtered, named, there
from partwise.sql.text import operand
from partwise.sql.types.names import decimal_of, is_integer


def moments(name: str, args: list[str], kinds: list[str | None], where: str) -> Split:
    known = both(where, *map(there, args)) if len(args) == 2 else where
    scales = [_scale(kind) for kind in kinds]
    exact = [scale for scale in scales if scale is not None]
    if len(exact) == len(args):
        return _from_sums(name, args, exact, known)
    return _from_distances(name, args, kinds, known)


# -- from exact sums ----------------------------------------------------------------------------------


def _from_sums(name: str, args: list[str], scales: list[int], known: str) -> Split:
    whole = [_whole(arg, scale) for arg, scale in zip(args, scales, strict=True)]
    count = Cell(f"COUNT({args[0]})" + filtered(known), "SUM({0})", True, named("count", args), "bigint")
    sums = [_big(w, known, named("sum", [a])) for w, a in zip(whole, args, strict=True)]
    if len(args) == 1:
        square = _big(f"{whole[0]} * {whole[0]}", known, named("squares", args))
        spread = "CAST({0} * {2} - {1} * {1} AS DOUBLE)"
        final = _spread(name, spread, 10 ** (2 * scales[0]))
        return Split((count, *sums, square), f"SQRT({final})" if name.startswith("stddev") else final)
    product = _big(f"{whole[0]} * {whole[1]}", known, named("products", args))
    together = "CAST({0} * {3} - {1} * {2} AS DOUBLE)"
    if name != "corr":
        return Split((count, *sums, product), _spread(name, together, 10 ** sum(scales)))
    squares = [_big(f"{w} * {w}", known, named("squares", [a])) for w, a in zip(whole, args, strict=True)]
    spreads = [f"SQRT(CAST({{0}} * {{{at}}} - {{{at - 3}}} * {{{at - 3}}} AS DOUBLE))" for at in (4, 5)]
    return Split((count, *sums, product, *squares), f"{together} / NULLIF({spreads[0]} * {spreads[1]}, 0)")


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
    return Cell(f"SUM({text})" + filtered(where), cast("SUM({0})", kind), True, name, kind)


def _spread(name: str, spread: str, factor: int) -> str:
    below = "CAST({0} AS DOUBLE) * {0}" if name.endswith("pop") else "CAST({0} AS DOUBLE) * ({0} - 1)"
    scaled = f"{spread} / NULLIF({below}, 0)"
    return scaled if factor == 1 else f"{scaled} / {factor}"


# -- from means and distances -------------------------------------------------------------------------


def _from_distances(name: str, args: list[str], kinds: list[str | None], known: str) -> Split:
    """`direct` is the aggregate over the rows, as it stands in the query."""
    rows = filtered(known)
    direct = f"{name.upper()}({', '.join(args)})" + rows
    if name == "corr":  # Spark's CORR of a constant column divides by zero
        spreads = " * ".join(f"STDDEV_POP({arg}){rows}" for arg in args)
        direct = f"(COVAR_POP({', '.join(args)}){rows} / NULLIF({spreads}, 0))"
    values = [arg if kind == "double" else f"CAST({arg} AS DOUBLE)" for arg, kind in zip(args, kinds, strict=True)]
    wish = named("spread", args)
    cell = _one(values[0], known, wish) if len(args) == 1 else _two(values[0], values[1], known, wish)
    m2 = "{0}.m2" if len(args) == 1 else "{0}.c2"
    if name == "corr":
        return Split((cell,), "{0}.c2 / NULLIF(SQRT({0}.m2_x) * SQRT({0}.m2_y), 0)", direct=direct)
    least, below = (0, "{0}.n") if name.endswith("pop") else (1, "({0}.n - 1)")
    value = f"SQRT({m2} / {below})" if name.startswith("stddev") else f"{m2} / {below}"
    return Split((cell,), f"CASE WHEN {{0}}.n > {least} THEN {value} END", direct=direct)


def _one(x: str, known: str, name: str) -> Cell:
    fields = {"n": f"COUNT({x}){filtered(known)}", "mean": _mean(x, known), "m2": _distances(x, known)}
    steps = {"n": _SUM.format("n"), "mean": _moved("mean"), "m2": f"acc.m2 + pane.m2 + {_apart('mean', 'mean')}"}
    return _cell(fields, steps, name)


def _two(x: str, y: str, known: str, name: str) -> Cell:
    rows = filtered(known)
    fields = {
        "n": f"COUNT(*){rows}", "mean_x": _mean(x, known), "mean_y": _mean(y, known), "m2_x": _distances(x, known),
        "m2_y": _distances(y, known), "c2": f"COVAR_POP({x}, {y}){rows} * COUNT(*){rows}",
    }  # fmt: skip
    steps = {
        "n": _SUM.format("n"), "mean_x": _moved("mean_x"), "mean_y": _moved("mean_y"),
        "m2_x": f"acc.m2_x + pane.m2_x + {_apart('mean_x', 'mean_x')}",
        "m2_y": f"acc.m2_y + pane.m2_y + {_apart('mean_y', 'mean_y')}",
        "c2": f"acc.c2 + pane.c2 + {_apart('mean_x', 'mean_y')}",
    }  # fmt: skip
    return _cell(fields, steps, name)


_SUM = "acc.{0} + pane.{0}"
_SHARE = "(pane.n / (acc.n + pane.n))"


def _mean(x: str, known: str) -> str:
    """A sum divided by a count is not quite the value where all are alike; then the distances would not be zero."""
    rows = filtered(known)
    return f"IF(MIN({x}){rows} = MAX({x}){rows}, MIN({x}){rows}, AVG({x}){rows})"


def _distances(x: str, known: str) -> str:
    return f"VAR_POP({x}){filtered(known)} * COUNT({x}){filtered(known)}"


def _moved(mean: str) -> str:
    return f"acc.{mean} + (pane.{mean} - acc.{mean}) * {_SHARE}"


def _apart(x: str, y: str) -> str:
    return f"(pane.{x} - acc.{x}) * (pane.{y} - acc.{y}) * (acc.n * {_SHARE})"


def _cell(fields: dict[str, str], steps: dict[str, str], name: str) -> Cell:
    body = "struct(" + ", ".join(f"{text} AS {field}" for field, text in fields.items()) + ")"
    start = ", ".join(f"'{field}', {'CAST(0 AS BIGINT)' if field == 'n' else 'CAST(0 AS DOUBLE)'}" for field in fields)
    step = ", ".join(f"'{field}', {text}" for field, text in steps.items())
    fold = f"(acc, pane) -> IF(pane.n = 0, acc, named_struct({step}))"
    merge = f"aggregate(array_sort(collect_list({{0}})), named_struct({start}), {fold})"
    return Cell(body, merge, False, name, folded=True)
