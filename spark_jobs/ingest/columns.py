"""A source whose declared columns have changed: its table gets the new ones, with all rows, in one commit."""

from __future__ import annotations

from pyspark.sql import functions as F

from partwise.ledger.write.commit import Entry
from partwise.storage import schema as schemas
from spark_jobs.ingest.job import Job, contents_of, reopened
from spark_jobs.ingest.publish import record
from spark_jobs.step import read


class BadColumns(Exception):
    """Rows that are stored already do not fit the columns as declared now; the message is meant for people."""


def fit_columns(work: Job, schema: str) -> str | None:
    """Give the table this schema. New columns are NULL in old rows, removed ones go, other types are cast.

    Every part gets a new digest, and so a revision: its content did change. Returns what was done.
    """
    if schemas.normal(work.handle.schema) == schema:
        return None
    old, new = dict(schemas.fields(work.handle.schema)), dict(schemas.fields(schema))
    have = {name.lower(): name for name in old}
    rows = read.parts(work.engine.spark, work.handle)
    columns, lossy = [], []
    for name, kind in new.items():
        before = have.get(name.lower())
        wanted = schemas.sql_type(kind)
        if before is None:
            columns.append(f"CAST(NULL AS {wanted}) AS {schemas.quoted(name)}")
        elif old[before] == kind:
            columns.append(f"{schemas.quoted(before)} AS {schemas.quoted(name)}")
        else:
            columns.append(f"try_cast({schemas.quoted(before)} AS {wanted}) AS {schemas.quoted(name)}")
            lossy.append(
                (
                    name,
                    wanted,
                    f"{schemas.quoted(before)} IS NOT NULL AND try_cast({schemas.quoted(before)} AS {wanted}) IS NULL",
                )
            )
    if lossy:
        counts = rows.agg(*(F.expr(f"count_if({condition})") for _, _, condition in lossy)).collect()[0]
        for (name, wanted, _), count in zip(lossy, counts, strict=True):
            if count:
                raise BadColumns(
                    f"{count} stored rows of {work.name} have a {name} that is no {wanted}; keep its type, or give the new column another name"
                )
    files = work.stage(rows.selectExpr(*columns), expected=work.handle.rows, schema=schema)
    work.engine.passed("columns staged")
    contents = contents_of(work.digests(files, schema) if schemas.PART in new else {})
    state = work.state
    entry = Entry(
        table=work.name,
        generation=state.generation,
        fingerprint=work.fingerprint,
        pin=None,
        parts={p: c for p, c in contents.items() if p in state.existing},
        open={p: c for p, c in contents.items() if p not in state.existing},
        reason="columns changed",
    )
    record(work, entry, files, (), schema)
    reopened(work)
    return _said(old, new)


def _said(old: dict[str, object], new: dict[str, object]) -> str:
    lower = {name.lower(): kind for name, kind in old.items()}
    added = [n for n in new if n.lower() not in lower]
    removed = [n for n in old if n.lower() not in {m.lower() for m in new}]
    other = [n for n in new if n.lower() in lower and lower[n.lower()] != new[n]]
    pieces = [(added, "added (NULL in rows that were there)"), (removed, "removed"), (other, "of another type")]
    return "columns changed: " + "; ".join(f"{', '.join(names)} {what}" for names, what in pieces if names)
