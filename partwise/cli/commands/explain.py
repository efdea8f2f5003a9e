"""Show a definition as it runs: generated helpers and SQL, what part j requires, what it feeds; of a source its arrivals."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.cli.open_workspace import definitions_of, part_of, snapshot_of, table_of, workspace_of
from partwise.cli.options import JsonOption, WorkspaceOption, complete_partitioned
from partwise.cli.views.explained import Explained, explained
from partwise.cli.views.explained_state import state_json, state_lines
from partwise.cli.views.show import as_json, heading, moment_json, moment_text, plural, say
from partwise.compile.program import Runnable, Sampled
from partwise.compile.relations import Relation
from partwise.definitions import Source
from partwise.parts import duration_text, part_text

if TYPE_CHECKING:
    from partwise.ledger.read.snapshot import Snapshot
    from partwise.workspace import Workspace


def command(
    view: Annotated[str, typer.Argument(metavar="VIEW", autocompletion=complete_partitioned)],
    part: Annotated[str | None, typer.Option(metavar="PART", help="Use this part as the example.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show the SQL for special cases and for many parts, too.")
    ] = False,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Show a definition as it runs: helpers, SQL, what part j requires and feeds, the strategy and why it was chosen.

    Also the query as a tree, with its key, which columns each reference carries, and which repairs of stale parts are
    exact.

    Of a source: deliveries and rows still to come by the age of a part, and which `close.delay`, `late.accept` and `keep` they
    speak for, with what each would cost.

    \b
    Example:
      partwise explain high_loss
      partwise explain high_loss --all
      partwise explain loss_by_region --part 2026-10-03T10:05
      partwise explain measurements
    """
    from partwise.choose.settled import settled
    from partwise.ledger.records.strategies import settlements

    where = workspace_of(workspace)
    definitions = definitions_of(where)
    with snapshot_of(where, definitions) as snapshot:
        definitions = settled(definitions, settlements(snapshot.r, snapshot.graph))
        table = table_of(snapshot.graph, definitions, view, "view", "source")
        if isinstance(source := definitions.tables.get(table.name), Source):
            _source(snapshot, source, json)
            return
        j = None if part is None else part_of(part, table)
        found = [
            item if item.state is None else replace(item, state=item.state.with_bytes(partial(_bytes, where, snapshot)))
            for item in explained(snapshot, definitions, table.name, j, time.time())
        ]
    if json:
        as_json({"views": [_as_json(item) for item in found]})
        return
    for item in found:
        _show(item, everything, where.settings.timezone)


def _bytes(where: Workspace, snapshot: Snapshot, name: str) -> int | None:
    """Of a helper's files by now; None if there are none."""
    from partwise import storage
    from partwise.ledger.read.pin import version_of
    from partwise.storage.paths import table_path

    at = version_of(snapshot.r, name)
    if at.version is None:
        return None
    try:
        handle = storage.open_at(table_path(where.warehouse, name, at.generation), at.version)
        return sum(file.size for file in handle.files)
    except (storage.StorageError, OSError):
        return None


def _source(snapshot: Snapshot, source: Source, json: bool) -> None:
    from partwise.cli.views.explained_source import explained_source, show, source_json

    found = explained_source(snapshot, source)
    if json:
        as_json({"views": [], "sources": [source_json(found)]})
    else:
        show(found)


def _show(item: Explained, everything: bool, zone: str) -> None:
    view, length = item.view, item.view.part
    heading(f"{view.name}: {_kind(item)}, parts of {duration_text(length)}, from {item.start}")
    if view.description:
        say(view.description)
    if (query := _query(view)) is not None:
        _code("query", query)
    if item.choice:
        say(f"strategy: {item.choice}")
    if view.rolling:
        say("output: rolling, one table without parts: it holds the newest part alone")
    if item.settled is not None:
        say(f"settled: {moment_text(item.settled.at, zone)}{_counts(item.settled.rows, item.settled.groups)}")
    if item.advice:
        say(f"hint: {item.advice}")
    for note in item.notes:
        say(f"note: {note}")
    if item.updates is not None:
        say(f"updates: {item.updates.name}" + (f" ({item.updates.reason})" if item.updates.reason else ""))
        for line in item.updates.lines(1) if everything else ():
            say(line)
    if view.initialize is not None:
        _code("initialize, for the first part (i)", view.initialize.text)
    _code("update, for part j" if view.initialize is not None else "update, for every part (j)", view.update.text)
    for title, text in _special(view, everything):
        _code(title, text)
    say(f"many parts at once: {item.many}")
    say(
        f"job: {f'its own, because {item.job}' if item.job else 'with others that are due over the same parts, while they are small'}"
    )
    if everything and view.single_pass is not None:
        _code("  which is, for parts :first to :last, the part of each row in __j", view.single_pass)
    if item.relation is not None:
        _show_relation(item.relation, view.written.repair_by)
        if item.repair:
            say(f"  for one late row: {item.repair}")
    for name, which in item.dimensions:
        say(f"changes of {name}: {which}")
    for line in state_lines(item.state) if item.state is not None else ():
        say(line)
    if item.refresh:
        say(f"refresh: {item.refresh}")
    if view.written.freshness is not None:
        say(f"freshness: {duration_text(view.written.freshness)} behind at most; so is what it reads")
    if item.sampled is not None:
        say(f"sample: {_sample_text(item.sampled, view)}")
    if item.helpers:
        say(f"helpers: {', '.join(_with_readers(name, serves, view.name) for name, serves in item.helpers)}")
    if item.alone:
        say("sharing: none; its helpers were built for it alone, or those of others begin with another part")
    if item.together is not None:
        say(f"together: {item.together:.2f} of what the views that share helpers would cost with their own")
    say(f"requires: {', '.join(item.requires) or 'nothing'}")
    say(f"  {view.name}[{part_text(item.example, length)}] requires {', '.join(item.example_requires) or 'nothing'}")
    say(f"feeds: {', '.join(item.feeds) or 'nothing'}")
    if item.example_feeds:
        say(f"  {view.name}[{part_text(item.example, length)}] feeds {', '.join(item.example_feeds)}")


def _with_readers(name: str, serves: tuple[str, ...], view: str) -> str:
    others = [other for other in serves if other != view]
    return f"{name} (shared with {' and '.join(others)})" if others else name


def _show_relation(relation: Relation, wanted: str) -> None:
    """The query as a tree, and how parts that late rows touch can be repaired."""
    from partwise.relation.show import as_lines

    say(f"key: {_key_text(relation.key)}")
    say("tree:")
    for line in as_lines(relation.tree, relation.carried):
        say(f"    {line}", "cyan")
    say("repairs:" if wanted == "auto" else f"repairs (by {wanted}, as the definition says):")
    for found in relation.repairs:
        columns = f" of {', '.join(found.columns)}" if found.columns and found.possible else ""
        say(f"  {found.by}{columns}: {'' if found.possible else 'no, '}{found.why}")


def _key_text(key: tuple[str, ...] | None) -> str:
    if key is None:
        return "none is known"
    return ", ".join(key) if key else "there is at most one row in a part"


def _counts(rows: int | None, groups: int | None) -> str:
    if rows is None:
        return ""
    counted = f", by {plural(rows, 'row')} in a part of what it reads"
    return counted if groups is None else f"{counted} and {plural(groups, 'group')} in a pane"


def _kind(item: Explained) -> str:
    if item.view.helper_of:
        return f"helper of {' and '.join(view.name for view in item.view.served)}"
    return "view" if _query(item.view) is None else "view, translated from its query"


def _query(view: Runnable) -> str | None:
    """What the author wrote instead of plain SQL."""
    query = view.written.query
    return None if query is None or view.helper_of else query.text


def _special(view: Runnable, everything: bool) -> list[tuple[str, str]]:
    """What runs instead of the update where that gives the same at a lower cost."""
    once = "instead, where no group has two rows in the part"
    found = []
    if view.unique_update is not None:
        found.append(
            (f"{once} and no key is NULL ({', '.join(view.unique_by)} are looked at before)", view.unique_update)
        )
    if view.fast_update is not None and (everything or view.unique_update is None):
        found.append((f"{once}; it fails and the update runs where one has", view.fast_update))
    return found


def _code(title: str, text: str) -> None:
    say(f"{title}:")
    for line in text.rstrip().splitlines():
        say(f"    {line}", "cyan")


def _sample_text(found: Sampled, view: Runnable) -> str:
    """`5 % of keys by customer, the 100 largest by amount exactly; bounded: revenue`."""
    said = f"{100 * found.ratio:.4g} % of keys by {', '.join(column for column, _ in found.key)}"
    rule = view.written.sample
    if found.keep and rule is not None:
        said += f", the {found.keep:,} largest by {rule.outliers} exactly"
    if found.exact:
        said += f", always {', '.join(found.exact)}"
    return f"{said}; sums can be answered of {', '.join(found.sized) or 'no column'}"


def _sample_json(found: Sampled | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "ratio": found.ratio,
        "key": [column for column, _ in found.key],
        "keep": found.keep,
        "exact": list(found.exact),
        "sums": list(found.sized),
    }


def _settled(item: Explained) -> dict[str, Any] | None:
    found = item.settled
    if found is None:
        return None
    return {"at": moment_json(found.at), "strategy": found.strategy, "rows": found.rows, "groups": found.groups}


def _relation_json(relation: Relation | None) -> dict[str, Any]:
    if relation is None:
        return {"key": None, "repairs": [], "tree": None}
    from partwise.relation.show import as_json as tree_json

    repairs = [
        {"by": found.by, "possible": found.possible, "columns": list(found.columns), "why": found.why}
        for found in relation.repairs
    ]
    key = None if relation.key is None else list(relation.key)
    return {"key": key, "repairs": repairs, "tree": tree_json(relation.tree, relation.carried)}


def _as_json(item: Explained) -> dict[str, Any]:
    view = item.view
    return {
        "name": view.name,
        "helper_of": view.helper_of,
        "part": view.part,
        "start": item.start,
        "query": _query(view),
        "initialize": view.initialize.text if view.initialize else None,
        "update": view.update.text,
        "unique_update": view.unique_update,
        "unique_by": list(view.unique_by),
        "fast_update": view.fast_update,
        "single_pass": view.single_pass,
        "requires": list(item.requires),
        "feeds": list(item.feeds),
        "strategy": item.choice,
        "settled": _settled(item),
        "advice": item.advice,
        "notes": list(item.notes),
        "many_parts": item.many,
        "job_of_its_own": item.job or None,
        "updates": item.updates.name if item.updates is not None else None,
        **_relation_json(item.relation),
        "repair": item.repair or None,
        "dimensions": [{"name": name, "changes": which} for name, which in item.dimensions],
        "state": state_json(item.state),
        "refresh": item.refresh or None,
        "freshness": view.written.freshness,
        "sample": _sample_json(item.sampled),
        "helpers": [{"name": name, "serves": list(serves)} for name, serves in item.helpers],
        "shares": not item.alone and any(len(serves) > 1 for _, serves in item.helpers),
        "together": None if item.together is None else round(item.together, 3),
        "example": {
            "part": part_text(item.example, view.part),
            "requires": list(item.example_requires),
            "feeds": list(item.example_feeds),
        },
    }
