"""Sources and dimensions: from a document of the right shape to a definition."""

from __future__ import annotations

import re
from collections.abc import Iterator

from partwise.checks.catalog import MAX_REMOVED
from partwise.definitions.build_checks import checks_of
from partwise.definitions.definitions import Check, Close, Dimension, Late, Source, Time
from partwise.definitions.names import reserved
from partwise.definitions.problems import Problem
from partwise.definitions.yaml.model import CloseRule, DimensionDocument, SourceDocument
from partwise.definitions.yaml.shape import Reporter, shown
from partwise.definitions.yaml.text import YamlNode
from partwise.object_store import is_remote, is_s3, wrong_url
from partwise.spelling import did_you_mean
from partwise.sql.types.declared import NUMBERS, bad_type, base, type_hint
from partwise.sql.types.names import MOST_DIGITS, decimal_of


def source(
    document: SourceDocument, node: YamlNode, report: Reporter, without: frozenset[str]
) -> tuple[Source, list[Problem]]:
    time = document.time if isinstance(document.time, str) else document.time.column
    unit = None if isinstance(document.time, str) else document.time.unit
    tie = None if isinstance(document.time, str) else document.time.tie
    problems = [
        *_where_from(document, node, report, without),
        *_columns(document.columns, node, report),
        *(() if "time" in without else _time_column(document, time, unit, node, report)),
        *_close(document, node, report),
        *_late(document, node, report),
    ]
    checks, wrong = checks_of(document.checks, node, report, tuple(document.columns) or None)
    key = _files(document.key)
    wrong += _key(key, document.columns, node, report)
    checks += _implied(key, document.max_removed, node, report)
    rule = document.close
    close = Close("manual")
    if isinstance(rule, CloseRule) and rule.marker is not None:
        close = Close("marker", marker=rule.marker)
    elif isinstance(rule, CloseRule) and not rule.manual:
        close = Close("delay", rule.delay or 0)
    definition = Source(
        name=document.source,
        place=report.place(node.get("source") or node),
        part=document.part,
        time=Time(time, unit, tie),
        columns=dict(document.columns),
        files=_files(document.files),
        delta=document.delta,
        close=close,
        late=Late(document.late.accept, document.late.future),
        keep=document.keep,
        poll=document.poll,
        checks=checks,
        description=document.description,
        owner=document.owner,
        tags=tuple(document.tags),
        key=key,
        max_removed=document.max_removed,
    )
    return definition, [*problems, *wrong]


def dimension(
    document: DimensionDocument, node: YamlNode, report: Reporter, without: frozenset[str]
) -> tuple[Dimension, list[Problem]]:
    problems = [
        *_where_from(document, node, report, without),
        *_columns(document.columns, node, report),
        *_valid_from(document, node, report, without),
    ]
    checks, wrong = checks_of(document.checks, node, report, tuple(document.columns) or None)
    key = _files(document.key)
    wrong += _key(key, document.columns, node, report)
    # A key has a row for each time from which on something else is valid.
    unique = (*key, document.valid_from) if key and document.valid_from is not None else key
    checks += _implied(unique, document.max_removed, node, report)
    definition = Dimension(
        name=document.dimension,
        place=report.place(node.get("dimension") or node),
        columns=dict(document.columns),
        files=_files(document.files),
        delta=document.delta,
        poll=document.poll,
        checks=checks,
        description=document.description,
        owner=document.owner,
        tags=tuple(document.tags),
        key=unique,
        max_removed=document.max_removed,
        change=document.change,
        valid_from=document.valid_from,
    )
    return definition, [*problems, *wrong]


def _valid_from(
    document: DimensionDocument, node: YamlNode, report: Reporter, without: frozenset[str]
) -> Iterator[Problem]:
    column = document.valid_from
    if column is None:
        return
    at, name = node.get("valid_from") or node, node.key("valid_from") or node
    if document.change == "forward":
        hint = "remove change: forward; rows say themselves from when on they count"
        yield report(
            node.get("change") or node, "keys-exclude", "valid_from and change: forward cannot both be given", hint
        )
    if not _files(document.key) and "key" not in without:
        hint = "name the columns that tell what a row is about, for example key: currency"
        yield report(name, "missing-key", "key is missing: valid_from needs it to know which row follows which", hint)
    if column.lower() in {each.lower() for each in _files(document.key)}:
        yield report(at, "wrong-value", f"{column} is valid_from and part of the key", "remove it from key")
    known = {each.lower(): kind for each, kind in document.columns.items()}
    if document.columns and column.lower() not in known:
        hint = did_you_mean(column, document.columns, f"the columns are {', '.join(document.columns)}")
        yield report(at, "unknown-column", f"the table has no column {column}", hint)
    elif column.lower() in known and base(known[column.lower()]) not in ("timestamp", "timestamp_ltz", "date"):
        kind = known[column.lower()]
        yield report(
            at, "bad-type", f"{column} is {kind}; valid_from is a timestamp or a date", "declare it so in columns"
        )


def _files(files: str | list[str] | None) -> tuple[str, ...]:
    return () if files is None else (files,) if isinstance(files, str) else tuple(files)


def _key(key: tuple[str, ...], columns: dict[str, str], node: YamlNode, report: Reporter) -> Iterator[Problem]:
    """Of a Delta table that others write the columns may not be known."""
    there = {name.lower() for name in columns}
    for at, column in enumerate(key):
        if columns and column.lower() not in there:
            where = node.walk(("key", at))[1] if node.walk(("key", at))[0] or len(key) > 1 else node.get("key") or node
            hint = did_you_mean(column, columns, f"the columns are {', '.join(columns)}")
            yield report(where, "unknown-column", f"the table has no column {column}", hint)


def _implied(key: tuple[str, ...], max_removed: float | None, node: YamlNode, report: Reporter) -> tuple[Check, ...]:
    """What `key` and `max_removed` ask for, as checks: they are made, told, held back and accepted as all others are."""
    found = []
    if key:
        arguments = {"column_list": list(key), "ignore_row_if": "never"}
        place = report.place(node.key("key") or node)
        found.append(Check("expect_compound_columns_to_be_unique", arguments, "error", place))
    if max_removed is not None:
        place = report.place(node.key("max_removed") or node)
        found.append(Check(MAX_REMOVED, {"share": max_removed}, "error", place))
    return tuple(found)


_TEMPLATE = re.compile(r"\$\{.*?\}|\{\{.*?\}\}|\{%.*?%\}")
_NO_TEMPLATE = "write the path itself; settings that differ from site to site belong in partwise.yaml"


def _is_template(text: str) -> str:
    return f"{shown(text)} would be taken as it stands: there are no variables and no Jinja here"


def _where_from(
    document: SourceDocument | DimensionDocument, node: YamlNode, report: Reporter, without: frozenset[str]
) -> Iterator[Problem]:
    head = node.pairs[0][0]
    if document.files is not None and document.delta is not None:
        yield report(
            node.key("delta") or head, "keys-exclude", "files and delta cannot both be given", "keep one of them"
        )
    elif document.files is None and document.delta is None and not without & {"files", "delta"}:
        yield report(head, "missing-key", "files or delta is missing", "where do the rows come from?")
    if document.files is not None and not document.columns and "columns" not in without:
        hint = "for example columns: {event_time: timestamp, loss: double}"
        yield report(node.key("files") or head, "missing-key", "columns is missing: files need it", hint)
    for at, pattern in enumerate(_files(document.files)):
        where = node.walk(("files", at))[1]
        if not pattern.strip():
            yield report(where, "wrong-value", "files is empty", "for example landing/measurements/*.csv")
        elif template := _TEMPLATE.search(pattern):
            yield report(where, "wrong-value", _is_template(template[0]), _NO_TEMPLATE)
        elif not re.search(r"\.(csv|json|jsonl|ndjson|parquet)(\.gz)?$|[*}\]]$|/$", pattern.strip(), re.IGNORECASE):
            hint = "name the files by their ending, for example landing/measurements/*.csv"
            yield report(where, "wrong-value", f"{shown(pattern)} is none of .csv, .json and .parquet", hint)
        elif wrong := wrong_url(pattern.strip()):
            yield report(where, "wrong-value", f"{shown(pattern)} cannot be reached", wrong)
        elif is_remote(pattern.strip()) and not is_s3(pattern.strip()):
            hint = "files are loaded from folders and from s3://bucket/folder; mount this store, or use delta:"
            yield report(where, "wrong-value", f"{shown(pattern)} cannot be reached", hint)
    if isinstance(document.files, list) and not document.files:
        yield report(node.get("files") or head, "wrong-value", "files is empty", "for example landing/m/*.csv")
    if document.delta is not None and not document.delta.strip():
        yield report(node.get("delta") or head, "wrong-value", "delta is empty", "give the path of a Delta table")
    elif document.delta is not None and (template := _TEMPLATE.search(document.delta)):
        yield report(node.get("delta") or head, "wrong-value", _is_template(template[0]), _NO_TEMPLATE)
    elif document.delta is not None and (wrong := wrong_url(document.delta.strip(), tables=True)):
        yield report(node.get("delta") or head, "wrong-value", f"{shown(document.delta)} cannot be reached", wrong)


def _columns(columns: dict[str, str], node: YamlNode, report: Reporter) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for name, kind in columns.items():
        key, value = node.walk(("columns", name))
        at = key or value
        if reserved(name):
            hint = "call it something else; Partwise stores part and part_timestamp with every table"
            yield report(at, "reserved-name", f"the column name {name} is used by Partwise itself", hint)
        elif not name.strip() or re.search(r"[ ,;{}()\n\t=]", name):
            yield report(
                at, "bad-name", f"{shown(name)} cannot be a column name", "use letters, digits and underscores"
            )
        if name.lower() in seen:
            message = f"the columns {seen[name.lower()]} and {name} differ only in case, which Spark does not see"
            yield report(at, "duplicate-column", message)
        seen[name.lower()] = name
        if (bad := bad_type(kind)) is not None:
            yield report(value, "bad-type", *_bad_type(bad))


def _bad_type(kind: str) -> tuple[str, str]:
    """What is wrong with a type, and what to write."""
    if base(kind) == "interval":
        return f"{shown(kind)} cannot be stored: Delta has no intervals", "store the seconds as bigint or double"
    if (digits := decimal_of(kind)) is not None:
        if digits[0] > MOST_DIGITS:
            return f"{shown(kind)} has more digits than a decimal can have", f"at most {MOST_DIGITS}: decimal(38,2)"
        if digits[1] > digits[0]:
            return (
                f"{shown(kind)} has more digits behind the point than in all",
                "decimal(10,2): ten in all, two behind",
            )
    return f"{shown(kind)} is not a Spark type", type_hint(kind)


def _time_column(
    document: SourceDocument, time: str, unit: str | None, node: YamlNode, report: Reporter
) -> Iterator[Problem]:
    at = node.walk(("time", "column"))[1]
    if not document.columns:
        return
    tie = None if isinstance(document.time, str) else document.time.tie
    if tie is not None and tie.lower() not in {name.lower() for name in document.columns}:
        hint = did_you_mean(tie, document.columns, f"the columns are {', '.join(document.columns)}")
        where = node.walk(("time", "tie"))[1]
        yield report(where, "unknown-column", f"the column {tie} is not among the columns", hint)
    kind = next((kind for name, kind in document.columns.items() if name.lower() == time.lower()), None)
    if kind is None:
        hint = did_you_mean(time, document.columns, f"the columns are {', '.join(document.columns)}")
        yield report(at, "unknown-column", f"the time column {time} is not among the columns", hint)
    elif base(kind) in NUMBERS and unit is None:
        hint = f"write time: {{column: {time}, unit: seconds}} (or milliseconds)"
        yield report(at, "time-unit", f"{time} holds numbers ({kind}); say what they count", hint)
    elif base(kind) in ("timestamp", "timestamp_ntz", "timestamp_ltz", "date") and unit is not None:
        where = node.walk(("time", "unit"))[1]
        yield report(where, "time-unit", f"{time} holds times ({kind}) and has no unit", f"write time: {time}")
    elif bad_type(kind) is None and (base(kind) in ("boolean", "binary", "variant") or "<" in kind):
        yield report(at, "bad-type", f"{time} is {kind}, which is no time", "a timestamp, a date, text or a number")


def _late(document: SourceDocument, node: YamlNode, report: Reporter) -> Iterator[Problem]:
    """Parts of a Delta table are taken as they are: which of their rows came late, nobody can tell."""
    if document.delta is not None and document.late.accept is not None:
        at = node.walk(("late", "accept"))[0] or node.key("late") or node.pairs[0][0]
        hint = "leave it away; `late: {future: ...}` works for both"
        yield report(at, "keys-exclude", "late.accept is for files, not for a Delta table that others write", hint)


def _close(document: SourceDocument, node: YamlNode, report: Reporter) -> Iterator[Problem]:
    rule = document.close
    if not isinstance(rule, CloseRule) or (at := node.get("close")) is None:
        return
    given = [key for key in ("delay", "marker", "manual") if getattr(rule, key) is not None]
    if len(given) != 1:
        message = f"close has {' and '.join(given)}" if given else "close is empty"
        yield report(at, "keys-exclude", message, "give one of delay, marker and manual")
    elif rule.manual is False:
        yield report(at, "wrong-value", "manual: false has no effect", "give a delay or a marker")
    elif rule.marker is not None and "{part}" not in rule.marker:
        hint = "for example landing/measurements/{part}.done"
        yield report(node.walk(("close", "marker"))[1], "wrong-value", "the marker does not contain {part}", hint)
