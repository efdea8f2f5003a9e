"""A workspace: a folder with settings, definitions, landing files, tables and a ledger.

    folder -> settings -> definitions -> ledger

Whoever works on one (commands, Spark jobs, Airflow) starts here.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from partwise import object_store
from partwise.settings import FILE, BadSetting, Settings, read_settings

if TYPE_CHECKING:
    from partwise.compile.program import Program
    from partwise.ledger.ledger import Ledger
    from partwise.tables import Graph

__all__ = ["BadSetting", "NoWorkspace", "Workspace", "find", "not_to_retire", "open_workspace"]


class NoWorkspace(Exception):
    """There is no workspace here; the message is meant for people."""


@dataclass(frozen=True)
class Workspace:
    """An existing folder and its settings."""

    folder: Path
    settings: Settings

    @property
    def definitions_folder(self) -> Path:
        return self.folder / self.settings.definitions

    @property
    def warehouse(self) -> str:
        return self.locate(self.settings.warehouse)

    @property
    def in_object_store(self) -> bool:
        """Whether Spark needs the connector: tables or landing files are there, or `store` says that something is."""
        settings = self.settings
        return (
            any(map(object_store.is_s3, (settings.warehouse, settings.landing)))
            or settings.store != object_store.Store()
        )

    @property
    def spark_conf(self) -> dict[str, str]:
        """Settings for a Spark driver: what the object store needs, and what the user wrote."""
        found = dict(self.settings.spark.conf)
        if not self.in_object_store:
            return found
        return object_store.spark_settings(object_store.access(self.settings.store, os.environ)) | found

    @property
    def ledger_url(self) -> str:
        """The ledger's URL; the path of an SQLite file is relative to the workspace."""
        url = self.settings.ledger
        prefix, slashes, path = url.partition(":///")
        if not slashes or not prefix.startswith("sqlite") or not path or path.startswith(("/", ":", "file:")):
            return url
        return f"{prefix}:///{self.folder.absolute() / path}"

    def locate(self, path: str) -> str:
        """A path as written in settings and definitions: URLs stay, others are relative to the workspace.

        `landing/...` lies in the landing folder, wherever the settings put that.
        """
        if "://" in path:
            return path
        first, slash, rest = path.partition("/")
        landing = self.settings.landing
        if first == "landing" and landing != "landing":
            path = f"{landing.rstrip('/')}{slash}{rest}"
        return path if "://" in path else str(self.folder.absolute() / path)

    def load(self) -> Program:
        """The definitions, with all of their problems. Never raises."""
        from partwise.compile.load import load

        found = load(_near(self.definitions_folder))
        return found if self.settings.state_bytes else found.keeping_nothing()

    def open_ledger(self, now: float) -> Ledger:
        """The ledger, made if there is none yet. Raises partwise.ledger.open.LedgerProblem."""
        from partwise.ledger.open import open_ledger

        if "?host=/" in self.ledger_url:  # a socket: perhaps that of the PostgreSQL of `partwise serve`
            from partwise.serve.postgres import ensure_for

            ensure_for(self.ledger_url)
        return open_ledger(self.ledger_url, now)

    def may_write_ledger(self) -> bool:
        """False for an SQLite file on a read-only mount, or that belongs to others. SQLite writes beside it, too."""
        path = self._ledger_file()
        return path is None or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))

    def copied_ledger(self, folder: str, now: float) -> Ledger:
        """A copy to look at, with what is not in the main file yet: SQLite cannot read its log without writing."""
        from partwise.ledger.open import open_ledger

        path = self._ledger_file()
        assert path is not None
        for name in (path.name, f"{path.name}-wal"):
            if (path.parent / name).exists():
                shutil.copyfile(path.parent / name, Path(folder) / name)
        return open_ledger(f"sqlite:///{Path(folder) / path.name}", now)

    def _ledger_file(self) -> Path | None:
        prefix, slashes, path = self.ledger_url.partition(":///")
        return Path(path) if slashes and prefix.startswith("sqlite") and path else None

    def has_ledger(self) -> bool:
        """Whether there may be a ledger: false only for an SQLite file that does not exist."""
        prefix, slashes, path = self.ledger_url.partition(":///")
        return not (slashes and prefix.startswith("sqlite") and path and not Path(path).exists())

    def definitions(self, ledger: Ledger) -> Program:
        """The definitions as they run here: how windows are kept is settled in the ledger."""
        from partwise.choose.settled import settled

        return settled(self.load(), ledger.strategies())

    def take_over(self, ledger: Ledger, written: Program, now: float) -> Program:
        """Let the ledger know the definitions as they are written now. Returns them as they run here."""
        from partwise.choose.covering import with_covers
        from partwise.choose.settled import as_kept, settled, to_record, too_late_to_share
        from partwise.ledger.records.strategies import SettledMeanwhile, Settlements, settlements

        while True:
            with ledger.database.reading() as r:
                graph = ledger.graph_at(r)
                known = settlements(r, graph)
                record = to_record(written, known, as_kept(r, graph, written, known))
                then = {**known, **{item.view: item for item in record}}
                then = Settlements(then, known.owners, known.covers, known.kept)
                definitions, covers = with_covers(graph, settled(written, then))
                alone = too_late_to_share(r, graph, definitions)
            definitions = definitions.with_own(definitions.owning | alone)
            try:
                ledger.define(definitions.graph(), now, not_to_retire(graph, definitions), known, record, covers)
                return definitions
            except SettledMeanwhile:
                continue


def not_to_retire(known: Graph, definitions: Program) -> frozenset[str]:
    """Tables of the ledger that are not usable just now, but were not removed by their owner either.

    A file that cannot be read may have held any of them: while there is an error, nothing is retired but helpers
    that a view which is usable has no longer.
    """
    usable = definitions.usable
    gone = {name for name, each in known.tables.items() if name not in usable and usable.keys().isdisjoint(each.serves)}
    if not definitions.ok:
        return frozenset(gone)
    written = {name.lower() for name in definitions.tables}
    return frozenset(name for name in gone if any(each.lower() in written for each in known[name].for_views))


def open_workspace(
    given: str | None = None, environment: Mapping[str, str] | None = None, here: Path | None = None
) -> Workspace:
    """The workspace that is meant. Raises NoWorkspace or BadSetting."""
    environment = os.environ if environment is None else environment
    try:
        folder = find(given, environment, here or Path.cwd())
    except FileNotFoundError:
        raise NoWorkspace("The folder you are in does not exist any more; go to another one.") from None
    settings = read_settings(folder / FILE, environment)
    object_store.remember(settings.store, settings.warehouse, settings.landing)
    return Workspace(folder, settings)


def find(given: str | None, environment: Mapping[str, str], here: Path) -> Path:
    """`--workspace`, else PARTWISE_WORKSPACE, else the nearest parent with a partwise.yaml."""
    for text, origin in ((given, "--workspace"), (environment.get("PARTWISE_WORKSPACE"), "PARTWISE_WORKSPACE")):
        if text:
            folder = (here / text).resolve()
            if not folder.is_dir():
                raise NoWorkspace(f"{origin}: there is no folder {text}. `partwise init {text}` makes a workspace.")
            if not (folder / FILE).is_file() and not (folder / Settings().definitions).is_dir():
                raise NoWorkspace(
                    f"{origin}: {text} is not a workspace: it has neither {FILE} nor {Settings().definitions}/. "
                    f"`partwise init {text}` makes it one."
                )
            return folder
    for folder in (here, *here.parents):
        if (folder / FILE).is_file():
            return folder
    raise NoWorkspace(
        f"This is not a workspace: neither {here} nor a folder above it has a {FILE}. "
        "Go to one, name it with --workspace DIR, or make one with `partwise init DIR`."
    )


def _near(path: Path) -> Path:
    """Relative to where the user is, if that is shorter: it is what error messages show."""
    try:
        return path.relative_to(Path.cwd())
    except (ValueError, OSError):
        return path
