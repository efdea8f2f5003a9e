"""What commands start with: the workspace, its definitions, its ledger, and the table that is meant."""

from __future__ import annotations

import getpass
import os
import socket
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from partwise.cli.stop import Stop, wrong_use
from partwise.cli.views.show import plural
from partwise.parts import BadTime, Range, parse_moment, parse_part, parse_range, seconds
from partwise.spelling import did_you_mean
from partwise.workspace import BadSetting, NoWorkspace, Workspace, not_to_retire, open_workspace

if TYPE_CHECKING:
    from partwise.compile.program import Program
    from partwise.definitions.problems import Problem
    from partwise.ledger.ledger import Ledger
    from partwise.ledger.read.snapshot import Snapshot
    from partwise.tables import Graph, Table


def workspace_of(given: str | None) -> Workspace:
    try:
        return open_workspace(given)
    except (NoWorkspace, BadSetting) as why:
        raise wrong_use(str(why)) from None


def workspace_with(path: Path, given: str | None) -> Workspace | None:
    """The workspace whose definitions hold this file or folder: the one that is meant, else the nearest above it."""
    path = path.resolve()
    for here in (Path.cwd(), path.parent):
        try:
            found = open_workspace(given, here=here)
        except NoWorkspace as why:
            if given:
                raise wrong_use(str(why)) from None
            continue
        except BadSetting as why:
            raise wrong_use(str(why)) from None
        folder = found.definitions_folder.resolve()
        read = path.is_dir() or path.suffix in (".yaml", ".yml")
        if read and path.is_relative_to(folder) and not any(p.startswith(".") for p in path.relative_to(folder).parts):
            return found
    return None


#: Problems that commands other than `validate` list.
_PROBLEMS = 10


def definitions_of(workspace: Workspace, quiet: bool = False) -> Program:
    """The definitions; problems are listed on stderr, and what is fine goes on."""
    found = workspace.load()
    folder = workspace.definitions_folder
    if not folder.exists():
        raise Stop(f"There are no definitions: {folder} does not exist. `partwise init DIR` makes an example.")
    if not found.tables and not errors_of(found):
        raise Stop(f"There are no definitions in {folder}. `partwise init DIR` makes an example.")
    if not quiet:
        tell_problems(found)
    return found


def errors_of(definitions: Program) -> list[Problem]:
    return [problem for problem in definitions.problems if problem.severity == "error"]


def tell_problems(definitions: Program) -> None:
    """Each error with its place, and the tables that are left out because of them."""
    errors = errors_of(definitions)
    if not errors:
        return
    left_out = sorted(definitions.tables.keys() - definitions.usable.keys())
    without = f"; left out: {', '.join(left_out)}" if left_out else ""
    print(f"partwise: {plural(len(errors), 'problem')} in the definitions{without}", file=sys.stderr)
    for problem in errors[:_PROBLEMS]:
        print(f"  {problem}", file=sys.stderr)
    more = f", and the other {len(errors) - _PROBLEMS}" if len(errors) > _PROBLEMS else ""
    print(f"  `partwise validate` shows hints{more}", file=sys.stderr)


def problem_json(problem: Problem) -> dict[str, Any]:
    return {key: getattr(problem, key) for key in ("file", "line", "column", "code", "message", "hint", "severity")}


@contextmanager
def ledger_of(workspace: Workspace, now: float, looking: bool = False) -> Iterator[Ledger]:
    """The ledger, made if need be: for commands that write. Whoever is only `looking` needs no right to write."""
    from partwise.ledger.open import LedgerProblem

    with ExitStack() as after:
        try:
            if looking and not workspace.may_write_ledger():
                ledger = workspace.copied_ledger(after.enter_context(TemporaryDirectory(prefix="partwise-")), now)
            else:
                ledger = workspace.open_ledger(now)
        except LedgerProblem as why:
            raise Stop(str(why)) from None
        after.callback(ledger.database.close)
        yield ledger


@contextmanager
def snapshot_of(workspace: Workspace, definitions: Program, now: float | None = None) -> Iterator[Snapshot]:
    """The ledger as of now with the definitions as they are now. Nothing is written, not even a new ledger."""
    from partwise.ledger.open import in_memory
    from partwise.ledger.read.snapshot import as_defined

    now = time.time() if now is None else now
    if not workspace.has_ledger():
        from partwise.choose.covering import with_covers
        from partwise.tables import Graph as NoTables

        definitions, covers = with_covers(NoTables.of(()), definitions)
        with as_defined(in_memory(), definitions.graph(), now, (), covers) as snapshot:
            yield snapshot
        return
    from partwise.choose.covering import with_covers
    from partwise.choose.settled import settled, too_late_to_share

    with ledger_of(workspace, now, looking=True) as ledger:
        definitions = settled(definitions, ledger.strategies())
        with ledger.database.reading() as r:
            graph = ledger.graph_at(r)
            definitions, covers = with_covers(graph, definitions)
            alone = too_late_to_share(r, graph, definitions)
        definitions = definitions.with_own(definitions.owning | alone)
        known = not_to_retire(ledger.graph(), definitions)
        with as_defined(ledger, definitions.graph(), now, known, covers) as snapshot:
            yield snapshot


def table_of(graph: Graph, definitions: Program, name: str, *kinds: str) -> Table:
    """The table that is meant; upper and lower case are the same, as in SQL."""
    names = {table.lower(): table for table in graph.tables}
    found = names.get(name.lower())
    if found is None:
        if name.lower() in {n.lower() for n in definitions.tables}:
            raise Stop(
                f"{name} cannot be used: its definition, or one that it reads, has problems. See `partwise validate`."
            )
        of_kind = [n for n, t in graph.tables.items() if t.helper_of is None and (not kinds or t.kind in kinds)]
        raise wrong_use(f"There is no {' or '.join(kinds) or 'table'} {name}{meant(name, of_kind)}")
    table = graph[found]
    if kinds and table.kind not in kinds:
        of_kind = [n for n, t in graph.tables.items() if t.helper_of is None and t.kind in kinds]
        raise wrong_use(f"{table.name} is a {table.kind}, not a {' or '.join(kinds)}{_there_are(of_kind)}")
    return table


def meant(word: str, known: Iterable[str]) -> str:
    """The end of a sentence: did you mean, or what there is."""
    known = list(known)
    hint = did_you_mean(word, known)
    return f"; {hint}" if hint else _there_are(known)


def _there_are(names: Iterable[str]) -> str:
    shown = sorted(names)
    if not shown:
        return "; there are none."
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    return f"; there {'is' if len(shown) == 1 else 'are'} {', '.join(shown[:8])}{more}."


def part_of(text: str, table: Table) -> int:
    try:
        return parse_part(text, table.length)
    except BadTime as why:
        raise wrong_use(f"PART: {why}.".replace("?.", "?")) from None


def range_of(text: str, table: Table) -> Range:
    try:
        return parse_range(text, table.length)
    except BadTime as why:
        raise wrong_use(f"RANGE: {why}.".replace("?.", "?")) from None


def moment_of(text: str, now: float, option: str = "--since") -> float:
    """A time (UTC), or a length of time before now: `2026-10-03T10:05`, `2 hours`."""
    try:
        return now - seconds(text)
    except BadTime:
        pass
    # As `partwise now` and the answers of `query` write it: with parts of a second.
    whole, dot, fraction = text.strip().removesuffix("Z").partition(".")
    exact = bool(dot) and fraction.isdecimal()
    try:
        return parse_moment(whole if exact else text).timestamp() + (float(f"0.{fraction}") if exact else 0.0)
    except BadTime as why:
        raise wrong_use(f"{option}: {why}; or how long ago, for example '2 hours'.") from None


def holder() -> str:
    """Who writes: shown to others that wait."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid()) if hasattr(os, "getuid") else "someone"
    return f"{user}@{socket.gethostname()} (process {os.getpid()})"
