"""Checks across tables: the other table must be there, and its parts must fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from partwise.checks.catalog import EQUALS, PREVIOUS
from partwise.definitions.definitions import Definition, Dimension, Source, View, inputs_of
from partwise.definitions.problems import Problem, list_of
from partwise.definitions.yaml.shape import Reporter
from partwise.definitions.yaml.text import YamlNode
from partwise.parts import duration_text
from partwise.spelling import did_you_mean


def across(
    definition: Definition, tables: Mapping[str, Definition], broken: frozenset[str], node: YamlNode, report: Reporter
) -> Iterator[Problem]:
    """`tables` by lower-case name."""
    yield from _refreshed_by(definition, tables, node, report)
    written = node.get("checks")
    for at, item in enumerate(written.items if written is not None else ()):
        if item.get(PREVIOUS) is not None and isinstance(definition, Dimension):
            message = f"{definition.name} is a dimension, which has no parts"
            yield report(item.key(PREVIOUS) or item, "bad-check", message)
        asked = node.walk(("checks", at, EQUALS, "table"))[1] if item.get(EQUALS) is not None else None
        if asked is None or not asked.text:
            continue
        name = asked.text.lower()
        other = tables.get(name)
        if other is None:
            if name not in broken:
                hint = did_you_mean(asked.text, [d.name for d in tables.values()], "name a source, dimension or view")
                yield report(asked, "unknown-table", f"there is no table {asked.text}", hint)
        elif name not in _upstream(definition, tables):
            kind = "it reads" if isinstance(definition, View) else "that is fed from outside, too"
            message = f"{definition.name} can be compared only with a table {kind}"
            yield report(
                asked, "bad-check", message, "otherwise nothing would repeat the check when the other one changes"
            )
        elif not (isinstance(other, Dimension) or isinstance(definition, Dimension)) and definition.part % other.part:
            message = (
                f"parts of {other.name} ({duration_text(other.part)}) do not fit into those of "
                f"{definition.name} ({duration_text(definition.part)})"
            )
            yield report(asked, "part-lengths", message)


def _refreshed_by(
    definition: Definition, tables: Mapping[str, Definition], node: YamlNode, report: Reporter
) -> Iterator[Problem]:
    """Rows are counted as they reach the view: of what it reads itself."""
    if not isinstance(definition, View) or definition.refresh is None:
        return
    read = [tables[name].name for name in inputs_of(definition) if name in tables and name != definition.name.lower()]
    for name, _ in definition.refresh.rows:
        if name and name.lower() not in {each.lower() for each in read}:
            at = node.walk(("refresh", "rows", name))
            message = f"refresh.rows names {name}, which {definition.name} does not read"
            yield report(
                at[0] or at[1], "unknown-table", message, did_you_mean(name, read, f"it reads {list_of(read, 'and')}")
            )


def _upstream(definition: Definition, tables: Mapping[str, Definition]) -> set[str]:
    if not isinstance(definition, View):
        mine = definition.name.lower()
        return {name for name, d in tables.items() if isinstance(d, Source | Dimension) and name != mine}
    found: set[str] = set()
    todo = list(inputs_of(definition))
    while todo:
        name = todo.pop()
        if name in tables and name not in found:
            found.add(name)
            todo += inputs_of(tables[name])
    return found - {definition.name.lower()}
