"""Settings and where the workspace is."""

from pathlib import Path

import pytest

from partwise.settings import BadSetting, Batch, Settings, read_settings
from partwise.workspace import NoWorkspace, Workspace, find, open_workspace


def settings(folder: Path, text: str, **environment: str) -> Settings:
    file = folder / "partwise.yaml"
    file.write_text(text)
    return read_settings(file, environment)


def test_every_setting_has_a_default(tmp_path: Path) -> None:
    assert settings(tmp_path, "") == read_settings(tmp_path / "none.yaml", {}) == Settings()


def test_the_example_has_the_defaults() -> None:
    assert read_settings(Path(__file__).parents[1] / "partwise.yaml", {}) == Settings()


def test_variables_override_the_file(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        "ledger: sqlite:///a.db\nspark: {master: 'local[2]', conf: {a: 1, b: true}}\nairflow: {url: http://x}",
        PARTWISE_LEDGER="sqlite:///b.db",
        PARTWISE_SPARK_MASTER="local[4]",
        PARTWISE_SPARK_CONF="a=2, c=3",
        PARTWISE_AIRFLOW_PASSWORD="p",
        PARTWISE_TIMEZONE="Europe/Berlin",
    )
    assert (found.ledger, found.spark.master, found.timezone) == ("sqlite:///b.db", "local[4]", "Europe/Berlin")
    assert found.spark.conf == {"a": "2", "b": "true", "c": "3"}
    assert (found.airflow.url, found.airflow.password) == ("http://x", "p")


@pytest.mark.parametrize(
    "text, words",
    [
        ("legder: x", "there is no setting 'legder'; did you mean ledger?"),
        ("spark: {mastr: x}", "there is no setting spark.mastr; did you mean master?"),
        ("spark: local", "spark is 'local'; expected a map, for example spark: {master: 'local[*]'}"),
        ("spark: {conf: 3}", "spark.conf is a number"),
        ("spark: {engine: yarn}", "spark.engine is 'yarn'; write connect or submit"),
        ("spark: {master: a, remote: b}", "exclude each other"),
        ("ledger: 3", "ledger is a number; expected text, for example ledger: sqlite:///ledger.db"),
        ("ledger:", "ledger is empty"),
        ("chunk_parts: none", "chunk_parts is 'none'; expected a whole number from 1"),
        ("chunk_rows: 0", "expected a whole number from 1"),
        ("batch: 20", "batch is a number; expected a map, for example batch: {views: 20, rows: 100000}"),
        ("batch: {veiws: 2}", "there is no setting batch.veiws; did you mean views?"),
        ("batch: {views: 0}", "batch.views is '0'; expected a whole number from 1"),
        ("timezone: Mars", "'Mars' is not a time zone"),
        ("- a", "expected settings such as"),
        ("a: [", "partwise.yaml:1:5: not valid YAML"),
        ("a: 2026-13-45", "not valid YAML"),
    ],
)
def test_bad_settings_are_told_kindly(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(BadSetting) as why:
        settings(tmp_path, text)
    assert words in str(why.value)


def test_chunks(tmp_path: Path) -> None:
    found = settings(tmp_path, "chunk_parts: 50\nchunk_rows: 1_000", PARTWISE_CHUNK_ROWS="2000")
    assert (found.chunk_parts, found.chunk_rows) == (50, 2000)
    assert found.batch == Batch()
    found = settings(tmp_path, "batch: {views: 5}", PARTWISE_BATCH_ROWS="10")
    assert found.batch == Batch(views=5, rows=10)


def test_a_variable_takes_the_place_of_the_other_kind_of_spark(tmp_path: Path) -> None:
    """A workspace that was run on one machine, with cores for its driver, runs in containers as it is."""
    text = "spark: {master: 'local[4]', conf: {a: 1}}"
    found = settings(tmp_path, text, PARTWISE_SPARK_REMOTE="sc://host:15002").spark
    assert (found.master, found.remote, found.conf) == (None, "sc://host:15002", {"a": "1"})
    found = settings(tmp_path, "spark: {remote: 'sc://host'}", PARTWISE_SPARK_MASTER="local[4]").spark
    assert (found.master, found.remote) == ("local[4]", None)
    with pytest.raises(BadSetting, match="exclude each other"):
        settings(tmp_path, "", PARTWISE_SPARK_MASTER="local[4]", PARTWISE_SPARK_REMOTE="sc://host")


def test_bad_variables(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="PARTWISE_SPARK_CONF: 'x' is not key=value"):
        settings(tmp_path, "", PARTWISE_SPARK_CONF="x")


def test_the_nearest_parent_counts_after_option_and_variable(tmp_path: Path) -> None:
    outer, inner, other = tmp_path / "a", tmp_path / "a" / "b" / "c", tmp_path / "d"
    for folder in (outer, inner, other):
        folder.mkdir(parents=True, exist_ok=True)
    (outer / "partwise.yaml").touch()
    (other / "view_defs").mkdir()
    assert find(None, {}, inner) == outer
    assert find(None, {"PARTWISE_WORKSPACE": str(other)}, inner) == other
    assert find("../../../a", {"PARTWISE_WORKSPACE": str(other)}, inner) == outer
    with pytest.raises(NoWorkspace, match="neither"):
        find(None, {}, other)
    with pytest.raises(NoWorkspace, match="is not a workspace"):
        find(str(inner), {}, other)


def test_paths_are_relative_to_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "partwise.yaml").write_text("landing: s3://bucket/in\nledger: sqlite:///sub/l.db\n")
    found = open_workspace(str(tmp_path), {})
    assert found.locate("landing/m/*.csv") == "s3://bucket/in/m/*.csv"
    assert found.locate("other/m.csv") == str(tmp_path / "other/m.csv")
    assert found.locate("/abs/m.csv") == "/abs/m.csv"
    assert found.ledger_url == f"sqlite:///{tmp_path}/sub/l.db"
    assert not found.has_ledger()
    assert Workspace(tmp_path, Settings(ledger="postgresql://x/y")).ledger_url == "postgresql://x/y"
    assert Workspace(tmp_path, Settings(ledger="sqlite:////abs/l.db")).ledger_url == "sqlite:////abs/l.db"
