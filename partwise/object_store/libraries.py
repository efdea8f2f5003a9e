"""What each library is told: the same facts in the words of each."""

from __future__ import annotations

from urllib.parse import urlsplit

from partwise.object_store.access import Access
from partwise.object_store.urls import SCHEME, is_s3


def delta_options(to: Access) -> dict[str, str]:
    """Storage options of delta-rs. A commit is a conditional write; nothing else may stand in for it."""
    found = {"conditional_put": "etag", "connect_timeout": "5s", "timeout": "60s"}
    if to.endpoint:
        found |= {"AWS_ENDPOINT_URL": to.endpoint, "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false"}
    if to.plain:
        found["AWS_ALLOW_HTTP"] = "true"
    if to.region:
        found["AWS_REGION"] = to.region
    if to.key:
        found |= {"AWS_ACCESS_KEY_ID": to.key.id, "AWS_SECRET_ACCESS_KEY": to.key.secret}
        if to.key.token:
            found["AWS_SESSION_TOKEN"] = to.key.token
    return found


def client_options(to: Access) -> dict[str, str]:
    """Settings of obstore's S3 store."""
    found = {"conditional_put": "etag"}
    if to.endpoint:
        found |= {"endpoint": to.endpoint, "virtual_hosted_style_request": "false"}
    if to.region:
        found["region"] = to.region
    if to.key:
        found |= {"access_key_id": to.key.id, "secret_access_key": to.key.secret}
        if to.key.token:
            found["session_token"] = to.key.token
    return found


def arrow_options(to: Access) -> dict[str, object]:
    """Arguments of pyarrow's S3 file system."""
    found: dict[str, object] = {"allow_delayed_open": True, "connect_timeout": 5.0, "request_timeout": 60.0}
    if to.endpoint:
        where = urlsplit(to.endpoint)
        found |= {"endpoint_override": where.netloc, "scheme": where.scheme}
    if to.region:
        found["region"] = to.region
    if to.key:
        found |= {"access_key": to.key.id, "secret_key": to.key.secret, "session_token": to.key.token}
    return found


#: Hadoop's S3A as a step uses it: new files under names that nobody else has, few requests.
_S3A = {
    # One chain of keys for everybody: variables, profile, roles. Hadoop's own chain does not know profiles. No key is
    # in Spark's settings, which pages and logs show; a driver and its executors look for theirs, again when it is old.
    "fs.s3a.aws.credentials.provider": "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
    # Names are new: looking whether something is there in their way is a third of all requests.
    "fs.s3a.performance.flags": "*",
    "fs.s3a.input.stream.type": "classic",
    "fs.s3a.fast.upload.buffer": "bytebuffer",
    "fs.s3a.connection.establish.timeout": "5s",
    # A rename is a copy and a delete; a task's files go to their place once, not twice. Only a commit makes them seen.
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
#: The settings of a driver that make it load the connector.
S3A_SETTING = "spark.hadoop.fs.s3a."


def spark_settings(to: Access) -> dict[str, str]:
    """Settings of a Spark driver; what the user writes in `spark: {conf: ...}` wins over them."""
    found = dict(_S3A)
    if to.endpoint:
        found |= {"fs.s3a.endpoint": to.endpoint, "fs.s3a.path.style.access": "true"}
        found["fs.s3a.connection.ssl.enabled"] = "false" if to.plain else "true"
    if to.region:
        found["fs.s3a.endpoint.region"] = to.region
    return {f"spark.hadoop.{name}": value for name, value in found.items()}


def spark_path(path: str) -> str:
    """The same path as Hadoop calls it."""
    return f"s3a://{path.removeprefix(SCHEME)}" if is_s3(path) else path
