"""The rows of the page: tables that belong together stand together, what is read before what reads it."""

from __future__ import annotations

from dataclasses import dataclass

from partwise.tables import Graph


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Tables that are connected by what they read. `title` names their sources."""

    title: str
    tables: tuple[str, ...]


def groups(graph: Graph) -> tuple[RowGroup, ...]:
    """Sources first, then dimensions, then views in the order of computing, each followed by its helpers.

    A dimension connects nothing: half of a warehouse may read the same calendar. It stands with its first reader.
    """
    root: dict[str, str] = {}
    for name in graph.order:
        if graph[name].kind == "dimension":
            continue
        root[name] = name
        for other in graph[name].input_names:
            if other in root and (mine := _find(root, name)) != (theirs := _find(root, other)):
                root[mine] = theirs
    members: dict[str, list[str]] = {}
    for name in root:
        members.setdefault(_find(root, name), []).append(name)
    for name in graph.order:
        if graph[name].kind == "dimension":
            reader = next((r for r in graph.consumers.get(name, ()) if r in root), None)
            members.setdefault(_find(root, reader) if reader else name, []).append(name)
    return tuple(RowGroup(_title(graph, names), _ordered(graph, names)) for names in members.values())


def _find(root: dict[str, str], name: str) -> str:
    while root[name] != name:
        root[name] = root[root[name]]
        name = root[name]
    return name


def _title(graph: Graph, names: list[str]) -> str:
    sources = [n for n in names if graph[n].kind == "source"] or [n for n in names if graph[n].helper_of is None]
    return ", ".join(sources[:2]) + (f" and {len(sources) - 2} more" if len(sources) > 2 else "")


def _ordered(graph: Graph, names: list[str]) -> tuple[str, ...]:
    found = [n for n in names if graph[n].kind == "source"] + [n for n in names if graph[n].kind == "dimension"]
    helpers: dict[str, list[str]] = {}
    for name in names:
        if (served := graph[name].helper_of) is not None:
            helpers.setdefault(served, []).append(name)
    for name in names:
        if graph[name].kind == "view" and graph[name].helper_of is None:
            found += [name, *helpers.pop(name, [])]
    return (*found, *(name for rest in helpers.values() for name in rest))


def depths(graph: Graph) -> dict[str, int]:
    """How many steps of computing lie between a table and the sources."""
    found: dict[str, int] = {}
    for name in graph.order:
        found[name] = max((found[other] + 1 for other in graph[name].input_names if other in found), default=0)
    return found
