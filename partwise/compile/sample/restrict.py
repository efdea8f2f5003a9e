"""What a sample reads of each reference: rows of chosen keys only, so that cleaning costs little.

The query keeps its text; where it names a table that carries the whole key, it reads that table's rows of sampled and
exact keys instead. Spark takes a hash down by itself through some queries, but not below FULL JOIN, and never together
with exact keys, which it would choose at the end. The same condition stays on top of the query, so what is not
understood here is read whole and stays right.

A view that reads its own earlier parts reads those of its sample: the hash of a key is the same in every part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from partwise.definitions.definitions import Statement
from partwise.relation import Tree
from partwise.relation.carried import Carried
from partwise.relation.tree import Node, Scan, children, whole
from partwise.sql.references import FoundReference, splice
from partwise.sql.text import plain, quoted

#: Names that a filtered reference has beside its own columns.
PLACE, KEY = "sample_place", "sample_key_"
#: The condition over SQL of the key's columns, and the alias of the exact ones if they are joined.
Condition = Callable[[Sequence[str], str], str]


class OwnKeyLost(Exception):
    """A view reads earlier parts of its own, but not by its key."""


def restricted(
    statement: Statement,
    name: str,
    tree: Tree,
    carried: Mapping[int, Carried],
    key: Sequence[str],
    sizes: str | None,
    condition: Condition,
) -> str:
    """The text over filtered references. `sizes`: a query for exact keys of the part, by PLACE and KEY; None if there are
    none. Raises OwnKeyLost."""
    numbers = {id(found): n for n, found in enumerate(statement.found.tables)}
    columns = {scan.occurrence: scan.names for scan in _scans(tree.root)}

    def read(found: FoundReference) -> str:
        by = carried.get(numbers[id(found)], {})
        if found.table.lower() == name.lower():
            if any(plain(by.get(c, "")) != plain(c) for c in key):
                raise OwnKeyLost
            return own_rows(found, name, tree.names)
        if not set(key) <= by.keys() or statement.found.names_part or _is_taken(columns.get(numbers[id(found)], ())):
            return found.written
        if found.brackets is None:
            return found.written  # a dimension is small, and what it says of a part may depend on the part
        texts = [by[c] for c in key]
        if sizes is None:
            return f"(SELECT * FROM {found.written} WHERE {condition(texts, '')})"
        on = " AND ".join(f"x.{KEY}{n} <=> {text}" for n, text in enumerate(texts))
        return f"(SELECT r.* FROM {found.written} r LEFT JOIN ({sizes}) x ON {on} WHERE {condition(texts, 'x')})"

    return splice(statement.text, read, statement.index, statement.found)


def own_rows(found: FoundReference, name: str, columns: Sequence[str]) -> str:
    """Earlier parts of the view, as its sample has them."""
    brackets = f"[{found.brackets}]"
    return f"(SELECT {', '.join(map(quoted, columns))} FROM {name}__sample{brackets})"


def _is_taken(columns: Sequence[str]) -> bool:
    return any(c.lower().startswith("sample_") for c in columns)


def _scans(node: Node) -> Iterator[Scan]:
    if isinstance(node, Scan):
        yield node
    for child in (*children(node), *whole(node)):
        yield from _scans(child)
