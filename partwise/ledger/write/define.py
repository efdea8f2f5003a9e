"""Definitions as ledger state: a change takes a sequence and makes exactly its own parts due."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, text, update

from partwise.ledger.catalog import Catalog, from_json, settled, to_json
from partwise.ledger.database import Reading, Writing
from partwise.ledger.read.part_facts import LedgerParts, PartsToCome
from partwise.ledger.runs import clear, due_rows, existing, paint
from partwise.ledger.schema import (
    catalog,
    checked,
    decision,
    failure,
    file,
    generation,
    have,
    held_file,
    intake,
    lease,
    lost,
    mixed,
    open_part,
    part,
    quarantine,
)
from partwise.ledger.write.due_painting import frozen_below, look_at_readers, paint_what_can_be_built
from partwise.ledger.write.turning import turn
from partwise.parts import FOREVER, Parts
from partwise.plan.model import Cause, parts_of_due
from partwise.plan.reach import EVERYTHING, buildable, inputs_exist
from partwise.tables import Graph, Table

_KNOWN = select(catalog.c.table, catalog.c.definition, catalog.c.retired, catalog.c.start)
_ADD = insert(catalog)
_SET = update(catalog).where(catalog.c.table == bindparam("t"))
_DEFINED = text("UPDATE clock SET defined = :seq WHERE id = 1")


@dataclass(frozen=True)
class Changes:
    """What a new set of definitions changes in the ledger, by table name."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()  # changed so that its old parts mean nothing: a new generation
    settings: tuple[str, ...] = ()  # changed in a way that leaves every part as it is
    retired: tuple[str, ...] = ()
    forward: tuple[str, ...] = ()  # dimensions, among the changed ones, whose new versions count forward from now on
    retroactive: tuple[str, ...] = ()  # those whose newest version counts for everything again

    def __bool__(self) -> bool:
        return any((self.added, self.changed, self.restarted, self.settings, self.retired))


def changes(r: Reading, graph: Graph, broken: Collection[str] = ()) -> Changes:
    """Compare definitions with the ledger. A table whose file is broken just now is left as it was."""
    return _compared(r, graph, broken)[0]


def _compared(r: Reading, graph: Graph, broken: Collection[str]) -> tuple[Changes, PartsToCome]:
    known = {row.table: row for row in r.on.execute(_KNOWN)}
    facts = PartsToCome(r)
    lists: dict[str, list[str]] = {
        k: [] for k in ("added", "changed", "restarted", "settings", "retired", "forward", "retroactive")
    }
    restarted: set[str] = set()
    for name in graph.order:
        row, new = known.get(name), graph[name]
        if row is None:
            lists["added"].append(name)
            facts.expect(new)
            continue
        old = from_json(row.definition)
        if old.forward != new.forward and not row.retired:
            lists["forward" if new.forward else "retroactive"].append(name)
        again = new.of_state and (row.retired or old.fingerprint != new.fingerprint)
        if again or _restarts(facts, old, new, row) or not restarted.isdisjoint(new.input_names):
            restarted.add(name)
            lists["restarted"].append(name)
        elif old.fingerprint != new.fingerprint or row.retired:
            lists["changed"].append(name)
            facts.expect(new)
        elif old != new:
            lists["settings"].append(name)
    lists["retired"] = [n for n, row in known.items() if n not in graph.tables and n not in broken and not row.retired]
    return Changes(**{key: tuple(names) for key, names in lists.items()}), facts


def _restarts(facts: PartsToCome, old: Table, new: Table, row: Any) -> bool:
    """Whether the table has to begin again: other part numbers, another first part, or existing parts
    that the new definition could not build because they would read what does not exist. For a table that was retired
    the old definition is as good as another one: what it read may have changed and gone since.

    Whatever is computed from such a table begins again as well: some of its parts may have lost
    what they were computed from. A change of the query alone never does this.
    """
    start = row.start
    moved = new.start.rule == "at" and start is not None and start != new.start.part
    moved = moved or (old.start.rule == new.start.rule == "earliest" and old.start.part != new.start.part)
    if (old.kind, old.length, old.rolling) != (new.kind, new.length, new.rolling) or moved:
        return True
    same = (old.inputs, old.initial, old.optional) == (new.inputs, new.initial, new.optional) and not row.retired
    if start is None or same or new.kind != "view":
        return False
    built = facts.existing(new.name, -FOREVER, FOREVER)
    return bool(built - buildable(new, start, built, Parts(), facts))


def define(w: Writing, graph: Graph, store: Catalog, broken: Collection[str] = ()) -> Changes:
    """Take over definitions. One transaction, one sequence for all of them."""
    found, facts = _compared(w, graph, broken)
    if not found:
        return found
    before = store.graph(w)
    w.on.execute(_DEFINED, {"seq": w.seq})
    w.defined = w.seq
    for name in found.added:
        table = graph[name]
        w.on.execute(_ADD, {"table": name, "generation": 0, "frozen_hits": 0, **_values(w, table), "start": None})
        w.on.execute(insert(lease), {"table": name, "fence": 0, "holder": None, "expires": 0.0})
    _check_again(w, graph, (*found.changed, *found.settings))
    for name in (*found.changed, *found.settings, *found.restarted):
        w.on.execute(_SET.values(**_values(w, graph[name])), {"t": name})
    for name in found.restarted:
        _restart(w, name)
    for name in found.changed:
        _bring_back(w, graph[name])
    for name in found.retired:
        w.on.execute(_SET.values(retired=True, defined_seq=w.seq), {"t": name})
        clear(w, name, EVERYTHING)
        w.on.execute(delete(mixed).where(mixed.c.table == name))
        w.on.execute(delete(failure).where(failure.c.table == name))
    known = store.graph(w)
    turn(w, before, known, found.restarted)
    moved = {*found.added, *found.restarted, *found.changed}
    for name in known.order:  # in order: a restarted table's readers are looked at after it
        if name in moved and known[name].kind == "view":
            _begin(w, known[name], keep_start=_serves_parts(w, facts, known[name]))
            look_at_readers(w, known, name)
    return found


def _serves_parts(w: Writing, facts: PartsToCome, helper: Table) -> bool:
    """A new helper of a view that has parts begins where they need it, in whatever order what it reads is built."""
    if not any(existing(w, view) for view in helper.serves) or settled(w, helper.name).start is not None:
        return False
    # A sample of a view that reads its own past begins where the view began, or it has other sums.
    view = helper.helper_of if helper.of_sample and helper.self_references else None
    w.on.execute(_SET.values(start=facts.start(view or helper.name)), {"t": helper.name})
    return True


def _check_again(w: Writing, graph: Graph, names: Collection[str]) -> None:
    """Parts that failed other checks than today's are tried again."""
    wanted = set(names)
    for row in w.on.execute(_KNOWN).all():
        if row.table in wanted and from_json(row.definition).checks != graph[row.table].checks:
            w.on.execute(delete(failure).where(failure.c.table == row.table, failure.c.kind == "check"))


def _values(w: Writing, table: Table) -> dict[str, object]:
    return {
        "kind": table.kind,
        "length": table.length,
        "fingerprint": table.fingerprint,
        "defined_seq": w.seq,
        "definition": to_json(table),
        "retired": False,
    }


def _bring_back(w: Writing, table: Table) -> None:
    """A generated helper that is computed in another way is built again from the beginning, expired parts too:
    without them the old parts of its view would keep the content of the old definition for ever."""
    now = settled(w, table.name)
    if table.helper_of is None or now.floor is None or now.start is None:
        return
    if frozen_below(w, table, replace(now, floor=None)) <= now.start:
        w.on.execute(_SET.values(floor=None), {"t": table.name})


def begin_anew(w: Writing, graph: Graph, name: str) -> None:
    """Restart a view and everything computed from it."""
    begin_at(w, graph, name, None)


def begin_at(w: Writing, graph: Graph, name: str, start: int | None) -> None:
    """The same, and let the view begin at this part."""
    affected = graph.downstream([name])
    for each in (n for n in graph.order if n in affected):
        _restart(w, each)
        fixed = each == name and start is not None
        if fixed:
            w.on.execute(_SET.values(start=start), {"t": name})
        _begin(w, graph[each], keep_start=fixed)


def rebuild_table(w: Writing, graph: Graph, name: str) -> None:
    """A new generation of a view whose result has other columns: the same parts, built again.

    Its readers keep what they have, and look again as each part appears.
    """
    start = settled(w, name).start
    _restart(w, name)
    w.on.execute(_SET.values(start=start), {"t": name})
    _begin(w, graph[name], keep_start=True)
    for reader in graph.consumers.get(name, ()):
        begins = settled(w, reader).start
        if begins is not None:
            able = existing(w, reader) | inputs_exist(graph[reader], begins, EVERYTHING, LedgerParts(w))
            clear(w, reader, EVERYTHING - able)


def _restart(w: Writing, name: str) -> None:
    """A new generation: the old parts go, their history and versions stay for as-of reads."""
    # What a source has taken in goes with the table that held it: its files are loaded again.
    clear(w, name, EVERYTHING)
    for rows in (part, lost, have, failure, open_part, intake, file, quarantine, checked, decision, held_file, mixed):
        w.on.execute(delete(rows).where(rows.c.table == name))
    w.on.execute(_SET.values(start=None, floor=None, generation=catalog.c.generation + 1), {"t": name})
    row = {"table": name, "generation": settled(w, name).generation, "began_seq": w.seq, "whole_seq": None}
    w.on.execute(insert(generation), row)


def _begin(w: Writing, view: Table, keep_start: bool = False) -> None:
    """Every part that exists or could be built is due, after a revert too: under the other definition
    changes of inputs that it did not read were not painted."""
    if view.start.rule == "at":
        w.on.execute(_SET.values(start=view.start.part), {"t": view.name})
    elif not existing(w, view.name) and not keep_start:
        w.on.execute(_SET.values(start=None), {"t": view.name})
    paint_what_can_be_built(w, view, Cause("definition"))


def request(w: Writing, graph: Graph, table: str, parts: Parts) -> Parts:
    """Mark parts that exist or are due already as requested by someone; returns those that could be marked."""
    view, now = graph[table], settled(w, table)
    waiting = parts_of_due(due_rows(w, table))
    asked = (existing(w, table) | waiting) & parts.within(frozen_below(w, view, now), FOREVER)
    paint(w, table, asked, Cause("requested"))
    for lo, hi in asked.ranges:
        w.on.execute(delete(failure).where(failure.c.table == table, failure.c.part.between(lo, hi)))
    return asked


def move_start(w: Writing, graph: Graph, table: str, start: int, same_query: bool = False) -> None:
    """Let a view begin earlier: what follows its old first part is looked at again. `same_query`: the first part is
    computed as any other, and reads no earlier one."""
    view, now = graph[table], settled(w, table)
    if now.start is None or start >= now.start:
        raise ValueError(f"{table} starts at {now.start}; its start can only be moved to an earlier part")
    w.on.execute(_SET.values(start=start), {"t": table})
    built = existing(w, table)
    already = parts_of_due(due_rows(w, table))
    paint(w, table, inputs_exist(view, start, EVERYTHING, LedgerParts(w)) - built - already, Cause("start"))
    if not same_query:
        paint(w, table, built & Parts.single(now.start), Cause("start"))  # it was INITIALIZE, it becomes UPDATE
    look_at_readers(w, graph, table)
