"""The example workspace and the ways to load definitions."""

import subprocess
import sys
from pathlib import Path

import pytest

from partwise.compile.load import load, load_texts
from partwise.definitions import Dimension, Source, View
from partwise.parts import Bound, Reference
from partwise.tables import Input, Start

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "view_defs"
SOURCE = """\
source: m
part: 1 minute
time: t
columns: {t: timestamp, src: string, loss: double}
files: landing/*.csv
"""


def one(text: str) -> Source | Dimension | View:
    found = load_texts({"a.yaml": text.encode()})
    assert [str(p) for p in found.problems if p.severity == "error"] == []
    return next(iter(found.tables.values()))


@pytest.mark.parametrize(
    "part, line, patience",
    [("1 minute", "", 3600), ("1 day", "", 86400), ("1 day", "patience: 5 minutes\n", 300)],
)
def test_waiting_for_inputs_that_change_again_and_again_has_an_end(part: str, line: str, patience: int) -> None:
    source = f"source: s\npart: {part}\ntime: t\ncolumns: {{t: timestamp}}\nfiles: a.csv\n"
    view = f"view: v\npart: {part}\n{line}update: SELECT t FROM s[j]\n"
    found = load_texts({"a.yaml": f"{source}---\n{view}".encode()})
    assert found.graph()["v"].patience == patience


def test_the_example_has_no_problems() -> None:
    """Not even a warning: it is what people copy from."""
    found = load(EXAMPLE)
    assert [str(p) for p in found.problems] == []
    assert set(found.tables) == {
        "measurements", "nodes", "loss_by_region", "total_loss", "high_loss", "worst_ten_minutes",
        "loss_runs", "high_loss_by_hand", "loss_both_ways", "recent_losses", "quiet_nodes", "seen_regions", "silent_nodes",
        "loss_pairs", "most_measured", "often_lossy", "last_measured",
    }  # fmt: skip


def test_the_example_as_the_planner_sees_it() -> None:
    graph = load(EXAMPLE).graph()
    assert graph["measurements"].kind == "source"
    assert graph["nodes"].kind == "dimension"
    region = graph["loss_by_region"]
    assert (region.length, region.start) == (300, Start("earliest"))
    five = Reference(Bound(5), Bound(5, 4))
    assert region.inputs == region.initial == (Input("measurements", five), Input("nodes", None))
    total = graph["total_loss"]
    assert total.inputs == (Input("total_loss", Reference.same(-1)), Input("measurements", Reference.same()))
    assert total.initial == (Input("measurements", Reference.same()),)
    assert total.self_references == (Reference.same(-1),)
    assert graph.order.index("loss_runs") < graph.order.index("high_loss_by_hand")


def test_every_example_names_the_schema() -> None:
    for file in EXAMPLE.glob("*.yaml"):
        first = file.read_text(encoding="utf-8").split("\n")[0]
        path = first.removeprefix("# yaml-language-server: $schema=")
        assert path != first
        assert (file.parent / path).resolve() == ROOT / "partwise" / "definitions" / "definitions.schema.json"


def test_a_source_with_everything() -> None:
    source = one("""\
source: m
description: all keys
part: 30
time: {column: ts, unit: milliseconds, tie: n}
columns: {ts: bigint, n: int, "x": "decimal(10,2)"}
files: [a/*.csv, b/*.parquet]
close: {marker: landing/{part}.done}
late: {accept: 7 days, future: 1 day}
poll: 10 seconds
owner: me
tags: [a, b]
checks:
  - expect_column_values_to_not_be_null: {column: n}
    severity: warn
  - expect_table_row_count_to_be_between: {min_value: 1}
""")
    assert isinstance(source, Source)
    assert (source.part, source.time.column, source.time.unit, source.time.tie) == (30, "ts", "milliseconds", "n")
    assert (source.close.rule, source.close.marker) == ("marker", "landing/{part}.done")
    assert (source.late.accept, source.late.future, source.poll) == (604800, 86400, 10)
    assert source.files == ("a/*.csv", "b/*.parquet")
    assert [(c.name, dict(c.arguments), c.severity) for c in source.checks] == [
        ("expect_column_values_to_not_be_null", {"column": "n"}, "warn"),
        ("expect_table_row_count_to_be_between", {"min_value": 1}, "error"),
    ]
    assert source.columns["x"] == "decimal(10,2)"
    assert str(source.place) == "a.yaml:1:9"


@pytest.mark.parametrize(
    "written, rule, delay",
    [
        ("manual", "manual", 0), ("{manual: true}", "manual", 0), ("{delay: 2 minutes}", "delay", 120),
        ("{delay: 0}", "delay", 0), ("{delay: 0 seconds}", "delay", 0),
    ],
)  # fmt: skip
def test_closing_rules(written: str, rule: str, delay: int) -> None:
    source = one(SOURCE + f"close: {written}\n")
    assert isinstance(source, Source)
    assert (source.close.rule, source.close.delay) == (rule, delay)


def test_the_default_is_to_close_at_once() -> None:
    source = one(SOURCE)
    assert isinstance(source, Source)
    assert (source.close.rule, source.close.delay, source.late.accept) == ("delay", 0, None)


def test_a_view_with_everything() -> None:
    found = load_texts({"a.yaml": f"""\
{SOURCE}---
view: v
part: 5 minutes
start: 2026-10-03T10:05
update: SELECT src FROM M[5*j..5*j+4];
keep: 90 days
repair: manual
engine: submit
patience: 1 hour
timeout: 300
owner: me
tags: [x]
""".encode()})  # fmt: skip
    assert found.problems == ()
    view = found.tables["v"]
    assert isinstance(view, View)
    assert (view.keep, view.repair, view.engine, view.patience, view.timeout) == (
        7776000,
        "manual",
        "submit",
        3600,
        300,
    )
    assert view.start == Start("at", 5970073)
    assert found.views["v"].columns == ("src",)
    assert view.update is not None
    assert not view.update.text.rstrip().endswith(";")
    assert found.graph()["v"].inputs[0].table == "m"


def test_words_of_yaml_1_1_are_words() -> None:
    found = one("dimension: d\ncolumns: {no: string, on: string, y: string}\nfiles: d.csv\ntags: [no, off]\n")
    assert list(found.columns or ()) == ["no", "on", "y"]
    assert found.tags == ("no", "off")


def test_anchors_may_be_used() -> None:
    found = load_texts({"a.yaml": b"dimension: d\ncolumns: &c {a: string}\nfiles: d.csv\n---\n{}\n"})
    assert [p.code for p in found.problems] == ["not-a-definition"]
    text = "dimension: d\ncolumns: {a: &t string, b: *t}\nfiles: d.csv\n"
    assert one(text).columns == {"a": "string", "b": "string"}


def test_only_what_is_fine_is_in_the_graph() -> None:
    text = f"""\
{SOURCE}---
view: bad
part: 1 minute
update: SELECT FROM m[j
---
view: reads_bad
part: 1 minute
update: SELECT x FROM bad[j]
---
view: reads_that
part: 1 minute
update: SELECT x FROM reads_bad[j]
---
view: good
part: 1 minute
update: SELECT src FROM m[j]
"""
    found = load_texts({"a.yaml": text.encode()})
    assert [p.table for p in found.problems] == ["bad"]
    assert not found.ok
    assert set(found.graph().tables) == {"m", "good"}
    assert "reads_bad" in found.tables


def test_folders_files_and_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.yaml").write_text(SOURCE)
    (tmp_path / "sub" / "b.yml").write_text("dimension: d\ncolumns: {a: string}\ndelta: x\n")
    (tmp_path / "empty.yaml").write_text("")
    (tmp_path / "comment.yaml").write_text("# nothing yet\n---\n")
    (tmp_path / ".hidden.yaml").write_text("view: h\n")
    (tmp_path / "other.txt").write_text("no")
    found = load(tmp_path)
    assert (set(found.tables), found.problems) == ({"m", "d"}, ())
    assert set(load([tmp_path / "a.yaml", str(tmp_path / "sub")]).tables) == {"m", "d"}
    missing = load([tmp_path / "nowhere.yaml", tmp_path / "a.yaml"])
    assert [p.code for p in missing.problems] == ["cannot-read"]
    assert set(missing.tables) == {"m"}


def test_problems_of_all_files_come_sorted() -> None:
    found = load_texts({"b.yaml": b"view: x\n", "a.yaml": b"\xff", "c.yaml": b"- 1\n---\n- 2\n"})
    places = [(p.file, p.line) for p in found.problems]
    assert places == sorted(places)
    assert {p.file for p in found.problems} == {"a.yaml", "b.yaml", "c.yaml"}


def test_long_chains_and_large_cycles() -> None:
    views = [f"view: v{n}\npart: 60\nupdate: SELECT src FROM v{n - 1}[j]\n" for n in range(1, 400)]
    chain = SOURCE.replace("source: m", "source: v0")
    found = load_texts({"a.yaml": "---\n".join([chain, *views]).encode()})
    assert found.problems == ()
    assert len(found.graph().order) == 400
    ring = load_texts(
        {"a.yaml": "---\n".join([*views, views[0].replace("v1", "v0").replace("v0[j]", "v399[j]")]).encode()}
    )
    assert [p.code for p in ring.problems] == ["cycle"]


def test_nothing_heavy_is_imported_before_sql_is_read() -> None:
    code = (
        "import sys; from partwise.compile.load import load_texts;"
        f"found = load_texts({{'a.yaml': {SOURCE.encode()!r}}}); assert found.ok;"
        "print([m for m in ('sqlglot', 'airflow', 'pyspark', 'pandas', 'great_expectations') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
