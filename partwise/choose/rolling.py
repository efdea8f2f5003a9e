"""How a rolling table is kept: written whole each time, or as a wheel of files by when their rows leave.

    whole   the result is computed and written again; one file, read quickly
    wheel   of a grid: only what came, went or has to move is written, some dozens of files

Moving a wheel of small files costs more than writing few rows again, and reading many files costs readers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from partwise.compile.model import Strategy

#: What a turn of the wheel costs of writing the table again, with the rows that only move.
TURN = 0.3
#: Rows from which a wheel pays.
WHEEL = 1_000_000


def by_wheel(rows: int, is_wheel: bool, least: int = WHEEL) -> bool:
    """`is_wheel`: as it is now. It stays so until it has shrunk to a half: each change writes everything."""
    return rows >= (least // 2 if is_wheel else least)


def rolling_costs(panes: int, new: int) -> dict[Strategy, int]:
    """Of one new part of a rolling table whose rows stay for so many parts. `new`: rows that come about in a part."""
    whole = panes * new
    return {"recompute": whole, "grid": round(max(WHEEL, TURN * whole))}
