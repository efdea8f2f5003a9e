"""URLs of an object store, and what the settings may say of one."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

#: What users write. Hadoop's own names for the same store are not taken: one table would have two addresses.
SCHEME = "s3://"
_HADOOP = ("s3a://", "s3n://")
#: Stores for which delta-rs and obstore have settings of their own; Spark's are up to the user. Not tried.
_OTHERS = ("gs://", "abfss://", "abfs://", "az://")
_KEYS = ("key", "secret", "token", "access", "password", "credential")


@dataclass(frozen=True, slots=True)
class Store:
    """The setting `store`. On AWS nothing is needed: the bucket's name says where it is."""

    endpoint: str | None = None
    region: str | None = None


def is_remote(path: str) -> bool:
    return "://" in path and not path.startswith("file://")


def is_s3(path: str) -> bool:
    return path.startswith(SCHEME)


def bucket_of(url: str) -> str:
    return urlsplit(url).netloc


def wrong_url(url: str, tables: bool = False) -> str | None:
    """What is wrong with the URL of a folder, as the end of a sentence; None for one that can be used.

    `tables`: it holds some. Libraries do not agree on what a percent sign in their URLs means.
    """
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
    if tables and "%" in url:
        return "names with % cannot be used for tables; write letters as they are (a space as a space)"
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
