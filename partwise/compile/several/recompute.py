"""The strategy `recompute`: every part from all rows of its windows. The query itself, with parts for windows."""

from __future__ import annotations

from partwise.compile.model import GeneratedView, QueryView
from partwise.compile.several.read import Several, Stream
from partwise.compile.several.rows import columns_of


def recompute(view: QueryView, query: Several, end: int | None = None, index: str = "j") -> list[GeneratedView]:
    """`end` is where the query ends, should more follow that is written in another way; `index` that of its references."""
    helpers: list[GeneratedView] = []
    names = []
    for stream in query.streams:
        window = stream.reference(view.part).text(index)
        if stream.rows is None:
            names.append(stream.table.name + window)
            continue
        name = f"{view.name}__rows" + (f"_{len(helpers) + 1}" if helpers else "")
        helpers.append(_last_rows(view, stream, name))
        names.append(f"({stream.rows.last(name + window, columns_of(stream.table))})")
    comment = "the query over all rows of its windows (recompute)"
    return [*helpers, GeneratedView(view.name, view.part, query.write(names, end), helper=False, comment=comment)]


def _last_rows(view: QueryView, stream: Stream, name: str) -> GeneratedView:
    """In parts as long as those of the stream, so that a late row changes one of them."""
    assert stream.rows is not None
    comment = f"the last {stream.rows.count} rows of each group in a part of {stream.table.name}"
    text = stream.rows.last(f"{stream.table.name}[j]", columns_of(stream.table))
    part = stream.table.part or view.part
    return GeneratedView(name, part, text, comment=comment, reaches=stream.reference(view.part).lo)
