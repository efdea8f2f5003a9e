"""Keys and places, from the settings and from the variables and files that AWS's own tools read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from partwise.object_store.urls import Store, bucket_of, is_s3

#: Servers that are not AWS do not care, but a request cannot be signed without one.
_ANY_REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class AccessKey:
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
    key: AccessKey | None = None
    roles: bool = False  # whether variables name a role (web identity, container) that gives keys

    @property
    def plain(self) -> bool:
        """Whether requests go over HTTP without TLS."""
        return (self.endpoint or "").startswith("http://")


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


def _key(environment: Mapping[str, str], profile: Mapping[str, str]) -> AccessKey | None:
    id, secret = environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")
    if id and secret:
        return AccessKey(id, secret, environment.get("AWS_SESSION_TOKEN") or None, "AWS_ACCESS_KEY_ID")
    id, secret = profile.get("aws_access_key_id"), profile.get("aws_secret_access_key")
    if id and secret:
        return AccessKey(
            id, secret, profile.get("aws_session_token"), f"the profile {environment.get('AWS_PROFILE', 'default')}"
        )
    return None


def _profile(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    """Both files are read each time: a key that is renewed in them counts from the next request on."""
    import configparser  # commands on a local folder start without it

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
