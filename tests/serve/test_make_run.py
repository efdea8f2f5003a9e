"""What `make run` with its variables comes to: make's words, read by the command, as what would be served."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from partwise.cli import main
from partwise.serve.site.site import Ports, Site

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "example"
    folder.mkdir()
    (folder / "partwise.yaml").touch()
    monkeypatch.setattr("partwise.serve.example.example", lambda: folder)
    return folder


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Site]:
    """Sites that would have been served."""
    found: list[Site] = []
    monkeypatch.setattr("partwise.serve.serve.serve", lambda site, until: found.append(site) or 0)
    return found


def make_run(*variables: str) -> None:
    """Lets the command read what make would have started."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"}
    command = ["make", "--dry-run", "run", *variables]
    said = subprocess.run(command, cwd=ROOT, env=outside, capture_output=True, text=True, check=True).stdout
    words = shlex.split(said.replace("\\\n", " ").splitlines()[-1])
    assert "partwise.cli" in words
    with pytest.raises(SystemExit) as ended:
        main(words[words.index("partwise.cli") + 1 :])
    assert ended.value.code == 0


def test_alone_it_is_the_example_with_its_feed(example: Path, served: list[Site]) -> None:
    make_run()
    [site] = served
    assert (site.workspace, site.feed, site.ports) == (example, 5.0, Ports())


@pytest.mark.parametrize("no", ["0", "no", "false"])
def test_the_feed_can_be_left_out(example: Path, served: list[Site], no: str) -> None:
    make_run(f"FEED={no}")
    [site] = served
    assert (site.workspace, site.feed) == (example, None)


def test_a_workspace_of_ones_own_has_no_feed(tmp_path: Path, served: list[Site]) -> None:
    folder = tmp_path / "a shop"
    (folder / "dags").mkdir(parents=True)
    (folder / "partwise.yaml").write_text("spark: {master: 'local[8]'}")
    make_run(f"WORKSPACE={folder}")
    [site] = served
    assert (site.workspace, site.feed, site.dags) == (folder, None, folder / "dags")
    assert (site.master, site.is_the_projects) == ("local[8]", False)


def test_ports_are_moved(example: Path, served: list[Site]) -> None:
    make_run("PORT=8081", "SPARK_PORT=15003", "SPARK_UI_PORT=4041")
    assert served[0].ports == Ports(8081, 15003, 4041)
