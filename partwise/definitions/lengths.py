"""Do a reference and the part lengths of the two tables fit together?

Part j of a view covers the time from j * length on. A bound (a*j+b)/c moves over the other table's time
a * other / c seconds per part; it keeps step with the view exactly if that is the view's own length.
"""

from __future__ import annotations

from math import gcd

from partwise.parts import Bound, Reference, duration_text


def keeps_step(bound: Bound, view: int, other: int) -> bool:
    return bound.times * other == bound.over * view


def same_time(view: int, other: int) -> Reference:
    """The parts of the other table that overlap part j of the view."""
    common = gcd(view, other)
    times, over = view // common, other // common
    return Reference(Bound(times, 0, over), Bound(times, times - 1, over))


def misfit(
    reference: Reference, view: int, other: int, table: str, name: str, index: str
) -> tuple[str, str, str] | None:
    """Code, message and hint if the reference cannot be right."""
    right = f"{table}{same_time(view, other).text(index)}"
    steps = [keeps_step(bound, view, other) for bound in (reference.lo, reference.hi)]
    written = f"{table}{reference.text(index)}"
    if not all(steps):
        if table.lower() == name.lower():
            message = f"{name} reads its own parts at {written}, which would drift away in time"
            return "part-lengths", message, f"for the part before part {index} write {table}[{index}-1]"
        if view == other:
            message = (
                f"{table} and {name} both have parts of {duration_text(view)}, so {written} would drift away in time"
            )
        else:
            message = (
                f"{table} has parts of {duration_text(other)} and {name} of {duration_text(view)}, "
                f"so {written} would drift away in time"
            )
        return "part-lengths", message, f"for the time of part {index} write {right}"
    if reference.lo.plus > reference.hi.plus:
        back = Reference(reference.hi, reference.lo)
        return "range-backwards", f"{written} is written backwards", f"did you mean {table}{back.text(index)}?"
    return None


def shifted(reference: Reference, view: int, other: int) -> bool:
    """Whether a range is as long as one part of a coarser view but lies beside it: 60*j-59..60*j, say.

    With parts counted from 0, hour j has the minutes 60*j..60*j+59.
    """
    exact = same_time(view, other)
    return (
        view > other
        and reference.lo.over == 1
        and reference.hi.plus - reference.lo.plus == exact.hi.plus
        and reference.lo.plus % reference.lo.times != 0
    )
