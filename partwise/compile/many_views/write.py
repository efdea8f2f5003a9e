"""Several queries over the same rows as the text of one: each has columns of its own, and one that says where its rows are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from partwise.compile.many_views.model import Fusable


@dataclass(frozen=True, slots=True)
class Fused:
    """`text` of the query; for each of its members the column that is true where there is a row of it (None: everywhere),
    and its columns in the order of the member's own."""

    text: str
    present: tuple[str | None, ...]
    columns: tuple[tuple[str, ...], ...]


def fused(members: Sequence[Fusable]) -> Fused:
    """All of the same source and keys."""
    items: list[str] = []
    present: list[str | None] = []
    columns: list[tuple[str, ...]] = []
    for at, member in enumerate(members):
        flag = None if member.present is None else f"__is{at}"
        if member.present is not None:
            items.append(f"COALESCE({member.present}, FALSE) AS {flag}")
        present.append(flag)
        own = tuple(f"__c{at}_{n}" for n in range(len(member.items)))
        columns.append(own)
        for name, item in zip(own, member.items, strict=True):
            guarded = item if member.present is None else f"CASE WHEN {member.present} THEN {item} END"
            items.append(f"{guarded} AS {name}")
    first = members[0]
    lines = [f"SELECT {', '.join(items)}", f"FROM {first.source}"]
    conditions = list(dict.fromkeys(member.where for member in members))
    if None not in conditions:
        lines.append(f"WHERE {' OR '.join(f'({condition})' for condition in conditions)}")
    if first.keys:
        lines.append(f"GROUP BY {', '.join(first.keys)}")
    return Fused("\n".join(lines), tuple(present), tuple(columns))
