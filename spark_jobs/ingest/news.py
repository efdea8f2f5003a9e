"""Whether a source or dimension has anything to take in, found out from listings and the ledger alone.

No lease, no Spark, and delta-rs only where a definition changed or a Delta table of others is watched: this is what
`partwise run` does for every source when nothing has arrived. In doubt there is news: taking in nothing is harmless.
"""

from __future__ import annotations

from sqlalchemy import bindparam, select

from partwise.definitions import Dimension, Source
from partwise.ledger.ledger import Ledger
from partwise.ledger.read.pin import Version
from partwise.ledger.records.checks import lagging
from partwise.ledger.schema import catalog, part
from partwise.parts import Parts
from partwise.sources.files import newest, to_read
from partwise.storage.files import folder
from partwise.storage.log import exists_after
from partwise.storage.paths import table_path
from partwise.workspace import Workspace
from spark_jobs.ingest.closing import complete_parts
from spark_jobs.ingest.files.find import listing, look
from spark_jobs.ingest.state import SourceState, read_state

_DEFINED = select(catalog.c.defined_seq).where(catalog.c.table == bindparam("t"))
# With a version: parts that people closed are recorded without a look at the table.
_RECORDED = (
    select(part.c.self_as_of)
    .where(part.c.table == bindparam("t"), part.c.version.is_not(None))
    .order_by(part.c.part.desc())
    .limit(1)
)


def has_news(ledger: Ledger, workspace: Workspace, table: Source | Dimension) -> bool:
    """The ledger has taken over the definitions already. Problems with files are news: taking in reports them."""
    version = ledger.current(table.name)
    if version.version is None:
        return True  # its table has not been made yet
    if exists_after(folder(table_path(workspace.warehouse, table.name, version.generation)), version.version):
        return True  # a commit that the ledger does not know: its writer died
    state = read_state(ledger, table.name)
    try:
        if table.delta is not None:
            arrived = _moved_on(workspace, table.delta, state)
        else:
            arrived = _files_differ(workspace, table, state) or _other_columns(ledger, workspace, table, version)
    except Exception:
        return True
    return arrived or _to_close(ledger, workspace, table, state)


def _files_differ(workspace: Workspace, table: Source | Dimension, state: SourceState) -> bool:
    looks = look(listing(workspace, table.files, table.close.marker if isinstance(table, Source) else None))
    known = state.files
    if isinstance(table, Dimension):
        looks, known = newest(looks, known)
    found = {f.name: f for f in to_read(looks.values(), known)}
    if state.held.keys() - found.keys():
        return True  # what was held back is gone, or was taken in
    return any(not state.is_held(f.name, f.size, f.mtime) for f in found.values())


def _moved_on(workspace: Workspace, delta: str, state: SourceState) -> bool:
    from spark_jobs.ingest.foreign.look import look_at

    watched = look_at(workspace.locate(delta))
    return (state.intake.origin, state.intake.position) != (watched.origin, watched.version)


def _other_columns(ledger: Ledger, workspace: Workspace, table: Source | Dimension, version: Version) -> bool:
    """Whether the stored columns may be others than declared. A part that was recorded since the definition changed
    proves that they are not; else the table itself is asked."""
    with ledger.database.reading() as r:
        defined = r.on.execute(_DEFINED, {"t": table.name}).scalar()
        recorded = r.on.execute(_RECORDED, {"t": table.name}).scalar()
    if defined is not None and recorded is not None and recorded > defined:
        return False
    from partwise import storage
    from partwise.storage import schema as schemas
    from spark_jobs.ingest.stored import plain_schema

    assert version.version is not None
    declared = plain_schema(dict(table.columns), parts=isinstance(table, Source))
    handle = storage.open_at(table_path(workspace.warehouse, table.name, version.generation), version.version)
    return declared is None or schemas.normal(handle.schema) != declared


def _to_close(ledger: Ledger, workspace: Workspace, table: Source | Dimension, state: SourceState) -> bool:
    with ledger.database.reading() as r:
        if lagging(r, table.name):
            return True  # held back, and accepted or checked in another way since
    if isinstance(table, Dimension):
        return False
    # Parts that their checks hold back wait for other rows, which are news by themselves.
    waiting = (p for p, content in state.opened.items() if content.rows and p not in state.failing)
    opened = Parts.single(*waiting) - state.existing
    closing = complete_parts(ledger, workspace, table, state, opened)
    return bool(closing.parts - Parts.single(*state.failing)) or bool(closing.left)
