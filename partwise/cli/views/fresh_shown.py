"""A fresh answer as people and programs read it."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from partwise.cli.views.show import moment_json, table
from partwise.parts import Parts, part_text

if TYPE_CHECKING:
    from partwise.fresh.answer import FreshAnswer, FreshCell, RefusedCell
    from partwise.fresh.states import PartStates

_WIDE = 24  # characters of a plot


def fresh_json(found: FreshAnswer, seq: int, at: float) -> dict[str, Any]:
    states, length = found.states, found.length
    sampled, exact, differing = found.keys
    return {
        "view": found.view,
        "as_of": moment_json(at),
        "sequence": seq,
        "confidence": found.confidence,
        "ratio": found.ratio,
        "parts": {
            "clean": states.clean.count,
            "stale": _parts(states.stale, length),
            "missing": _parts(states.missing, length),
            "stand_in": {
                part_text(p, length): _one_or_all([part_text(s, length) for s in some])
                for p, some in states.stand_ins.items()
                if p in states.missing
            },
            "beyond": _parts(states.beyond, length),
        },
        "keys": {"sampled": sampled, "exact": exact, "differing": differing},
        "rows": [
            {
                "group": {name: _plain(value) for name, value in row.group.items()},
                "cells": {name: _cell(cell) for name, cell in row.cells.items()},
            }
            for row in found.rows
        ],
        "unseen_groups": None
        if found.unseen is None
        else {"rows_each_at_most": found.unseen.rows, "keys_each_at_most": found.unseen.keys},
        "refused": [refused_json(each) for each in found.refused],
        "checked": None
        if found.checked is None
        else {"covered": round(found.checked.covered, 4), "of": found.checked.of},
    } | _more(found)


def _more(found: FreshAnswer) -> dict[str, Any]:
    more: dict[str, Any] = {"note": found.note} if found.note else {}
    if (selected := found.selected) is not None:
        more["selected"] = [
            {"row": dict(zip(selected.columns, map(_plain, row), strict=True)), "fresh": fresh}
            for row, fresh in selected.rows
        ]
    return more


def _one_or_all(parts: list[str]) -> str | list[str]:
    return parts[0] if len(parts) == 1 else parts


def refused_json(each: RefusedCell) -> dict[str, Any]:
    return {
        "column": each.column,
        "group": {name: _plain(value) for name, value in each.group.items()},
        "code": each.code,
        "message": each.message,
        "hint": each.hint,
    }


def _cell(cell: FreshCell) -> dict[str, Any]:
    if (bound := cell.bound) is not None:
        ends = ("at_least", "rows_above_at_most") if bound.largest else ("at_most", "rows_below_at_most")
        return {
            "published": _plain(cell.published),
            ends[0]: _plain(bound.value),
            "method": "bound",
            ends[1]: bound.rows_beyond,
        }
    return {
        "published": _plain(cell.published),
        "estimate": _plain(cell.estimate),
        "low": _plain(cell.low),
        "high": _plain(cell.high),
        "method": cell.method,
        "differing": cell.differing,
        "largest_unknown": _plain(cell.largest_unknown),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, int | str | bool):
        return value
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime | date) else str(value)


def _parts(parts: Parts, length: int) -> list[str]:
    return [part_text(p, length) for p in parts]


def show_fresh(found: FreshAnswer, when: str) -> None:
    """Value ± half of the interval and what is published: one line, or a table with small plots of both."""
    if (selected := found.selected) is not None:
        table([*selected.columns, "fresh"], [[*map(_text, row), "yes" if ok else "no"] for row, ok in selected.rows])
    if (one := _only_cell(found)) is not None:
        print(_one_line(*one, found, when))
        _show_refused(found)
        if beyond := _beyond(found).strip():
            print(beyond)
        return
    rows: list[list[str]] = []
    groups = list(found.rows[0].group) if found.rows else []
    columns = list(found.rows[0].cells) if found.rows else []
    plotted = any(c.method not in (None, "exact", "bound") for row in found.rows for c in row.cells.values())
    for column in columns:
        cells = [row.cells[column] for row in found.rows]
        ends = [_number(x) for c in cells for x in (c.low, c.high, c.published)]
        span = [x for x in ends if x is not None]
        for row, cell in zip(found.rows, cells, strict=True):
            line = [*(_text(value) for value in row.group.values()), column, _value(cell, found.confidence)]
            line += [_text(cell.published), *([_plot(cell, min(span), max(span)) if span else ""] if plotted else [])]
            rows.append(line)
    if rows:
        table([*groups, "result", "fresh", "published", *([""] if plotted else [])], rows)
    _show_refused(found)
    print(_summary(found, when))


def _only_cell(found: FreshAnswer) -> tuple[str, FreshCell] | None:
    """Of a query with one result and no groups."""
    if found.selected is not None or len(found.rows) != 1 or found.rows[0].group or len(found.rows[0].cells) != 1:
        return None
    return next(iter(found.rows[0].cells.items()))


def _one_line(name: str, cell: FreshCell, found: FreshAnswer, when: str) -> str:
    known = [f"fresh as of {when}", *([counts] if (counts := _counted(found.states)) else [])]
    if cell.method == "exact":
        known = ["exact", *known]
    elif found.states.dirty:
        known.append(f"{100 * found.ratio:.3g} % of keys")
    counted = ", ".join(known)
    return f"{name}  {_value(cell, found.confidence)}   published: {_text(cell.published)}   {counted}"


def _counted(states: PartStates) -> str:
    """`2 stale + 1 missing parts`."""
    counts = [(n.count, word) for n, word in ((states.stale, "stale"), (states.missing, "missing")) if n]
    if not counts:
        return ""
    return f"{' + '.join(f'{n:,} {word}' for n, word in counts)} {'part' if counts[-1][0] == 1 and len(counts) == 1 else 'parts'}"


def _show_refused(found: FreshAnswer) -> None:
    for each in found.refused:
        group = ", ".join(f"{name} {_text(value)}" for name, value in each.group.items())
        print(f"{group + ': ' if group else ''}{each.message}.\n  {each.hint[0].upper() + each.hint[1:]}.")


def _summary(found: FreshAnswer, when: str) -> str:
    states = found.states
    if not states.dirty:
        said = f"Exact: nothing of {states.clean.count:,} {'part' if states.clean.count == 1 else 'parts'} is stale. Fresh as of {when}."
    else:
        counts = [f"{n.count:,} {word}" for n, word in ((states.stale, "stale"), (states.missing, "missing")) if n]
        exact = found.rows and all(c.method == "exact" for row in found.rows for c in row.cells.values())
        said = f"{'Exact, fresh' if exact else 'Fresh'} as of {when}: {' + '.join(counts)}"
        said += f" of {(states.clean | states.dirty).count:,} parts"
        said += "." if exact else f", {100 * found.ratio:.3g} % of keys."
    return said + _beyond(found)


def _beyond(found: FreshAnswer) -> str:
    beyond = found.states.beyond
    if not beyond:
        return ""
    first = part_text(beyond.first, found.length)
    return f" Not in it, because an input is missing: {beyond.count:,} {'part' if beyond.count == 1 else 'parts'} from {first} on."


def _value(cell: FreshCell, confidence: float) -> str:
    if cell.method is None:
        return "refused"
    if cell.bound is not None:
        beyond = "" if cell.bound.rows_beyond is None else f", {cell.bound.rows_beyond} rows beyond it at most"
        return f"{'≥' if cell.bound.largest else '≤'} {_text(cell.bound.value)}{beyond}"
    if cell.method == "exact" or cell.estimate is None:
        return _text(cell.estimate)
    half = (cell.high - cell.low) / 2
    return f"{_text(cell.estimate)} ± {_text(half)} ({100 * confidence:.4g} %)"


def _plot(cell: FreshCell, least: float, most: float) -> str:
    """The interval with its value (●) and what is published (○)."""
    low, high, value, was = (_number(x) for x in (cell.low, cell.high, cell.estimate, cell.published))
    line = [" "] * _WIDE

    def place(x: float) -> int:
        return round((x - least) / (most - least) * (_WIDE - 1)) if most > least else _WIDE // 2

    if low is not None and high is not None and value is not None:
        for at in range(place(low), place(high) + 1):
            line[at] = "─"
        line[place(low)], line[place(high)], line[place(value)] = "├", "┤", "●"
    if was is not None and line[place(was)] != "●":
        line[place(was)] = "○"
    return "".join(line)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else None


def _text(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
