"""Every command that README and docs show runs, and every file they link to exists.

Blocks marked ```sh are run, file by file and from top to bottom, in a copy of the example workspace. Those marked ```console
show commands after `$` with their output: README's are run as well, those of other pages, which tell of workspaces that
are not there, must at least be commands with options that exist. What is only to be looked at is marked ```text. `make` is
not called from inside `make test`; its targets must exist.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

from partwise.cli.app import WITHOUT_VALUE, app, command_names

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# What makes the repository a workspace.
WORKSPACE = ("partwise.yaml", "view_defs", "landing")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
NEEDS_SPARK = re.compile(r"\bpartwise (?:run|ingest|backfill|verify|compact|retract)\b|--engine spark")


@dataclass(frozen=True)
class Block:
    language: str
    line: int
    text: str


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page; also indented ones, as in lists."""
    found, lines = [], page.splitlines()
    position = 0
    while position < len(lines):
        opening = re.match(r"( *)(```+|~~~+) *([\w-]*)", lines[position])
        if not opening:
            position += 1
            continue
        indent, fence, language = opening.groups()
        start = position + 1
        end = next((n for n in range(start, len(lines)) if lines[n].strip() == fence), len(lines))
        found.append(Block(language, start + 1, "\n".join(line.removeprefix(indent) for line in lines[start:end])))
        position = end + 1
    return found


def commands(page: str, shown: bool = False) -> list[Block]:
    """What is run: blocks of shell and, with `shown`, the commands of those that show output as well."""
    found = []
    for block in blocks(page):
        if block.language == "sh":
            found.append(block)
        elif block.language == "console" and shown:
            found += [Block("sh", line, text) for line, text in typed(block)]
    return found


def typed(block: Block) -> list[tuple[int, str]]:
    """The lines of a console after the prompt, with their numbers."""
    lines = enumerate(block.text.splitlines(), block.line)
    return [(at, line.removeprefix("$ ")) for at, line in lines if line.startswith("$ ")]


def make_targets(script: str) -> list[str]:
    words = [line.split("#")[0].split()[1:] for line in script.splitlines() if line.strip().split(" ")[0] == "make"]
    return [word for line in words for word in line if "=" not in word and not word.startswith("-")]


def without_make(script: str) -> str:
    return "\n".join(": " + line if line.strip().split(" ")[0] == "make" else line for line in script.splitlines())


def run(page: str, folder: Path, name: str = "page", driver: str | None = None, shown: bool = False) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PARTWISE_")}
    if driver is not None:
        environment["PARTWISE_SPARK_REMOTE"] = driver
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    for block in commands(page, shown):
        unknown = [target for target in make_targets(block.text) if target not in TARGETS]
        assert not unknown, f"{name}:{block.line}: no such make target: {unknown}"
        script = without_make(block.text)
        done = subprocess.run(
            ["sh", "-eu", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=500
        )
        assert done.returncode == 0, f"{name}:{block.line}: exit code {done.returncode}\n{done.stdout}{done.stderr}"


def as_parameter(page: Path) -> object:
    text = "\n".join(block.text for block in commands(page.read_text(), page == PAGES[0]))
    marks = (
        [pytest.mark.spark, pytest.mark.own_process, pytest.mark.xdist_group("driver")]
        if NEEDS_SPARK.search(text)
        else []
    )
    return pytest.param(page, marks=marks, id=str(page.relative_to(ROOT)))


@pytest.mark.parametrize("page", [as_parameter(page) for page in PAGES])
def test_every_command_shown_runs(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for name in WORKSPACE:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name)
        elif (ROOT / name).exists():
            shutil.copy(ROOT / name, tmp_path)
    # One warm driver for all pages; what they show runs with a driver of its own as well, only slower.
    driver = request.getfixturevalue("driver") if request.node.get_closest_marker("spark") else None
    run(page.read_text(), tmp_path, str(page.relative_to(ROOT)), driver, shown=page == PAGES[0])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_in_a_console_could_be_typed(page: Path) -> None:
    for block in (b for b in blocks(page.read_text()) if b.language == "console"):
        for line, text in typed(block):
            assert not refused(text), f"{page.relative_to(ROOT)}:{line}: {refused(text)}"


def refused(text: str) -> str:
    """What is wrong with a command, as far as can be told without running it."""
    program, *words = shlex.split(text, comments=True)
    if program == "make":
        return f"no such target in {words}" if set(make_targets(text)) - TARGETS else ""
    if program != "partwise":
        return "" if shutil.which(program) or program == "docker" else f"there is no {program}"
    name, *rest = (WITHOUT_VALUE.get(word, word) for word in words)
    if name not in command_names():
        return f"there is no command {name}"
    group = typer.main.get_command(app)
    context = group.make_context("partwise", words, resilient_parsing=True)
    try:
        group.get_command(context, name).make_context(name, rest, parent=context)  # type: ignore[attr-defined]
    except Exception as why:  # typer's own errors: each has a message for people
        return str(getattr(why, "message", why))
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", prose) if "://" not in target]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


def test_blocks_of_shell_are_marked_one_way_or_the_other() -> None:
    for page in PAGES:
        odd = [block.line for block in blocks(page.read_text()) if block.language in {"", "bash", "shell", "zsh"}]
        assert not odd, f"{page.relative_to(ROOT)}: mark the blocks at lines {odd} as sh (run) or console or text (not)"


class TestTheseTests:
    def test_a_failing_command_fails_and_says_where(self, tmp_path: Path) -> None:
        with pytest.raises(AssertionError, match=r"page:4: exit code 3"):
            run("Text\n\n```sh\nexit 3\n```\n", tmp_path)

    def test_blocks_share_one_folder_and_only_sh_is_run(self, tmp_path: Path) -> None:
        run("```sh\necho 1 > a\n```\n```console\n$ exit 1\n```\n- item\n  ```sh\n  test -s a\n  ```\n", tmp_path)
        assert (tmp_path / "a").read_text() == "1\n"

    def test_consoles_are_run_where_they_are_asked_for(self, tmp_path: Path) -> None:
        page = "```sh\necho 1 > a\n```\n```console\n$ test -s a\n1\n$ echo 2 > b\n```\n"
        run(page, tmp_path, shown=True)
        assert (tmp_path / "b").exists()
        with pytest.raises(AssertionError, match="page:2: exit code 4"):
            run("```console\n$ exit 4\n```\n", tmp_path, shown=True)

    def test_a_command_that_cannot_be_typed_is_seen(self) -> None:
        assert refused("partwise why orders 2026-10-03T10:00   # comment") == ""
        assert refused("partwise verify --json") == ""
        assert "No such option" in refused("partwise status --wide")
        assert "coffee" in refused("partwise coffee")
        assert refused("make coffee")
        assert refused("cofee --black")

    def test_make_is_not_called_but_its_targets_must_exist(self, tmp_path: Path) -> None:
        run("```sh\nmake setup PYTHON=python3.12   # once\nmake\n```\n", tmp_path)
        with pytest.raises(AssertionError, match="no such make target"):
            run("```sh\nmake coffee\n```\n", tmp_path)
