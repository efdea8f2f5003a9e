"""The ledger's tables. Planning reads `due` and `have`, never `part`: its cost does not grow with history."""

from __future__ import annotations

from functools import cache

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, MetaData, String, Table, Text, text

metadata = MetaData()


def _table(name: str, *columns: Column[object] | Index) -> Table:
    # Clustered by the primary key on SQLite as well: a part's neighbours are on the same page.
    return Table(name, metadata, *columns, sqlite_with_rowid=False)


def _key(name: str, kind: type = String) -> Column[object]:
    return Column(name, String(255) if kind is String else BigInteger, primary_key=True, autoincrement=False)


#: One row. `seq` numbers every writing transaction, `defined` is the last one that changed a definition. `at` is the
#: ledger's time: it grows with the sequence, whatever the clocks of the writers say. `watched`: from this sequence on
#: the ledger knows what was due when.
clock = _table(
    "clock",
    _key("id", int),
    Column("seq", BigInteger, nullable=False),
    Column("defined", BigInteger, nullable=False),
    Column("at", Float, nullable=False),
    Column("watched", BigInteger, nullable=False),
)

#: One row per table: its definition as the planner sees it, and what is settled about it.
catalog = _table(
    "catalog",
    _key("table"),
    Column("kind", String(16), nullable=False),
    Column("length", BigInteger, nullable=False),
    Column("fingerprint", String(64), nullable=False),
    Column("defined_seq", BigInteger, nullable=False),
    Column("definition", Text, nullable=False),  # partwise.tables.Table as JSON
    Column("start", BigInteger),  # settled when the first part is built
    Column("floor", BigInteger),  # parts below it are expired
    Column("generation", Integer, nullable=False),  # a new part length is a new table under the same name
    Column("retired", Boolean, nullable=False),
    Column("updated_at", Float),
    Column("frozen_hits", BigInteger, nullable=False),  # late changes that could not reach expired parts
    Column("forward_since", BigInteger),  # of a dimension whose versions count forward: since this sequence
)

#: One row per existing part. `changed_seq` is when what its readers see changed last; new versions of a forward dimension
#: do not count for those that there are. `as_of` is the sequence at which its inputs were read, `self_as_of` for its own table.
part = _table(
    "part",
    _key("table"),
    _key("part", int),
    Column("revision", Integer, nullable=False),
    Column("changed_seq", BigInteger, nullable=False),
    Column("as_of", BigInteger, nullable=False),
    Column("self_as_of", BigInteger, nullable=False),
    Column("fingerprint", String(64), nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("digest", String(80), nullable=False),
    Column("version", BigInteger),
    Column("updated_at", Float, nullable=False),
    Column("born", BigInteger),  # when all that it is made from had come to exist; of a view only where it matters
    Column("born_at", BigInteger),  # when the source part begins that came to exist last of them; None: not known
)

#: Every change of every part, for `changes` and `why`.
revision = _table(
    "revision",
    _key("table"),
    _key("part", int),
    _key("seq", int),
    Column("revision", Integer, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("digest", String(80), nullable=False),
    Column("at", Float, nullable=False),
    Column("reason", Text, nullable=False),
    Column("as_of", BigInteger),  # the pin; None for sources, and for what older versions of Partwise wrote
    Column("mixed", Text),  # inputs that were not up to date at the pin, as JSON; None: all were
    Column("superseded", Boolean),  # whether an input changed between the pin and the commit
    Index("revision_by_time", "table", "at"),
)

#: Which version of a forward dimension counts for what came to exist with source parts that begin between `lo` and `hi`
#: (seconds since 1970), whatever was current then. `version` None: again the one that was. The newest row decides.
repin = _table(
    "repin",
    _key("table"),
    _key("seq", int),
    Column("lo", BigInteger, nullable=False),
    Column("hi", BigInteger, nullable=False),
    Column("version", BigInteger),
    Column("who", String(255), nullable=False),
    Column("at", Float, nullable=False),
)

#: Of dimensions whose rows are valid for a time: from when to when (seconds since 1970) what is valid changed, by sequence.
validity_change = _table(
    "validity_change",
    _key("table"),
    _key("seq", int),
    _key("lo", int),
    Column("hi", BigInteger, nullable=False),
)

#: Which parts exist, as maximal runs.
have = _table("have", _key("table"), _key("lo", int), Column("hi", BigInteger, nullable=False))

#: Which parts must be computed (never built, or stale), as disjoint ranges painted with their newest cause.
due = _table(
    "due",
    _key("table"),
    _key("lo", int),
    Column("hi", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),  # the newest cause; cleared only by a step that pinned at or after it
    Column("since", Float, nullable=False),  # the oldest moment since which it has been due without a break
    Column("cause", String(16), nullable=False),
    Column("cause_table", String(255)),
    Column("cause_lo", BigInteger),
    Column("cause_hi", BigInteger),
    Column("since_seq", BigInteger),  # the sequence that belongs to `since`; 0: nobody wrote it down
)

#: Which parts were due from one sequence until before another: `due` as it was, for as long as reads are promised.
was_due = _table(
    "was_due",
    _key("table"),
    _key("until_seq", int),
    _key("lo", int),
    Column("hi", BigInteger, nullable=False),
    Column("since_seq", BigInteger, nullable=False),
)

#: Parts that were computed while inputs were not up to date, until they are repaired or the inputs turn out unchanged.
mixed = _table(
    "mixed",
    _key("table"),
    _key("part", int),
    Column("as_of", BigInteger, nullable=False),  # the pin
    Column("reads", Text, nullable=False),  # those inputs, as JSON
)

#: Tables that began again: since when, and since when their new content has all parts (until then the old one is read).
generation = _table(
    "generation",
    _key("table"),
    _key("generation", int),
    Column("began_seq", BigInteger, nullable=False),
    Column("whole_seq", BigInteger),
)

#: Reads that are under way. Upkeep keeps what they read; one that is not heard of any more expires.
reader = _table(
    "reader",
    Column("id", String(32), primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("who", String(255), nullable=False),
    Column("at", Float, nullable=False),
    Column("expires", Float, nullable=False),
)

#: The Delta version of each table after each sequence that made one, in Delta order, without gaps.
version = _table(
    "version",
    _key("table"),
    _key("seq", int),
    Column("generation", Integer, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("at", Float, nullable=False),
    Index("version_by_time", "at"),
)

#: One writer at a time per table. The fence only grows; a holder with an older one is refused.
lease = _table(
    "lease",
    _key("table"),
    Column("fence", BigInteger, nullable=False),
    Column("holder", String(255)),
    Column("expires", Float, nullable=False),
    Column("seq", BigInteger),  # when it was taken: whoever holds it reads nothing older
)

#: The last failure of a part that is still due. Gone when the part is computed.
failure = _table(
    "failure",
    _key("table"),
    _key("part", int),
    Column("kind", String(16), nullable=False),  # check | query | infrastructure
    Column("pin", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("retry_at", Float),  # None: held until a newer cause or a request
    Column("at", Float, nullable=False),
    Column("message", Text, nullable=False),
)

#: Parts of tables that are being made again: what they held, so that the same content is no change.
lost = _table(
    "lost",
    _key("table"),
    _key("part", int),
    Column("revision", Integer, nullable=False),
    Column("changed_seq", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("digest", String(80), nullable=False),
    Column("updated_at", Float, nullable=False),
    Column("born", BigInteger),
    Column("born_at", BigInteger),
)

#: Generations that were begun to make a table again. `whole` is the sequence since which it has all parts.
rebuild = _table(
    "rebuild",
    _key("table"),
    Column("generation", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("at", Float, nullable=False),
    Column("whole", BigInteger),
)

#: Views whose quick way of computing many parts failed on real data: they are computed part by part, until they change.
careful = _table(
    "careful",
    _key("table"),
    Column("way", String(16), primary_key=True),  # fast: one row a group; lifted: many parts in one query
    Column("fingerprint", String(64), nullable=False),
    Column("why", Text, nullable=False),
    Column("at", Float, nullable=False),
)

#: When rows of source parts arrived: the lateness curve.
arrival = _table(
    "arrival",
    _key("table"),
    _key("part", int),
    _key("seq", int),
    Column("at", Float, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("late", Boolean, nullable=False),
    Index("arrival_late", "late", "table", "rows"),  # counting late rows reads no others
)

#: Rows of a source part that is not closed yet: stored, but the part does not exist for anyone.
open_part = _table(
    "open_part",
    _key("table"),
    _key("part", int),
    Column("rows", BigInteger, nullable=False),
    Column("digest", String(80), nullable=False),
)

#: Where a source or dimension stands: the newest event time seen, the last file id given, and for a watched
#: Delta table which one it is and up to which version it has been taken over.
intake = _table(
    "intake",
    _key("table"),
    Column("watermark", BigInteger),  # microseconds since 1970
    Column("last_file", BigInteger, nullable=False),
    Column("origin", Text),
    Column("position", BigInteger),
)

#: Files that a source has taken in, by name. A row's `_file` is the id; a corrected file has a new one.
file = _table(
    "file",
    _key("table"),
    Column("name", String(4096), primary_key=True),
    Column("id", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("mtime", BigInteger, nullable=False),  # nanoseconds since 1970
    Column("hash", String(64), nullable=False),
    Column("state", String(16), nullable=False),  # loaded | retracted
    Column("lo", BigInteger),  # parts that its rows may be in; None: it brought none
    Column("hi", BigInteger),
    Column("at", Float, nullable=False),
)

#: Rows that could not be placed. They are written before the data are committed, and count once `kept` is set by
#: the transaction that records the commit; what never gets there is swept.
quarantine = _table(
    "quarantine",
    _key("table"),
    Column("batch", String(32), primary_key=True),
    _key("n", int),
    Column("file_id", BigInteger, nullable=False),
    Column("file", String(4096), nullable=False),
    Column("reason", Text, nullable=False),
    Column("row", Text, nullable=False),
    Column("layout", Text),  # names of the columns of a line of CSV, as JSON; None: the row is JSON itself
    Column("at", Float, nullable=False),
    Column("kept", Boolean, nullable=False),
    Column("line", BigInteger),  # of the file; of a Parquet file the row
)

#: Steps that run now. A row counts while the lease with its fence is held.
running = _table(
    "running",
    _key("table"),
    Column("fence", BigInteger, nullable=False),
    Column("lo", BigInteger, nullable=False),
    Column("hi", BigInteger, nullable=False),
    Column("done", BigInteger, nullable=False),
    Column("of", BigInteger, nullable=False),
    Column("since", Float, nullable=False),
)

#: How long recorded steps took: estimates are made from the newest ones.
step = _table(
    "step",
    _key("table"),
    _key("seq", int),
    Column("parts", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("at", Float, nullable=False),
    Column("from_kept", BigInteger),  # parts that were computed from kept outputs; None: nobody counted
)

#: How stale parts of views were repaired where that took long enough to be worth a choice, and what had been foreseen.
repair = _table(
    "repair",
    _key("table"),
    _key("seq", int),
    Column("by", String(16), nullable=False),  # recompute | keys | merge
    Column("costs", Text, nullable=False),  # seconds by way, as the general rule says, as JSON
    Column("foreseen", Float, nullable=False),  # seconds, by what earlier repairs of the view took
    Column("seconds", Float, nullable=False),
    Column("parts", BigInteger, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("keys", BigInteger, nullable=False),
    Column("rows_read", BigInteger, nullable=False),
    Column("rows_copied", BigInteger, nullable=False),
    Column("at", Float, nullable=False),
)

#: Changes of dimensions. A row with `by` (columns of the dimension, a table and its columns, as JSON) says which parts of
#: that table hold a key that changed; for whatever is joined by something else the change matters everywhere.
dimension_change = _table(
    "dimension_change",
    _key("table"),
    _key("seq", int),
    Column("n", Integer, primary_key=True, autoincrement=False),  # 0: the change itself
    Column("by", Text),
    Column("parts", Text),  # ranges, as JSON
)

#: The task of Airflow that wrote at a sequence, a revision or a failure.
written = _table(
    "written",
    _key("table"),
    _key("seq", int),
    Column("at", Float, nullable=False),
    Column("dag", String(255), nullable=False),
    Column("run", String(255), nullable=False),
    Column("task", String(255), nullable=False),
    Column("map_index", Integer, nullable=False),  # -1 unless the task is mapped
    Index("written_by_time", "table", "at"),
)

#: Backfills. What one has done follows from the parts and revisions since its sequence: nothing is counted twice.
backfill = _table(
    "backfill",
    _key("seq", int),  # of the transaction that began it; its number
    Column("table", String(255), nullable=False),
    Column("lo", BigInteger, nullable=False),
    Column("hi", BigInteger, nullable=False),
    Column("asked", Text, nullable=False),  # parts by table, as JSON: those requested, and those that they need first
    Column("downstream", Boolean, nullable=False),
    Column("state", String(16), nullable=False),  # running | stopped | done
    Column("holder", String(255), nullable=False),
    Column("began", Float, nullable=False),
    Column("beat", Float, nullable=False),  # when its process was last known to live
)

#: One row: as-of reads are promised from this sequence on. What is older may be gone.
promise = _table(
    "promise", _key("id", int), Column("seq", BigInteger, nullable=False), Column("at", Float, nullable=False)
)

#: Views of whose ready parts Airflow has been told. `begun` is the sequence at which a run of the view began to work;
#: until then it is None, and whatever becomes ready is that run's as well.
announcement = _table(
    "announcement",
    _key("table"),
    Column("keys", Text, nullable=False),  # as JSON, for people
    Column("at", Float, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("begun", BigInteger),
    Column("run", String(255)),
)

#: What the last checks of a part found. Of those that passed only the newest are kept.
checked = _table(
    "checked",
    _key("table"),
    _key("part", int),
    Column("seq", BigInteger, nullable=False),
    Column("at", Float, nullable=False),
    Column("outcome", String(16), nullable=False),  # passed | warned | failed | accepted
    Column("rows", BigInteger, nullable=False),
    Column("digest", String(80), nullable=False),  # of the content that was checked
    Column("mark", String(64), nullable=False),  # of the checks
    Column("results", Text, nullable=False),  # partwise.checks.results as JSON
)

#: What people decided about a part: publish this content though it failed its checks, or close it.
decision = _table(
    "decision",
    _key("table"),
    _key("part", int),
    Column("kind", String(16), primary_key=True),  # accept | close
    Column("digest", String(80)),  # the content that was accepted
    Column("who", String(255), nullable=False),
    Column("at", Float, nullable=False),
)

#: Files of a source that are not taken in because parts that exist would fail their checks with them.
held_file = _table(
    "held_file",
    _key("table"),
    Column("name", String(4096), primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("mtime", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("lo", BigInteger, nullable=False),  # the parts that failed
    Column("hi", BigInteger, nullable=False),
    Column("at", Float, nullable=False),
)

#: How a window is kept, settled when there were rows to count. `mark` says for which query; another one is settled again.
strategy = _table(
    "strategy",
    _key("view"),
    Column("strategy", String(16), nullable=False),  # merge | subtract | recompute | last
    Column("mark", String(64), nullable=False),
    Column("rows", BigInteger),  # in a part of what it reads; None: nobody has counted
    Column("groups", BigInteger),  # in a pane
    Column("again", Boolean, nullable=False),  # to be counted again before the next step
    Column("why", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("at", Float, nullable=False),
)


#: What of a view's query is kept so that late rows cost less, by the deliveries that were expected when it was chosen.
#: `mark` says for which query. Views of which nothing is kept have no row.
kept_state = _table(
    "kept_state",
    _key("view"),
    Column("join", Text, nullable=False),  # aliases of the inputs that are kept joined, as JSON
    Column("groups", Boolean, nullable=False),  # whether the groups of a GROUP BY are kept
    Column("mark", String(64), nullable=False),
    Column("until", BigInteger, nullable=False),  # seconds after which a part hardly changes any more
    Column("bytes", Float, nullable=False),  # of a part, as estimated; costs are in rows read, of a part
    Column("cost", Float, nullable=False),
    Column("recompute", Float, nullable=False),
    Column("deliveries", Float, nullable=False),  # that were expected
    Column("seq", BigInteger, nullable=False),
    Column("at", Float, nullable=False),
)

#: When it was last looked at what is worth keeping: it is again when there are clearly more late deliveries.
state_review = _table(
    "state_review",
    _key("id", int),
    Column("late", BigInteger, nullable=False),
    Column("budget", BigInteger, nullable=False),
    Column("at", Float, nullable=False),
)


#: Views that read panes which hold more than they need. A helper that others have as well is written down with all that
#: makes it, so that it stays when they go.
cover = _table("cover", _key("view"), Column("base", Text, nullable=False), Column("seq", BigInteger, nullable=False))


#: When the refresh policy of a view fired last: what was due by then is released.
refresh = _table(
    "refresh",
    _key("view"),
    Column("fired_at", Float, nullable=False),
    Column("fired_seq", BigInteger, nullable=False),
    Column("why", Text, nullable=False),
)

#: Rows that came for a view with a refresh policy since it fired last, by input.
refresh_rows = _table("refresh_rows", _key("view"), _key("input"), Column("rows", BigInteger, nullable=False))

#: What estimates from a sample said of a part before it was refreshed as of `seq`, and what the refresh gave.
estimate_check = _table(
    "estimate_check",
    _key("table"),
    _key("seq", int),
    _key("part", int),
    Column("column", String(255), primary_key=True),
    Column("published", Float),
    Column("estimate", Float, nullable=False),
    Column("low", Float, nullable=False),
    Column("high", Float, nullable=False),
    Column("truth", Float, nullable=False),
    Column("covered", Boolean, nullable=False),
    Column("ratio", Float, nullable=False),
    Column("at", Float, nullable=False),
)


@cache
def complete() -> MetaData:
    """The tables with all of their indexes, for whoever makes or compares a database.

    The indexes with a condition are added only here: for them SQLAlchemy imports PostgreSQL's dialect, which
    would be a tenth of the time that a command takes to start.
    """
    _partial_index("part_empty", part.c.table, part.c.part, where="rows = 0")
    # Repairs of all tables since a given time, without reading what was only built since then.
    _partial_index("revision_repairs", revision.c.at, revision.c.table, revision.c.part, where="revision > 1")
    return metadata


def _partial_index(name: str, *columns: Column[object], where: str) -> None:
    Index(name, *columns, sqlite_where=text(where), postgresql_where=text(where))
