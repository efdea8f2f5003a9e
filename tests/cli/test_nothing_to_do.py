"""A run that finds nothing to do costs no more than a look: no JVM, nothing of Spark imported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT

DEFINITIONS = """
source: sales
part: 1 minute
time: at
columns: {at: timestamp, item: string, price: 'decimal(10,2)'}
files: landing/sales*
---
dimension: items
columns: {item: string, tags: array<string>}
files: landing/items.csv
---
view: sold
part: 1 minute
update: SELECT item, COUNT(*) AS n FROM sales[j] GROUP BY item
"""
_IMPORTED = """
import sys
from partwise.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    print("ENDED", end.code)
print("IMPORTED", *(name for name in sys.modules if "." not in name))
"""


def partwise(folder: Path, cache: Path, *words: str) -> tuple[str, set[str]]:
    """What a command printed, and what it imported. There is no Java: whoever starts one fails."""
    environment = {**os.environ, "PARTWISE_CACHE": str(cache), "PYTHONPATH": str(ROOT), "JAVA_HOME": "/no/java"}
    words = (sys.executable, "-c", _IMPORTED, *words)
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said, _, imported = done.stdout.rpartition("IMPORTED")
    return said + done.stderr, set(imported.split())


@pytest.fixture
def folder(tmp_path: Path, cache: Path) -> Path:
    (tmp_path / "view_defs").mkdir()
    (tmp_path / "landing").mkdir()
    (tmp_path / "partwise.yaml").write_text("")
    (tmp_path / "view_defs" / "all.yaml").write_text(DEFINITIONS)
    said, _ = partwise(tmp_path, cache, "run")  # makes the tables of the sources, for which no Spark is needed either
    assert "ENDED 0" in said
    return tmp_path


@pytest.mark.parametrize("words", ["run", "run sold", "run --json", "run --no-ingest"])
def test_nothing_of_spark_is_imported(folder: Path, cache: Path, words: str) -> None:
    said, imported = partwise(folder, cache, *words.split())
    assert "ENDED 0" in said
    assert not imported & {"pyspark", "py4j", "pandas"}  # delta-rs: these sources have never got a row
    assert ("Nothing to do." in said) != ("--json" in words)


def test_problems_of_definitions_are_told_and_what_is_sound_runs(folder: Path, cache: Path) -> None:
    (folder / "view_defs" / "more.yaml").write_text("view: bad\npart: 1 minute\nupdate: SELECT colour FROM sales[j]\n")
    said, imported = partwise(folder, cache, "run")
    assert "ENDED 1" in said
    assert "Nothing to do. Definitions have 1 problem, see above." in said
    assert "1 problem in the definitions; left out: bad" in said
    assert "view_defs/more.yaml:3:16: unknown-column: none of the tables has a column colour" in said
    assert not imported & {"pyspark", "py4j"}
    said, _ = partwise(folder, cache, "run", "--json")
    assert "ENDED 1" in said
    found = [json.loads(line)["problem"] for line in said.splitlines() if line.startswith('{"problem"')]
    assert [(p["file"], p["line"], p["column"], p["code"]) for p in found] == [
        ("view_defs/more.yaml", 3, 16, "unknown-column")
    ]
    said, _ = partwise(folder, cache, "run", "sold")  # it is sound, and so is all that it reads
    assert "ENDED 0" in said
    assert "more.yaml:3:16" in said
    said, _ = partwise(folder, cache, "ingest")
    assert "ENDED 1" in said
    assert "more.yaml:3:16" in said


def test_a_file_that_cannot_be_taken_is_told_each_time_without_java(folder: Path, cache: Path) -> None:
    (folder / "landing" / "sales.csv").write_text("at,colour\n2026-10-03T10:00,red\n")
    for _ in range(2):
        said, _ = partwise(folder, cache, "run")
        assert "landing/sales.csv was refused" in said
        assert "ENDED 1" in said


def test_other_columns_are_noticed_though_no_file_came(folder: Path, cache: Path) -> None:
    changed = DEFINITIONS.replace("item: string, price", "item: string, seller: string, price")
    (folder / "view_defs" / "all.yaml").write_text(changed)
    _, imported = partwise(folder, cache, "run", "sold")
    assert "pyspark" in imported  # it goes on to give the table its new column, for which rows may have to be rewritten


def test_watching_looks_again_until_it_is_stopped(folder: Path, cache: Path) -> None:
    environment = {**os.environ, "PARTWISE_CACHE": str(cache), "PYTHONPATH": str(ROOT), "JAVA_HOME": "/no/java"}
    words = [sys.executable, "-u", "-m", "partwise.cli", "run", "--watch", "1s"]
    with subprocess.Popen(words, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        (folder / "landing" / "sales.csv").write_text("at,colour\n2026-10-03T10:00,red\n")
        for _ in range(2):  # it is told again and again, as long as it lies there
            assert any("landing/sales.csv was refused" in line for line in iter(watching.stdout.readline, ""))
        watching.terminate()
        assert watching.wait(60) == 0


@pytest.mark.parametrize(
    "words, expected",
    [
        ("retract sales never.csv", "has taken in no file never.csv"),
        ("quarantine release sales", "nothing was quarantined"),
        ("retract nobody x.csv", "There is no source nobody"),
    ],
)
def test_what_has_nothing_to_work_on_starts_no_java(folder: Path, cache: Path, words: str, expected: str) -> None:
    said, _ = partwise(folder, cache, *words.split())
    assert expected in said
