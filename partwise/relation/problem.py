"""What the reader of queries does not follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partwise.sql.columns import place

if TYPE_CHECKING:
    from sqlglot import exp


class NotUnderstood(Exception):
    """Something that rules do not follow; it becomes Opaque."""

    def __init__(self, why: str, at: exp.Expr | None = None) -> None:
        super().__init__(why)
        self.start = place(at)[0] if at is not None else 0
