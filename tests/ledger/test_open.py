"""Opening: new, current, old and newer ledgers; several processes at once; messages that help."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, MetaData, insert, inspect, select, text

from partwise.ledger.database import Database
from partwise.ledger.migrations import HEAD, VERSION_TABLE
from partwise.ledger.open import SCRIPTS, LedgerProblem, open_ledger, upgrade
from partwise.ledger.schema import complete
from tests.ledger.conftest import NOW
from tests.ledger.processes import run_together
from tests.ledger.workers import open_and_tick


def _scripts(folder: Path = SCRIPTS) -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(folder))
    return ScriptDirectory.from_config(config)


REVISIONS = [script.revision for script in _scripts().walk_revisions()]


def _differences(on: Connection) -> list[object]:
    context = MigrationContext.configure(
        on, opts={"version_table": VERSION_TABLE, "compare_type": True, "compare_server_default": True}
    )
    return list(compare_metadata(context, complete()))


def _shape(on: Connection) -> dict[str, object]:
    """What the comparison of Alembic leaves out: keys, nullability, and SQLite's clustering."""
    found = inspect(on)
    shape: dict[str, object] = {}
    for name in sorted(complete().tables):
        columns = [(c["name"], str(c["type"]), c["nullable"]) for c in found.get_columns(name)]
        indexes = sorted((i["name"], tuple(i["column_names"])) for i in found.get_indexes(name))
        shape[name] = (columns, found.get_pk_constraint(name)["constrained_columns"], indexes)
        if on.dialect.name == "sqlite":
            sql = on.execute(text("SELECT sql FROM sqlite_master WHERE name = :n"), {"n": name}).scalar()
            shape[name] = (shape[name], "WITHOUT ROWID" in str(sql))
    return shape


def _fill(on: Connection) -> dict[str, int]:
    """A row in every table, whatever its columns are in this version."""
    there = MetaData()
    there.reflect(on)
    for table in there.tables.values():
        if table.name in (VERSION_TABLE, "clock"):
            continue
        row = {c.name: "x" if c.type.python_type is str else c.type.python_type(1) for c in table.c}
        on.execute(insert(table), row)
    return _counts(on)


def _counts(on: Connection) -> dict[str, int]:
    there = MetaData()
    there.reflect(on)
    return {n: len(on.execute(select(t)).all()) for n, t in there.tables.items() if n != VERSION_TABLE}


def test_the_number_in_the_program_is_the_newest_migration() -> None:
    assert _scripts().get_current_head() == HEAD


def test_a_new_ledger_has_the_tables_of_the_program(empty_url: str, tmp_path: Path) -> None:
    ledger = open_ledger(empty_url, NOW)
    other = Database(f"sqlite:///{tmp_path / 'other.db'}" if ledger.database.sqlite else empty_url)
    with ledger.database.changing_schema() as on:
        assert _differences(on) == []
        migrated = _shape(on)
        if not ledger.database.sqlite:
            complete().drop_all(on)
            complete().create_all(on)
            assert _shape(on) == migrated
    if ledger.database.sqlite:
        with other.changing_schema() as on:
            complete().create_all(on)
            assert _shape(on) == migrated


def test_the_comparison_would_notice_a_forgotten_column(empty_url: str) -> None:
    ledger = open_ledger(empty_url, NOW)
    with ledger.database.changing_schema() as on:
        on.execute(text("ALTER TABLE careful DROP COLUMN why"))
        assert _differences(on) != []


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_earlier_version_is_upgraded_with_its_rows(empty_url: str, revision: str) -> None:
    database = Database(empty_url)
    upgrade(database, head=revision)
    with database.changing_schema() as on:
        before = _fill(on)
    database.close()
    ledger = open_ledger(empty_url, NOW)
    with ledger.database.changing_schema() as on:
        after = _counts(on)
        assert _differences(on) == []
    assert before.keys() - after.keys() <= {"outbox"}, "nobody read it"
    assert {name: after[name] for name in before if name in after} == {n: c for n, c in before.items() if n in after}
    with ledger.database.writing(NOW) as w:
        assert w.seq == 1


_NEXT = """
import sqlalchemy as sa
from alembic import op
revision = "9999"
down_revision = "{head}"


def upgrade():
    with op.batch_alter_table("careful") as batch:
        batch.add_column(sa.Column("told_to", sa.String(20)))
    op.execute("UPDATE careful SET told_to = 'nobody'")
    {more}
"""


def _with_next(folder: Path, more: str = "") -> Path:
    """The migrations as they will be after one more release."""
    shutil.copytree(SCRIPTS, folder / "migrations", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "migrations/versions/v9999_next.py").write_text(_NEXT.format(head=HEAD, more=more))
    return folder / "migrations"


def test_a_version_to_come_keeps_the_rows(url: str, tmp_path: Path) -> None:
    database = Database(url)
    with database.changing_schema() as on:
        before = _fill(on)
    upgrade(database, _with_next(tmp_path), "9999")
    with database.changing_schema() as on:
        assert _counts(on) == before
        assert on.execute(text("SELECT told_to FROM careful")).scalar() == "nobody"


def test_a_migration_that_fails_leaves_no_trace(url: str, tmp_path: Path) -> None:
    database = Database(url)
    with database.changing_schema() as on:
        before, counts = _shape(on), _fill(on)
    with pytest.raises(ZeroDivisionError):
        upgrade(database, _with_next(tmp_path, more="1 / 0"), "9999")
    with database.changing_schema() as on:
        assert (_shape(on), _counts(on)) == (before, counts)
    open_ledger(url, NOW)


def test_a_newer_ledger_is_refused_in_a_sentence(url: str, tmp_path: Path) -> None:
    upgrade(Database(url), _with_next(tmp_path), "9999")
    with pytest.raises(LedgerProblem, match=f"made by a newer Partwise: its schema is 9999, .* up to {HEAD}"):
        open_ledger(url, NOW)


def test_tables_of_others_are_left_alone(empty_url: str) -> None:
    database = Database(empty_url)
    with database.changing_schema() as on:
        on.execute(text("CREATE TABLE part (number INTEGER)"))
        on.execute(text("INSERT INTO part VALUES (7)"))
    with pytest.raises(LedgerProblem, match="tables named part that are not a ledger's"):
        open_ledger(empty_url, NOW)
    with database.changing_schema() as on:
        assert on.execute(text("SELECT number FROM part")).scalars().all() == [7]
        assert inspect(on).get_table_names() == ["part"]


@pytest.mark.parametrize(
    "bad, says",
    [
        ("nonsense", "cannot be understood; write for example sqlite:///ledger.db"),
        ("mysql://localhost/x", "SQLite or PostgreSQL, not in mysql"),
        ("sqlite:////no/such/folder/ledger.db", "no folder /no/such/folder"),
        ("postgresql://me:secret@127.0.0.1:1/x", r"postgresql://me:\*\*\*@127.0.0.1:1/x cannot be opened"),
        ("postgres://me:secret@127.0.0.1:1/x", "cannot be opened"),
    ],
)
def test_what_cannot_be_opened_gets_a_sentence(bad: str, says: str) -> None:
    with pytest.raises(LedgerProblem, match=says) as caught:
        open_ledger(bad, NOW)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_no_database_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_text("This is a text.\n" * 100)
    with pytest.raises(LedgerProblem, match=r"ledger\.db cannot be opened: file is not a database"):
        open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}", NOW)


def test_many_processes_may_open_a_new_ledger_at_once(empty_url: str) -> None:
    results = run_together([(open_and_tick, (empty_url,))] * 6)
    assert sorted(results) == [1, 2, 3, 4, 5, 6]


def test_opening_a_current_ledger_does_not_load_alembic(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    open_ledger(url, NOW).database.close()
    code = (
        "import sys; from partwise.ledger.open import open_ledger; "
        f"open_ledger({url!r}, 1.0).plan(1.0); print([m for m in ('alembic', 'mako', 'psycopg2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "[]"
