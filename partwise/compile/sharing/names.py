"""Helpers under names that say what they hold: `measurements__panes_3fa1c2d4`, whichever view they were generated for.

Two helpers have the same name if they mean the same: their queries in canonical form, what these read, their part length,
where they start, and which engine computes them. A helper that reads another one is told apart by that one's name, so the
name covers all that is behind it. A text is never compared without the tables behind it: rolling sums of different
conditions have the same text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from partwise.compile.fingerprint import fingerprint, hashed, input_meaning
from partwise.compile.program import Alternative, CompiledView, Runnable
from partwise.compile.sharing.text import renamed, with_names, without_alias
from partwise.definitions.definitions import Definition, View
from partwise.tables import is_dated

#: Stands for the helper itself while its name is being made.
_ITSELF = "itself__"


def shared(view: CompiledView, tables: Mapping[str, Definition]) -> CompiledView:
    """The same view with helpers that others may read, beside the ways with its own. `tables` by lower-case name."""
    own = view.own or view.alternatives
    ways = tuple(_renamed(way, tables) for way in view.alternatives)
    if not may_share(view.written) or _is_dated(view) or ways == view.alternatives:
        return replace(view, alternatives=own, own=())
    # A pattern is kept in one way: what it means covers its helper by now.
    mark = view.mark or fingerprint(ways[0].table, _known(ways[0], tables))
    return replace(view, alternatives=ways, own=own, mark=mark)


def _is_dated(view: CompiledView) -> bool:
    """Which version of a forward dimension counts is said for each part of such a helper, as its view sees it."""
    return any(is_dated(view.name, helper.name) for way in view.alternatives for helper in way.helpers)


def may_share(view: View) -> bool:
    """A refresh policy holds for the helpers of a view, and decides when others would see their parts."""
    return view.share and view.query is not None and view.refresh is None and view.output == "snapshot"


def _renamed(way: Alternative, tables: Mapping[str, Definition]) -> Alternative:
    names: dict[str, str] = {}
    known = _known(way, tables)
    helpers = []
    for helper in way.helpers:
        if not helper.beside:
            meaning = _meaning(helper, names, known)
            names[helper.name.lower()] = _name(helper, known, names, meaning)
            helper = replace(helper, meaning=meaning)
        helpers.append(_with_names(helper, names))
    if not names:
        return way
    return replace(way, table=_with_names(way.table, names), helpers=tuple(helpers))


def _known(way: Alternative, tables: Mapping[str, Definition]) -> dict[str, Definition | Runnable]:
    return {**tables, **{helper.name.lower(): helper for helper in way.helpers}}


def _meaning(helper: Runnable, names: Mapping[str, str], tables: Mapping[str, Definition | Runnable]) -> str:
    called = {**names, helper.name.lower(): _ITSELF}
    texts = [without_alias(with_names(statement, called)) for statement in helper.statements]
    inputs = {called.get(name, name): input_meaning(tables.get(name)) for name in helper.inputs}
    return hashed(
        {
            "kind": "helper",
            "part": helper.part,
            "statements": texts,
            "inputs": inputs,
            "optional": sorted(called.get(name.lower(), name.lower()) for name in helper.optional),
            "sketches": list(helper.sketches),
            "start": [helper.start.rule, helper.start.part],
            "engine": helper.written.engine,
        }
    )


def _name(helper: Runnable, tables: Mapping[str, Definition | Runnable], names: Mapping[str, str], meaning: str) -> str:
    """After the table that its rows come from, through the helpers that it reads."""
    read = next(name for name in helper.inputs if name != helper.name.lower())
    first = names[read].partition("__")[0] if read in names else getattr(tables.get(read), "name", read)
    kind = helper.name[len(helper.written.name) + 2 :].rstrip("0123456789").rstrip("_")
    return f"{first}__{'panes' if kind == 'merged_panes' else kind}_{meaning[:8]}"


def _with_names(table: Runnable, names: Mapping[str, str]) -> Runnable:
    def text(sql: str | None) -> str | None:
        return None if sql is None else renamed(sql, names)

    return replace(
        table,
        name=names.get(table.name.lower(), table.name),
        initialize=None if table.initialize is None else with_names(table.initialize, names),
        update=with_names(table.update, names),
        optional=tuple(names.get(name.lower(), name) for name in table.optional),
        fast_update=text(table.fast_update),
        unique_update=text(table.unique_update),
        single_pass=text(table.single_pass),
    )
