"""A DAG bundle whose files are rendered from a workspace's definitions."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import Any

from airflow.dag_processing.bundles.base import BaseDagBundle
from sqlalchemy.exc import SQLAlchemyError

from partwise.ledger.open import LedgerProblem
from partwise.workspace import BadSetting, NoWorkspace, open_workspace
from partwise_airflow.render import render

log = logging.getLogger(__name__)

#: Seconds that a changed file is dated ahead. Airflow parses a file again if it is newer than the end of its last
#: parsing: a change while it was just being parsed, which did not see it, would else wait for minutes.
SETTLE = 3.0


class ViewsBundle(BaseDagBundle):
    """`workspace` names the folder; by default it is PARTWISE_WORKSPACE."""

    supports_versioning = False

    def __init__(self, *, workspace: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.workspace = workspace

    @property
    def path(self) -> Path:
        return self.base_dir / "stubs"

    def initialize(self) -> None:
        """Every task comes by here before it is parsed: where a dag-processor keeps the files fresh, they are."""
        if not self._is_fresh():
            try:
                self.refresh()
            except (BadSetting, NoWorkspace, LedgerProblem, SQLAlchemyError, OSError):
                if not self._stamp.exists():
                    raise
                log.exception("the definitions cannot be read now; using the earlier files")
        super().initialize()

    def refresh(self) -> None:
        write(self.path, render(open_workspace(self.workspace)))
        self._stamp.touch()

    @property
    def _stamp(self) -> Path:
        return self.base_dir / "rendered"

    def _is_fresh(self) -> bool:
        try:
            return time.time() - self._stamp.stat().st_mtime < max(60.0, 3 * self.refresh_interval)
        except FileNotFoundError:
            return False

    def get_current_version(self) -> None:
        return None


def write(folder: Path, files: dict[str, str]) -> None:
    """Make the folder hold exactly these files. Several processes may do this at once: files change by renaming."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        file = folder / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            temporary = folder / f".{name}.{os.getpid()}"
            temporary.write_text(text, encoding="utf-8")
            soon = time.time() + SETTLE
            os.utime(temporary, (soon, soon))
            temporary.replace(file)
            log.info("wrote %s", file)
    for old in folder.glob("*.py"):
        if old.name not in files:
            old.unlink(missing_ok=True)
            log.info("removed %s", old)
