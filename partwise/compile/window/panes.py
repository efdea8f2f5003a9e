"""What the panes of a window hold, as it can be compared with those of others: see `partwise.compile.sharing.cover`."""

from __future__ import annotations

from collections.abc import Mapping

from partwise.compile.model import PaneCell, PaneCondition, PaneKey, PaneShape
from partwise.compile.window.cells import Cell
from partwise.compile.window.plan import WindowPlan
from partwise.sql.expressions import columns
from partwise.sql.parse import tokenise
from partwise.sql.text import Piece, conjunct, plain, quoted


def pane_shape(plan: WindowPlan, merged: Mapping[Cell, str]) -> PaneShape | None:
    """None where rows come from several tables, or names may mean something else inside."""
    texts = [plan.where, *(key.text for key in plan.selection.keys), *(cell.rows for cell in merged)]
    if plan.joins or plan.view.partial or any("->" in text for text in texts):
        return None
    called = plain(plan.alias or plan.table.name)

    def bare(text: str) -> str:
        piece = Piece(text)
        uses = () if text == "COUNT(*)" else columns(piece, [called])
        return piece.splice((use.start, use.end, use.written) for use in uses if use.qualifier)

    def written(text: str) -> tuple[str, ...]:
        found, at = list[str](), 0
        for use in columns(Piece(text), [called]):
            found += [text[at : use.start], use.name]
            at = use.end
        return (*found, text[at:])

    conditions = [conjunct(piece.text) for piece in Piece(plan.where).conjuncts()] if plan.where else []
    return PaneShape(
        plan.table.name.lower(),
        plan.pane,
        tuple(PaneKey(_compared(bare(key.text)), written(key.text), quoted(key.name)) for key in plan.selection.keys),
        tuple(
            PaneCell(_compared(bare(cell.rows)), quoted(name), cell.body.startswith("COUNT"))
            for cell, name in merged.items()
        ),
        tuple(PaneCondition(_compared(bare(each)), written(each)) for each in conditions),
    )


def _compared(text: str) -> str:
    """Upper and lower case are the same but in strings; quotes around names and blanks say nothing."""
    tokens = tokenise(text).tokens
    return " ".join(repr(t.text) if t.token_type.name.endswith("STRING") else t.text.lower() for t in tokens)
