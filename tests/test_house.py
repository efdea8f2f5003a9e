"""The house stays in order: rooms know only rooms below them, folders stay small, names and words mean one thing.

Docs that lead newcomers to files name files that exist.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CODE = ("partwise", "spark_jobs", "plugins/partwise_airflow", "plugins/partwise_page")
MOST = 15  # modules in a folder; more need sub-folders whose names say what they hold

#: Room of the core → rooms that it may import. A new edge is a decision: write it here and say why in the commit.
ROOMS: dict[str, set[str]] = {
    "parts": set(),
    "tables": {"parts", "plan"},
    "settings": {"object_store", "parts", "spelling"},
    "plan": {"parts", "tables"},
    "backfill": {"parts", "plan", "tables"},
    "announce": {"parts", "plan", "tables"},
    "storage": {"object_store", "parts", "tables"},
    "checks": {"storage"},
    "ledger": {"announce", "backfill", "checks", "object_store", "parts", "plan", "storage", "tables"},
    "upkeep": {"compile", "definitions", "ledger", "parts", "storage", "tables"},
    "sources": {"ledger", "parts", "sql"},
}
#: Engines of decision must not know the command line, the page or the supervisor.
ABOVE = {"cli", "page", "serve", "demo", "api"}

#: Names that still stand twice. This list only gets shorter.
TWICE: set[str] = set()

#: Words that were retired from what users read: docs/glossary.md has the word for each idea.
RETIRED = re.compile(
    r"\b(?:set aside|by hand|asked for|as of one moment|whoever|anew|inside of|cannot stand|held for lease"
    r"|something went wrong|tells? more|nobody|somebody|anybody|moments?|told)\b",
    re.IGNORECASE,
)


def modules(*tops: str) -> Iterator[Path]:
    for top in tops:
        yield from sorted((ROOT / top).rglob("*.py"))


def imported_rooms(source: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module] if node.module != "partwise" else [f"partwise.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("partwise.")}
    return found


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_knows_only_the_rooms_below_it(room: str) -> None:
    place = ROOT / "partwise" / room
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    found = {name for file in files for name in imported_rooms(file.read_text())} - {room}
    assert found <= ROOMS[room], f"partwise/{room} must not import {sorted(found - ROOMS[room])}"


def test_what_decides_does_not_know_what_shows() -> None:
    showing = ABOVE | {"workspace", "__init__", "reading", "reconcile"}
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules("partwise")
        if path.relative_to(ROOT / "partwise").parts[0].removesuffix(".py") not in showing
        for name in imported_rooms(path.read_text()) & ABOVE
    ]
    assert found == []


def test_no_folder_has_too_many_modules() -> None:
    counts: dict[Path, int] = defaultdict(int)
    for path in modules(*CODE):
        if path.name != "__init__.py" and path.parent.name != "versions":  # migrations only grow
            counts[path.parent] += 1
    assert {str(folder.relative_to(ROOT)): n for folder, n in counts.items() if n > MOST} == {}


def test_no_two_public_classes_have_one_name() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for path in modules(*CODE):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(ROOT)))
    twice = {name: places for name, places in found.items() if len(places) > 1}
    assert {name: places for name, places in twice.items() if name not in TWICE} == {}
    assert set(twice) >= TWICE, "these stand once by now: take them from the list"


def test_no_module_is_called_twice_in_one_room() -> None:
    """Two files of one name in different rooms read well (`ledger.schema`, `storage.schema`); in one room they do not."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in modules("partwise"):
        parts = path.relative_to(ROOT / "partwise").parts
        if len(parts) > 1 and path.stem not in {"__init__", "__main__"}:
            found[parts[0], path.stem].append("/".join(parts))
    many = {key[1]: places for key, places in found.items() if len(places) > 1}
    # Each translation has the same four stages, and each command is a file.
    assert {name for name in many if not many[name][0].startswith("compile/")} <= {
        "schema",
        "catalog",
        "functions",
        "serve",
    }


def user_texts() -> Iterator[tuple[str, int, str]]:
    """What users read: docs, string literals of the code, docstrings of commands, texts of the page."""
    for page in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "SECURITY.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ):
        if page.name != "glossary.md":
            yield from (
                (str(page.relative_to(ROOT)), at, line) for at, line in enumerate(page.read_text().splitlines(), 1)
            )
    for path in sorted((ROOT / "plugins/partwise_page/static").glob("*.*")):
        if path.suffix in {".js", ".html"}:
            for at, line in enumerate(path.read_text().splitlines(), 1):
                texts = [line] if path.suffix == ".html" else re.findall(r'"[^"]*"|`[^`]*`', line.partition("// ")[0])
                yield from ((str(path.relative_to(ROOT)), at, re.sub(r"\$\{[^}]*\}", "", text)) for text in texts)
    for path in modules(*CODE):
        if "migrations" in path.parts:
            continue
        tree = ast.parse(path.read_text())
        inner = docstrings(tree, besides_help="commands" in path.parts)
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) and id(node) not in inner else None
            if isinstance(text, str) and " " in text:
                yield str(path.relative_to(ROOT)), node.lineno, text


def docstrings(tree: ast.Module, besides_help: bool) -> set[int]:
    """Those that only readers of the code see: of a command's file, its own and that of `command` are its help."""
    found = set()
    for node in ast.walk(tree):
        if besides_help and (isinstance(node, ast.Module) or getattr(node, "name", "") == "command"):
            continue
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                found.add(id(first.value))
    return found


def test_no_retired_word_is_left_in_what_users_read() -> None:
    hits = [(place, line, hit.group()) for place, line, text in user_texts() if (hit := RETIRED.search(text))]
    found = [f"{place}:{line}: {word}" for place, line, word in hits]
    assert found == [], "\n".join(found)


@pytest.mark.parametrize("text", ["3 rows set aside", "closed by hand", "was asked for", "begins anew"])
def test_a_retired_word_is_seen(text: str) -> None:
    assert RETIRED.search(text)


def named_files(page: str) -> set[str]:
    quoted = re.findall(r"`((?:partwise|spark_jobs|plugins|tests|dags|tools)/[\w./*-]*)`", page)
    return {name for name in quoted if "*" not in name}


@pytest.mark.parametrize("name", ["architecture.md", "glossary.md", "api.md"])
def test_files_that_the_docs_name_exist(name: str) -> None:
    missing = [file for file in named_files((ROOT / "docs" / name).read_text()) if not (ROOT / file).exists()]
    assert missing == []


def test_for_ten_kinds_of_change_the_page_names_one_or_two_files() -> None:
    table = (ROOT / "docs/architecture.md").read_text().partition("## To change this, open that")[2]
    rows = [line for line in table.splitlines() if line.startswith("| ") and "`" in line]
    assert len(rows) >= 10
    for row in rows:
        assert 1 <= len(named_files(row)) <= 2, row


def test_every_room_is_in_the_architecture() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    rooms = {
        path.name for path in (ROOT / "partwise").iterdir() if path.is_dir() and not path.name.startswith(("_", "."))
    }
    small = {"init", "unit"}  # a template and a test runner
    assert [room for room in sorted(rooms - small) if f"`partwise/{room}/`" not in page] == []
