"""DAG structure, by parsing what the bundle renders. Nothing of Airflow is started."""

from __future__ import annotations

import importlib.util
import os
import time
from pathlib import Path
from typing import Any

import pytest

from partwise.workspace import open_workspace
from partwise_airflow.bundle import ViewsBundle
from partwise_airflow.render import render
from tests.cli.stand_in import settle

#: Importing Airflow takes seconds: one process for all of these.
pytestmark = pytest.mark.xdist_group("airflow")


def stubs(workspace: Path) -> dict[str, str]:
    return render(open_workspace(str(workspace)))


def parsed(workspace: Path, name: str) -> Any:
    """The DAG of a stub, as the dag-processor would get it."""
    file = workspace / "stubs" / f"{name}.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(stubs(workspace)[file.name])
    spec = importlib.util.spec_from_file_location(f"stub_{name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.dag


def order(dag: Any) -> list[str]:
    return [task.task_id for task in dag.topological_sort()]


def test_there_is_a_file_per_table_and_three_of_our_own(workspace: Path) -> None:
    assert sorted(stubs(workspace)) == [
        "a.py",
        "b.py",
        "heavy.py",
        "m.py",
        "nodes.py",
        "partwise_backfill.py",
        "partwise_reconcile.py",
        "partwise_upkeep.py",
        "w.py",
    ]


def test_airflow_finds_them(workspace: Path) -> None:
    """The dag-processor opens only files that mention both words."""
    for name, text in stubs(workspace).items():
        assert "airflow" in text.lower(), name
        assert "dag" in text.lower(), name


def test_a_view_waits_computes_its_helpers_then_itself_then_announces(workspace: Path) -> None:
    dag = parsed(workspace, "w")
    assert order(dag) == ["required_parts_exist", "w__panes", "w", "announce"]
    assert [task.task_id for task in dag.tasks if not task.downstream_task_ids] == ["announce"]


def test_views_over_several_windows_have_the_tasks_of_their_helpers(workspace: Path) -> None:
    join = "FROM m [WINDOW 3 minutes] x JOIN m [WINDOW 2 minutes] y ON y.src = x.src"
    (workspace / "view_defs" / "several.yaml").write_text(
        f"view: near\npart: 1 minute\noutput: pairs\nquery: SELECT x.src, y.loss {join}\n---\n"
        f"view: now\npart: 1 minute\nshare: false\noutput: rolling\nstrategy: grid\nquery: SELECT x.src, y.loss {join}\n---\n"
        f"view: groups\npart: 1 minute\nshare: false\nstrategy: factor\nquery: SELECT x.src, COUNT(*) AS n {join} GROUP BY x.src\n---\n"
        f"view: early\npart: 1 minute\nshare: false\npartial: true\nquery: SELECT x.src, y.loss {join}\n---\n"
        "view: seen\npart: 1 minute\nshare: false\nstrategy: last\nquery: SELECT DISTINCT src FROM m [WINDOW 3 minutes]\n"
    )
    helpers = {
        "near": [], "now": ["now__grid"], "groups": ["groups__a", "groups__b"],
        "early": ["early__age"], "seen": ["seen__last"],
    }  # fmt: skip
    for view, names in helpers.items():
        dag = parsed(workspace, view)
        assert {task.task_id for task in dag.tasks} == {"required_parts_exist", *names, view, "announce"}, view
        assert order(dag)[-2:] == [view, "announce"]


def test_a_sample_does_not_wait_for_its_view(workspace: Path) -> None:
    (workspace / "view_defs" / "sampled.yaml").write_text(
        "view: s\npart: 1 minute\nrefresh: {every: 1 day}\nsample: {outliers: {column: loss}}\n"
        "update: SELECT src, SUM(loss) AS total FROM m[j] GROUP BY src\n"
    )
    dag = parsed(workspace, "s")
    assert order(dag) == ["required_parts_exist", "s__sizes", "s__sample", "s", "s__was", "announce"]
    assert "s__sample (helper, generated)" in dag.doc_md


def test_a_window_has_the_tasks_of_the_way_that_it_is_kept(workspace: Path) -> None:
    """Settled by the first step; the file of before has a task too many until it is written again."""
    parsed(workspace, "w")
    settle(workspace, "w", "recompute", 10, 3)
    assert order(parsed(workspace, "w")) == ["required_parts_exist", "w", "announce"]
    assert "w__panes" not in parsed(workspace, "w").doc_md


def test_the_files_of_before_are_used_while_the_ledger_cannot_be_read(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(workspace, "w", "recompute", 10, 3)
    monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH", str(tmp_path / "bundles"))
    bundle = ViewsBundle(name="views", workspace=str(workspace), refresh_interval=0)
    bundle.initialize()
    before = (bundle.path / "w.py").read_text()
    os.utime(bundle._stamp, (0, 0))
    monkeypatch.setenv("PARTWISE_LEDGER", "postgresql://nobody@127.0.0.1:1/nothing")
    bundle.initialize()
    assert (bundle.path / "w.py").read_text() == before


def test_a_view_is_described_by_its_definition(workspace: Path) -> None:
    dag = parsed(workspace, "a")
    assert dag.description == "Sum per node"
    assert dag.tags == {"partwise", "view", "sums"}
    assert {task.owner for task in dag.tasks} == {"grace"}
    assert "SELECT src, SUM(loss) AS total FROM m[j] GROUP BY src" in dag.doc_md
    assert "Requires: `m[j]`" in dag.doc_md
    assert "w__panes" in parsed(workspace, "w").doc_md


def test_a_view_is_scheduled_by_its_events_and_by_hand(workspace: Path) -> None:
    dag = parsed(workspace, "b")
    assert dag.timetable.asset_condition.name == "ready/b"
    assert dag.params["part"] is None
    assert dag.params.get_param("part").schema["type"] == ["null", "string"]


def test_spark_tasks_share_a_pool_and_never_run_twice_at_once_and_sensors_do_not(workspace: Path) -> None:
    dag = parsed(workspace, "w")
    for name in ("w__panes", "w"):
        step = dag.get_task(name)
        assert (step.pool, step.max_active_tis_per_dag, step.conn_id) == ("spark", 1, "spark_connect")
        assert step.retries > 0
    assert dag.get_task("required_parts_exist").pool != "spark"
    assert dag.max_active_runs >= 4, "a run that waits must not keep a ready one from starting"
    assert [dag.get_task(n).first for n in ("w__panes", "w")] == [True, False]


def test_under_load_what_was_begun_is_finished_first(workspace: Path) -> None:
    """By default the first task of a run would come before the last one of another."""

    def weights(name: str) -> dict[str, int]:
        found = {}
        for task in parsed(workspace, name).tasks:
            assert task.weight_rule == "upstream"
            above = task.get_flat_relatives(upstream=True)
            found[task.task_id] = task.priority_weight + sum(other.priority_weight for other in above)
        return found

    view, source = weights("w"), weights("m")
    assert view["required_parts_exist"] < view["w__panes"] < view["w"] < view["announce"] < source["load"]
    assert source["load"] < source["announce"]
    assert parsed(workspace, "partwise_reconcile").get_task("reconcile").priority_weight >= source["announce"]


def test_tasks_of_every_run_store_no_more_in_airflow_than_anybody_reads(workspace: Path) -> None:
    """Each of these would be a call of the API, and rows in its database."""
    for name in ("w", "m", "partwise_reconcile"):
        assert [task.task_id for task in parsed(workspace, name).tasks if task.template_fields] == []
    view = parsed(workspace, "w")
    assert [task.task_id for task in view.tasks if task.do_xcom_push] == ["w__panes", "w"]


def test_a_timeout_holds_for_waiting_and_computing(workspace: Path) -> None:
    dag = parsed(workspace, "a")
    assert dag.get_task("a").execution_timeout.total_seconds() == 1200
    assert dag.get_task("required_parts_exist").timeout == 1200


def test_nothing_is_emitted_unless_something_is_ready(workspace: Path) -> None:
    """A declared outlet would emit one event by itself."""
    for name in ("a", "m", "partwise_reconcile"):
        assert all(not task.outlets for task in parsed(workspace, name).tasks)


def test_submit_goes_through_spark_submit(workspace: Path) -> None:
    step = parsed(workspace, "heavy").get_task("heavy")
    assert type(step).__mro__[1].__name__ == "SparkSubmitOperator"
    assert Path(step.application).name == "submit.py"
    assert Path(step.application).exists()


def test_the_settings_say_what_views_use_that_do_not_say_so_themselves(workspace: Path) -> None:
    (workspace / "partwise.yaml").write_text("spark: {engine: submit}\n")
    file = workspace / "view_defs" / "all.yaml"
    file.write_text(file.read_text().replace("description: Sum per node", "engine: connect"))
    kinds = {name: type(parsed(workspace, name).get_task(name)).__name__ for name in ("a", "b", "w", "heavy")}
    assert kinds == {"a": "SparkStep", "b": "SubmitStep", "w": "SubmitStep", "heavy": "SubmitStep"}


def test_sources_poll(workspace: Path) -> None:
    assert parsed(workspace, "m").timetable.delta.total_seconds() == 10
    assert parsed(workspace, "nodes").timetable.delta.total_seconds() == 30
    file = workspace / "view_defs" / "all.yaml"
    file.write_text(file.read_text().replace("poll: 10 seconds", "poll: manual"))
    dag = parsed(workspace, "m")
    assert not dag.timetable.can_be_scheduled
    assert order(dag) == ["load", "announce"]
    assert dag.max_active_runs == 1
    assert {task.owner for task in dag.tasks} == {"ada"}


def test_the_backfill_has_a_wave_for_each_level(workspace: Path) -> None:
    dag = parsed(workspace, "partwise_backfill")
    assert order(dag) == ["plan", "wave_1", "compute_1", "wave_2", "compute_2", "report"]
    assert dag.params.get_param("table").schema["enum"] == ["a", "b", "w", "heavy"]
    assert dag.params["dry_run"] is False


def test_the_nightly_upkeep_runs_commands_one_after_the_other(workspace: Path) -> None:
    dag = parsed(workspace, "partwise_upkeep")
    assert order(dag) == ["reconcile", "retain", "compact", "audit", "done"]
    assert f"-m partwise.cli reconcile --workspace {workspace}" in dag.get_task("reconcile").bash_command


def test_the_nightly_audit_fails_with_the_list(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from airflow.sdk.exceptions import AirflowException

    place = open_workspace(str(workspace))
    ledger = place.open_ledger(time.time())
    place.take_over(ledger, place.load(), time.time())
    audit = parsed(workspace, "partwise_upkeep").get_task("audit")
    audit.execute({})
    with ledger.database.changing_schema() as on:
        on.exec_driver_sql("INSERT INTO have (\"table\", lo, hi) VALUES ('m', 29849760, 29849761)")
    ledger.database.close()
    with pytest.raises(AirflowException, match="exit code 1"):
        audit.execute({})
    assert "m[2026-10-03T00:00..2026-10-03T00:01]: what exists is not what has a record" in capsys.readouterr().out
    assert audit.retries == 0


def test_parsing_reads_no_yaml_and_no_spark(workspace: Path) -> None:
    """Every task of every run parses its file: it has to be quick."""
    import subprocess
    import sys

    file = workspace / "stub.py"
    file.write_text(stubs(workspace)["w.py"])
    (workspace / "view_defs" / "all.yaml").unlink()
    code = f"import sys, runpy; runpy.run_path({str(file)!r}); print([m for m in ('pyspark', 'yaml', 'sqlglot') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_environment())
    assert "pyspark" not in done.stdout
    assert "sqlglot" not in done.stdout


def _environment() -> dict[str, str]:
    import os

    root = Path(__file__).resolve().parents[2]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "plugins"), str(root)])}


def test_a_bad_file_fails_alone_with_the_words_of_validate(workspace: Path) -> None:
    (workspace / "view_defs" / "bad.yaml").write_text("view: broken\npart: 1 minute\nupdate: SELECT * FROM m[k]\n")
    found = stubs(workspace)
    assert "a.py" in found
    assert "broken.py" not in found
    with pytest.raises(Exception, match=r"view_defs/bad.yaml:3:\d+: \S+: ") as failure:
        exec(compile(found["view_defs_bad_yaml_problems.py"], "stub", "exec"), {})
    assert type(failure.value).__name__ == "BadDefinition"


def test_what_reads_a_broken_table_says_so_and_the_rest_goes_on(workspace: Path) -> None:
    text = (workspace / "view_defs" / "all.yaml").read_text()
    (workspace / "view_defs" / "all.yaml").write_text(text.replace("total FROM m[j]", "total FROM m[k]"))
    found = stubs(workspace)
    assert "w.py" in found
    assert "source_dag(" in found["m.py"]
    with pytest.raises(Exception, match="b reads a table whose definition has problems"):
        exec(compile(found["b.py"], "stub", "exec"), {})


@pytest.mark.parametrize(
    "name, old, new",
    [
        ("a", "Sum per node", "Sums of nodes"),
        ("a", "tags: [sums]", "keep: 30 days"),
        ("a", "tags: [sums]", "tags: [sums]\nrepair: manual"),
        ("a", "tags: [sums]", "tags: [sums]\nstart: 2026-10-03T10:00"),
        ("a", "tags: [sums]", "tags: [sums]\npatience: 5 minutes"),
        ("a", "tags: [sums]", "tags: [sums]\nchecks: [{expect_column_values_to_not_be_null: {column: total}}]"),
        ("m", "poll: 10 seconds", "poll: 20 seconds"),
        ("m", "poll: 10 seconds", "poll: 10 seconds\nclose: {delay: 5 minutes}"),
        ("m", "poll: 10 seconds", "poll: 10 seconds\nlate: {accept: 1 day}"),
        ("m", "loss: double}", "loss: double, more: int}"),
        ("nodes", "region: string}", "region: string, more: int}"),
    ],
)
def test_a_changed_definition_changes_its_own_file_only(workspace: Path, name: str, old: str, new: str) -> None:
    """A changed file is a new version of the DAG."""
    before = stubs(workspace)
    file = workspace / "view_defs" / "all.yaml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    after = stubs(workspace)
    assert [each for each in before if before[each] != after[each]] == [f"{name}.py"]
    assert new.splitlines()[-1] in parsed(workspace, name).doc_md, "and its documentation shows it"


def test_the_documentation_shows_the_definition_as_written_and_what_is_generated(workspace: Path) -> None:
    docs = parsed(workspace, "w").doc_md
    assert "Defined in `view_defs/all.yaml`:\n\n```yaml\nview: w\nshare: false\npart: 1 minute\nquery: |" in docs
    assert "view: heavy" not in docs, "of its own document only"
    assert docs.count("[WINDOW 3 minutes]") == 1
    assert "For part j:" in docs
    plain = parsed(workspace, "a").doc_md
    assert plain.count("FROM m[j]") == 1, "what is not generated is shown once"


def test_bad_files_with_names_alike_have_an_import_error_each(workspace: Path) -> None:
    for at, name in enumerate(("x-y", "x_y", "z")):
        (workspace / "view_defs" / f"{name}.yaml").write_text(f"view: bad{at}\npart: 1 minute\nupdate: 1\n")
    found = {file: text for file, text in stubs(workspace).items() if "_problems" in file}
    assert len(found) == 3
    assert "view_defs_z_yaml_problems.py" in found
    for name in ("x-y", "x_y", "z"):
        assert sum(f"view_defs/{name}.yaml:" in text for text in found.values()) == 1


def test_the_bundle_writes_what_changed_and_removes_what_is_gone(workspace: Path, tmp_path: Path) -> None:
    from partwise_airflow.bundle import write

    folder = tmp_path / "stubs"
    write(folder, {"a.py": "1", "b.py": "2"})
    before = (folder / "a.py").stat().st_mtime_ns
    assert before / 1e9 > time.time() + 1, "newer than a parsing that is just going on"
    write(folder, {"a.py": "1", "c.py": "3"})
    assert (folder / "a.py").stat().st_mtime_ns == before
    assert sorted(path.name for path in folder.iterdir()) == ["a.py", "c.py"]


def test_every_table_of_a_backfill_has_the_timeout_of_its_view(workspace: Path) -> None:
    steps = parsed(workspace, "partwise_backfill").get_task("compute_1")

    def limit(table: str) -> float:
        return float(steps.unmap({"op_kwargs": {"step": "{}", "name": table}}).execution_timeout.total_seconds())

    assert (limit("a"), limit("b")) == (1200, 7200)


def test_a_task_of_a_backfill_that_dies_is_tried_again(workspace: Path) -> None:
    assert all(task.retries > 0 for task in parsed(workspace, "partwise_backfill").tasks)


def test_with_freshness_the_earliest_deadline_comes_first(workspace: Path) -> None:
    """What a view with a deadline reads has the same one; others an hour; what brings data still comes before all."""
    from partwise_airflow.priority import TOP, weight

    before = stubs(workspace)
    file = next(f for f in (workspace / "view_defs").rglob("*.yaml") if "view: b\n" in f.read_text())
    file.write_text(file.read_text().replace("view: b\n", "view: b\nfreshness: 5 minutes\n"))
    own = {}
    for name in ("a", "b", "w"):
        for task in parsed(workspace, name).tasks:
            assert task.weight_rule == "partwise_airflow.priority.EarliestDeadline"
            own[name] = task.priority_weight
    assert own == {"a": TOP - 300, "b": TOP - 300, "w": TOP - 3600}
    at = "asset_triggered__2026-10-03T10:{:02}:00.123+00:00_x1"
    early, late = weight(own["w"], at.format(0), 0), weight(own["b"], at.format(56), 0)
    assert early < weight(own["b"], at.format(54), 0)
    assert early > late  # whoever has waited for long enough comes first
    assert 0 < late < 2**30
    for name in ("m", "partwise_reconcile"):
        for task in parsed(workspace, name).tasks:
            assert (task.weight_rule, task.priority_weight > TOP) == ("absolute", True)
    assert parsed(workspace, "partwise_backfill").get_task("compute_1").priority_weight == TOP - 3600
    assert all("'freshness'" not in text and "'deadlines'" not in text for text in before.values())


def test_airflow_knows_the_strategy_and_serialises_it(workspace: Path) -> None:
    from airflow.plugins_manager import get_priority_weight_strategy_plugins
    from airflow.serialization.serialized_objects import DagSerialization

    from partwise_airflow.plugin import PartwisePlugin
    from partwise_airflow.priority import EarliestDeadline

    assert PartwisePlugin.priority_weight_strategies == [EarliestDeadline]
    if "partwise_airflow.priority.EarliestDeadline" not in get_priority_weight_strategy_plugins():
        pytest.skip("the plugin is not installed as an entry point here")
    file = next(f for f in (workspace / "view_defs").rglob("*.yaml") if "view: b\n" in f.read_text())
    file.write_text(file.read_text().replace("view: b\n", "view: b\nfreshness: 5 minutes\n"))
    again = DagSerialization.from_dict(DagSerialization.to_dict(parsed(workspace, "b")))
    assert isinstance(again.get_task("b").weight_rule, EarliestDeadline)


def test_the_documentation_says_which_version_of_a_forward_dimension_counts(workspace: Path) -> None:
    file = workspace / "view_defs" / "all.yaml"
    assert "version that was current" not in stubs(workspace)["heavy.py"]
    text = file.read_text().replace("dimension: nodes\n", "dimension: nodes\nchange: forward\n")
    more = "view: placed\npart: 1 minute\nupdate: SELECT n.region FROM m[j] m JOIN nodes n ON n.node = m.src\n"
    file.write_text(f"{text.rstrip()}\n---\n{more}")
    docs = parsed(workspace, "placed").doc_md
    assert (
        "Of `nodes` each part reads the version that was current when the last of its source parts came to exist."
        in docs
    )
