"""What the rules say of TPC-H's queries is what the docs say."""

from __future__ import annotations

import os
import re
from pathlib import Path

from partwise.relation import build, carried, delta, key
from partwise.relation.tree import Opaque, walk
from partwise.sql.references import find
from tests.relation.tpch import QUERIES, TABLES

PAGE = Path(__file__).parents[2] / "docs" / "repairs.md"
_HEAD = "| query | key | carried | merges |\n|---|---|---|---|\n"


def line(number: int) -> str:
    sql = QUERIES[number]
    tree = build(sql, TABLES.get)
    known, how = key(tree), delta(tree)
    names = [table.written for table in find(sql).tables]
    said = [f"{', '.join(columns)} by {names[n]}" for n, columns in carried(tree).items() if columns]
    text = "none" if known is None else ", ".join(known) or "one row"
    merges = f"no: {how.obstacle.operator}" if how.obstacle else "yes" if how.published else "with partials kept"
    return f"| {number} | {text} | {'; '.join(dict.fromkeys(said)) or 'nothing'} | {merges} |"


def test_every_query_is_understood() -> None:
    for number, sql in QUERIES.items():
        tree = build(sql, TABLES.get)
        assert not [node.why for node in walk(tree.root) if isinstance(node, Opaque)], number


def test_the_table_in_the_docs() -> None:
    wanted = _HEAD + "\n".join(line(number) for number in QUERIES) + "\n"
    text = PAGE.read_text(encoding="utf-8")
    if os.environ.get("PARTWISE_WRITE_GOLDEN"):
        text = re.sub(re.escape(_HEAD) + r"(\|.*\n)*", lambda _: wanted, text)
        PAGE.write_text(text, encoding="utf-8")
    assert wanted in text, "PARTWISE_WRITE_GOLDEN=1 writes the table again"
