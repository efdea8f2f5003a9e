"""What each library is told about an object store; nothing is contacted."""

from __future__ import annotations

from pathlib import Path

import pytest

from partwise import object_store
from partwise.object_store import Access, AccessKey, Store, access
from partwise.settings import BadSetting, Settings, read_settings
from partwise.workspace import open_workspace

KEYS = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}
MINIO = Access("http://minio:9000", "us-east-1", AccessKey("id", "secret", None, "AWS_ACCESS_KEY_ID"))


def settings(folder: Path, text: str, **environment: str) -> Settings:
    (folder / "partwise.yaml").write_text(text)
    return read_settings(folder / "partwise.yaml", environment)


def test_two_lines_are_all_that_users_write(tmp_path: Path) -> None:
    found = settings(tmp_path, "warehouse: s3://lake/warehouse\nstore: {endpoint: http://minio:9000}\n")
    assert (found.warehouse, found.store) == ("s3://lake/warehouse", Store("http://minio:9000"))
    assert access(found.store, KEYS, tmp_path) == MINIO
    variables = {"PARTWISE_WAREHOUSE": "s3://lake/w", "PARTWISE_STORE_ENDPOINT": "https://s3.example.org"}
    found = settings(tmp_path, "", **variables)
    assert (found.warehouse, found.store.endpoint) == ("s3://lake/w", "https://s3.example.org")


@pytest.mark.parametrize(
    "text, words",
    [
        (
            "warehouse: s3a://lake/w",
            "warehouse is 's3a://lake/w'; write s3:// instead of s3a://, for example s3://lake/w",
        ),
        ("warehouse: 's3://'", "it names no bucket; write for example s3://bucket/warehouse"),
        ("warehouse: s3://id:secret@lake/w", "keys and options do not belong into the URL; write s3://lake/w"),
        ("warehouse: s3://lake/w?region=x", "keys and options do not belong into the URL; write s3://lake/w"),
        ("warehouse: s3://lake/my%20tables", "names with % cannot be used for tables; write letters as they are"),
        ("warehouse: https://lake/w", "expected a folder or an object store, for example s3://bucket/warehouse"),
        ("landing: s3n://lake/l", "landing is 's3n://lake/l'; write s3:// instead of s3n://"),
        ("definitions: s3://lake/d", "definitions are kept in a folder"),
        ("store: minio", "store is 'minio'; expected a map, for example store: {endpoint: http://minio:9000}"),
        (
            "store: {endpoint: minio:9000}",
            "expected http:// or https://, a host and a port, for example http://minio:9000",
        ),
        ("store: {endpoint: 'http://minio:9000/lake'}", "part of the warehouse's URL; write http://minio:9000"),
        ("store: {endpoint: 'http://a:b@minio:9000'}", "keys do not belong into it"),
        ("store: {endpont: x}", "there is no setting store.endpont; did you mean endpoint?"),
        ("store: {access_key: x}", "store.access_key: keys are not kept in this file; give them by AWS_ACCESS_KEY_ID"),
        ("store: {region: 3}", "store.region is a number; expected text, for example region: eu-central-1"),
    ],
)
def test_wrong_settings_are_told_kindly(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(BadSetting) as why:
        settings(tmp_path, text)
    assert words in str(why.value)


def test_stores_that_others_make_are_let_through(tmp_path: Path) -> None:
    for url in ("gs://lake/w", "abfss://lake@account.dfs.core.windows.net/w", "/srv/w", "warehouse", "file:///srv/w"):
        assert settings(tmp_path, f"warehouse: '{url}'").warehouse == url


def test_variables_come_before_the_profile_and_a_key_is_never_mixed(tmp_path: Path) -> None:
    home = tmp_path / ".aws"
    home.mkdir()
    (home / "credentials").write_text(
        "[default]\naws_access_key_id=a\naws_secret_access_key=b\n"
        "[work]\naws_access_key_id=c\naws_secret_access_key=d\naws_session_token=e\n"
    )
    (home / "config").write_text("[default]\nregion=eu-west-1\n[profile work]\nregion=eu-central-1\n")
    assert access(Store(), {}, tmp_path) == Access(None, "eu-west-1", AccessKey("a", "b", None, "the profile default"))
    work = access(Store(), {"AWS_PROFILE": "work"}, tmp_path)
    assert work == Access(None, "eu-central-1", AccessKey("c", "d", "e", "the profile work"))
    named = access(Store(region="x"), {"AWS_PROFILE": "work", "AWS_REGION": "y", **KEYS}, tmp_path)
    assert named == Access(None, "x", AccessKey("id", "secret", None, "AWS_ACCESS_KEY_ID"))
    half = access(Store(), {"AWS_ACCESS_KEY_ID": "id"}, tmp_path)
    assert half.key == AccessKey("a", "b", None, "the profile default")


def test_a_damaged_profile_is_no_profile(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("aws_access_key_id=a")
    assert access(Store(), {"AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "bad")}, tmp_path).key is None


def test_roles_are_left_to_the_libraries(tmp_path: Path) -> None:
    found = access(Store(), {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}, tmp_path)
    assert (found.key, found.roles) == (None, True)
    assert not any("KEY" in name for name in object_store.delta_options(found))


def test_each_library_is_told_in_its_own_words() -> None:
    assert object_store.delta_options(MINIO) == {
        "AWS_ENDPOINT_URL": "http://minio:9000",
        "AWS_ALLOW_HTTP": "true",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "conditional_put": "etag",
        "connect_timeout": "5s",
        "timeout": "60s",
    }
    arrow = object_store.arrow_options(MINIO)
    assert (arrow["endpoint_override"], arrow["scheme"], arrow["access_key"]) == ("minio:9000", "http", "id")
    spark = object_store.spark_settings(MINIO)
    assert spark["spark.hadoop.fs.s3a.endpoint"] == "http://minio:9000"
    assert spark["spark.hadoop.fs.s3a.path.style.access"] == "true"
    assert spark["spark.hadoop.fs.s3a.connection.ssl.enabled"] == "false"


def test_on_aws_nothing_is_said_of_places_and_http_is_not_allowed() -> None:
    aws = Access(None, "eu-central-1", None)
    assert "AWS_ALLOW_HTTP" not in object_store.delta_options(aws)
    assert "AWS_ALLOW_HTTP" not in object_store.delta_options(Access("https://s3.example.org"))
    assert not any("endpoint_override" in name for name in object_store.arrow_options(aws))
    spark = object_store.spark_settings(aws)
    assert spark["spark.hadoop.fs.s3a.endpoint.region"] == "eu-central-1"
    assert not {"spark.hadoop.fs.s3a.endpoint", "spark.hadoop.fs.s3a.path.style.access"} & set(spark)


def test_no_key_gets_into_sparks_settings_or_into_a_text() -> None:
    assert not any("secret" in value or value == "id" for value in object_store.spark_settings(MINIO).values())
    assert "secret" not in repr(MINIO)


def test_spark_calls_the_store_by_hadoops_name() -> None:
    assert object_store.spark_path("s3://lake/w/t") == "s3a://lake/w/t"
    for same in ("/srv/w", "gs://lake/w", "file:///srv/w"):
        assert object_store.spark_path(same) == same


def test_what_the_user_writes_wins_and_a_folder_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "partwise.yaml").write_text("spark: {conf: {spark.x: 1}}\n")
    plain = open_workspace(str(tmp_path), environment={})
    assert (plain.in_object_store, plain.spark_conf) == (False, {"spark.x": "1"})
    (tmp_path / "partwise.yaml").write_text(
        "warehouse: s3://lake/w\nspark: {conf: {spark.hadoop.fs.s3a.performance.flags: create}}\n"
    )
    found = open_workspace(str(tmp_path), environment={})
    assert found.spark_conf["spark.hadoop.fs.s3a.performance.flags"] == "create"
    assert found.warehouse == "s3://lake/w"


def test_buckets_of_two_workspaces_are_told_apart() -> None:
    object_store.remember(Store("http://one:1"), "s3://bucket-one/w")
    object_store.remember(Store("http://two:2"), "s3://bucket-two/w")
    assert object_store.access_to("s3://bucket-one/x", {}).endpoint == "http://one:1"
    assert object_store.access_to("s3://bucket-two/x", {}).endpoint == "http://two:2"
    assert object_store.access_to("s3://elsewhere/x", {}).endpoint == "http://two:2"


@pytest.mark.parametrize(
    "text, words",
    [
        ("... <Code>ExpiredToken</Code> ...", "the keys have expired; renew them"),
        ("Status Code: 403; InvalidAccessKeyId", "the store does not know the access key id (from AWS_ACCESS_KEY_ID)"),
        ("error: NoSuchBucket: b", "there is no bucket lake; make it first"),
        ("Connection refused (os error 111)", "the store does not answer at http://minio:9000; check store.endpoint"),
        ("Class org.apache.hadoop.fs.s3a.S3AFileSystem not found", "`make setup OBJECT_STORE=1` fetches its jars"),
        ("PermanentRedirect", "the bucket lake is in another region; set store.region or AWS_REGION"),
        ("something {odd}\nmore", "s3://lake/t: something {odd}."),
    ],
)
def test_errors_are_explained_in_one_sentence(text: str, words: str) -> None:
    assert words in object_store.explained("s3://lake/t", text, MINIO)


@pytest.mark.parametrize(
    "where, hint",
    [
        ("files: s3a://lake/m/*.csv", "write s3:// instead of s3a://, for example s3://lake/m/*.csv"),
        ("files: gs://lake/m/*.csv", "files are loaded from folders and from s3://bucket/folder"),
        ("delta: s3a://lake/theirs", "write s3:// instead of s3a://, for example s3://lake/theirs"),
        ("delta: s3://lake/my%20tables", "names with % cannot be used for tables"),
        ("files: s3://lake/100%/*.csv", None),
        ("delta: https://lake/theirs", "expected a folder or an object store"),
        ("files: s3://lake/m/*.csv", None),
        ("delta: s3://lake/theirs", None),
        ("delta: gs://lake/theirs", None),
    ],
)
def test_validate_knows_where_files_and_tables_can_be(tmp_path: Path, where: str, hint: str | None) -> None:
    folder = tmp_path / "view_defs"
    folder.mkdir()
    columns = "columns: {at: timestamp}"
    (folder / "s.yaml").write_text(f"source: s\npart: 1 minute\ntime: at\n{columns}\n{where}\n")
    (tmp_path / "partwise.yaml").touch()
    problems = open_workspace(str(tmp_path), environment={}).load().problems
    if hint is None:
        assert problems == ()
    else:
        [problem] = problems
        assert (problem.code, problem.line) == ("wrong-value", 5)
        assert hint in (problem.hint or "")
