"""What `warehouse: s3://...` and `store: {endpoint: ...}` mean to everyone who talks to the store.

Three libraries do: Spark (Hadoop's S3A), delta-rs and obstore, pyarrow for queries. Each has its own names for the same
few facts; they are all derived here, from the settings and from the variables and files that AWS's own tools read.
Nothing is contacted and nothing of the libraries is imported: commands on a local folder pay nothing for this.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

#: What users write. Hadoop's own names for the same store are not taken: one table would have two addresses.
SCHEME = "s3://"
_HADOOP = ("s3a://", "s3n://")
#: Stores for which delta-rs and obstore have settings of their own; Spark's are up to the user. Not tried.
_OTHERS = ("gs://", "abfss://", "abfs://", "az://")
#: Servers that are not AWS do not care, but a request cannot be signed without one.
_ANY_REGION = "us-east-1"
_KEYS = ("key", "secret", "token", "access", "password", "credential")


@dataclass(frozen=True, slots=True)
class Store:
    """The setting `store`. On AWS nothing is needed: the bucket's name says where it is."""

    endpoint: str | None = None
    region: str | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """An access key, and where it was found."""

    id: str
    secret: str
    token: str | None = None
    origin: str = ""

    def __repr__(self) -> str:
        return f"Key({self.id!r}, from {self.origin})"  # secrets must not get into logs


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach the store. Without a key each library looks for a role of the machine by itself."""

    endpoint: str | None = None
    region: str | None = None
    key: Key | None = None
    roles: bool = False  # whether variables name a role (web identity, container) that gives keys

    @property
    def plain(self) -> bool:
        """Whether requests go over HTTP without TLS."""
        return (self.endpoint or "").startswith("http://")


def is_remote(path: str) -> bool:
    return "://" in path and not path.startswith("file://")


def is_s3(path: str) -> bool:
    return path.startswith(SCHEME)


def bucket_of(url: str) -> str:
    return urlsplit(url).netloc


# -- What settings may say ---------------------------------------------------------------------------------------------


def wrong_url(url: str) -> str | None:
    """What is wrong with the URL of a folder, as the end of a sentence; None for one that can be used."""
    scheme = next((known for known in _HADOOP if url.startswith(known)), None)
    if scheme:
        return f"write s3:// instead of {scheme}, for example {SCHEME}{url.removeprefix(scheme)}"
    if not is_remote(url) or url.startswith(_OTHERS):
        return None
    if not is_s3(url):
        return f"expected a folder or an object store, for example {SCHEME}bucket/warehouse"
    found = urlsplit(url)
    if not found.netloc:
        return f"it names no bucket; write for example {SCHEME}bucket/warehouse"
    if "@" in found.netloc or found.query or found.fragment:
        return (
            f"keys and options do not belong into the URL; write {SCHEME}{found.netloc.rpartition('@')[2]}{found.path}"
        )
    return None


def wrong_endpoint(text: str) -> str | None:
    """What is wrong with an endpoint, as the end of a sentence; None for one that can be used."""
    found = urlsplit(text)
    if found.scheme not in ("http", "https") or not found.hostname:
        return "expected http:// or https://, a host and a port, for example http://minio:9000"
    if "@" in found.netloc:
        return "keys do not belong into it; give them by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile"
    if found.path.strip("/") or found.query or found.fragment:
        return f"the bucket is part of the warehouse's URL; write {found.scheme}://{found.netloc}"
    return None


def looks_like_a_key(name: str) -> bool:
    """Whether somebody tries to put a key into the file."""
    return any(word in name.lower() for word in _KEYS)


# -- What the environment says -----------------------------------------------------------------------------------------


def access(store: Store, environment: Mapping[str, str], home: Path | None = None) -> Access:
    """The settings, completed as AWS's own tools do it: variables first, then the profile."""
    endpoint = store.endpoint or environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or None
    profile = _profile(environment, home or Path.home())
    region = (
        store.region
        or environment.get("AWS_REGION")
        or environment.get("AWS_DEFAULT_REGION")
        or profile.get("region")
        or (_ANY_REGION if endpoint else None)
    )
    roles = (
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    )
    named = any(environment.get(name) for name in roles) or any(
        name in profile for name in ("role_arn", "sso_session", "sso_start_url", "credential_process")
    )
    return Access(endpoint, region, _key(environment, profile), named)


def _key(environment: Mapping[str, str], profile: Mapping[str, str]) -> Key | None:
    id, secret = environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")
    if id and secret:
        return Key(id, secret, environment.get("AWS_SESSION_TOKEN") or None, "AWS_ACCESS_KEY_ID")
    id, secret = profile.get("aws_access_key_id"), profile.get("aws_secret_access_key")
    if id and secret:
        return Key(
            id, secret, profile.get("aws_session_token"), f"the profile {environment.get('AWS_PROFILE', 'default')}"
        )
    return None


def _profile(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    """Both files are read each time: a key that is renewed in them counts from the next request on."""
    name = environment.get("AWS_PROFILE") or "default"
    files = (
        (environment.get("AWS_CONFIG_FILE") or home / ".aws/config", name if name == "default" else f"profile {name}"),
        (environment.get("AWS_SHARED_CREDENTIALS_FILE") or home / ".aws/credentials", name),
    )
    found: dict[str, str] = {}
    for file, section in files:
        reader = configparser.RawConfigParser()
        try:
            reader.read_string(Path(file).expanduser().read_text(encoding="utf-8"))
        except (OSError, ValueError, configparser.Error):
            continue
        if reader.has_section(section):
            found |= {key: value for key, value in reader.items(section) if value}
    return found


# -- What each library is told -----------------------------------------------------------------------------------------


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


# -- What went wrong ----------------------------------------------------------------------------------------------------

#: What stores and libraries say, and what it means. The first that is found counts.
_SAYINGS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("ExpiredToken", "ExpiredTokenException", "token included in the request is expired", "RequestExpired"),
        "the keys have expired; renew them (the profile is read again by itself, variables need a new start)",
    ),
    (("InvalidAccessKeyId", "InvalidClientTokenId"), "the store does not know the access key{key}"),
    (("SignatureDoesNotMatch",), "the secret key is not the one of the access key{key}"),
    (
        ("NoSuchBucket", "BucketNotFound", "specified bucket does not exist"),
        "there is no bucket {bucket}; make it first",
    ),
    (
        (
            "AccessDenied",
            "Access Denied",
            "403 Forbidden",
            "Status Code: 403",
            "lacked sufficient permissions",
            "lack the necessary",
        ),
        "the key{key} may not do that; it needs to list, read, write and delete in the bucket {bucket}",
    ),
    (
        ("169.254.169.254", "Unable to load credentials", "NoAuthWithAWSException", "No AWS Credentials"),
        "no access key was found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile (AWS_PROFILE)",
    ),
    (
        ("Class org.apache.hadoop.fs.s3a.S3AFileSystem not found", 'No FileSystem for scheme "s3'),
        "Spark has no connector for object stores; `make setup OBJECT_STORE=1` fetches its jars",
    ),
    (
        (
            "Connection refused",
            "error trying to connect",
            "dns error",
            "UnknownHost",
            "Connect to ",
            "error sending request",
            "operation timed out",
            "Connection reset",
            "ConnectTimeout",
            "curlCode: 7",
        ),
        "the store does not answer{endpoint}; check store.endpoint and the network",
    ),
    (
        ("PermanentRedirect", "AuthorizationHeaderMalformed", "301 Moved"),
        "the bucket {bucket} is in another region; set store.region or AWS_REGION",
    ),
    (
        (
            "500 Internal",
            "503 Service",
            "502 Bad",
            "504 Gateway",
            "SlowDown",
            "InternalError",
            "ServiceUnavailable",
            "Status Code: 50",
        ),
        "the store fails or is overloaded; what was being done is tried again",
    ),
)


def meaning(text: str) -> str | None:
    """What an error text of a store says, with places for names; None if it is not about a store."""
    return next((said for words, said in _SAYINGS if any(word in text for word in words)), None)


def explained(url: str, text: str, to: Access | None = None) -> str:
    """One sentence about what went wrong at a URL."""
    to = to or access_to(url)
    first = next((line.strip(" \u21b3") for line in text.splitlines() if line.strip()), "it gave no reason")
    names = {
        "key": f" {to.key.id} (from {to.key.origin})" if to.key else "",
        "bucket": bucket_of(url),
        "endpoint": f" at {to.endpoint}" if to.endpoint else "",
    }
    said = first[:300] if (known := meaning(text)) is None else known.format(**names)
    return f"{url}: {said}."


# -- Which store a URL is in -------------------------------------------------------------------------------------------

#: By bucket; under "" for buckets that no workspace named as its own. A process nearly always has one workspace.
_known: dict[str, Store] = {}


def remember(store: Store, *urls: str) -> None:
    """From now on URLs in the buckets of these, and in buckets that nobody knows, mean this store."""
    _known[""] = store
    _known.update({bucket_of(url): store for url in urls if is_s3(url)})


def access_to(url: str, environment: Mapping[str, str] | None = None) -> Access:
    """How to reach what is at a URL, with the keys as they are now."""
    store = _known.get(bucket_of(url)) or _known.get("") or Store()
    return access(store, os.environ if environment is None else environment)
