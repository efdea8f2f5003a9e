"""Settings of a workspace: `partwise.yaml`, each setting overridable by a variable PARTWISE_...

    spark: {master: "local[4]"}      PARTWISE_SPARK_MASTER="local[4]"

Every setting has a default; an empty file, or none, is fine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from partwise.object_store import Store, is_remote, looks_like_a_key, wrong_endpoint, wrong_url
from partwise.parts import BadTime, seconds
from partwise.spelling import did_you_mean

FILE = "partwise.yaml"
#: What `partwise serve` tells other commands about the workspace it serves: variables, as JSON.
SERVED = ".partwise/served.json"


class BadSetting(Exception):
    """A setting that cannot be used; the message is meant for people."""


@dataclass(frozen=True, slots=True)
class Spark:
    """Where Spark runs: `remote` is a Spark Connect URL, `master` anything that Spark takes as one.

    `engine` is what views use in Airflow, unless they say so themselves: connect (by default) or submit.
    `keep`: how long a driver in the background waits for the next command; 0 for none. By default 10 minutes for
    commands on a terminal, and none elsewhere.
    """

    master: str | None = None
    remote: str | None = None
    engine: str | None = None
    keep: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Airflow:
    """The Airflow that commands talk to."""

    url: str | None = None
    username: str | None = None
    password: str | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Small steps share a job of Spark: at most so many tables, with so many rows in their results.

    With one table each step has a job of its own.
    """

    views: int = 20
    rows: int = 100_000


@dataclass(frozen=True, slots=True)
class Settings:
    """Paths are relative to the workspace. `timezone` is for display only: parts are UTC.

    `warehouse` and `landing` may be in an object store (`s3://bucket/folder`); `store` says where that is, off AWS.

    `history`: as-of reads reach back so far; what only older ones would need is removed by upkeep.
    `state_budget`: how many bytes may be kept so that late rows cost less, over all views.
    A step computes at most `chunk_parts` parts, and one query of it reads about `chunk_rows` rows: a year of history
    does not need the memory of a year.
    """

    definitions: str = "view_defs"
    landing: str = "landing"
    warehouse: str = "warehouse"
    ledger: str = "sqlite:///ledger.db"
    spark: Spark = Spark()
    airflow: Airflow = Airflow()
    store: Store = field(default_factory=Store)
    timezone: str = "UTC"
    history: str = "7 days"
    chunk_parts: int = 1_000
    chunk_rows: int = 20_000_000
    batch: Batch = field(default_factory=Batch)
    state_budget: str = "2 GB"

    @property
    def state_bytes(self) -> int:
        """What may be kept for repairs, over all views; 0 for nothing."""
        return size_in_bytes(self.state_budget)

    @property
    def history_seconds(self) -> float:
        """How far back as-of reads are promised."""
        return float(seconds(self.history))


_GROUPS: dict[str, tuple[str, ...]] = {
    "spark": ("master", "remote", "engine", "keep", "conf"),
    "airflow": ("url", "username", "password"),
    "store": ("endpoint", "region"),
}
_KINDS: dict[str, type[Spark | Airflow | Store]] = {"spark": Spark, "airflow": Airflow, "store": Store}
_TEXTS = ("definitions", "landing", "warehouse", "ledger", "timezone", "history", "state_budget")
_NUMBERS = ("chunk_parts", "chunk_rows")
_BATCH = ("views", "rows")
_EXAMPLES = {
    "spark": "spark: {master: 'local[*]'}",
    "airflow": "airflow: {url: http://localhost:8080}",
    "store": "store: {endpoint: http://minio:9000}",
    "endpoint": "endpoint: http://minio:9000",
    "region": "region: eu-central-1",
    "conf": "conf: {spark.sql.shuffle.partitions: 8}",
    "ledger": "ledger: sqlite:///ledger.db",
    "history": "history: 7 days",
    "keep": "keep: 10 minutes",
    "batch": "batch: {views: 20, rows: 100000}",
    "state_budget": "state_budget: 2 GB",
}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)?")
_UNITS = ("B", "KB", "MB", "GB", "TB")
#: Less would remove files from under reads that are going on.
_SHORTEST_HISTORY = 3600


def read_settings(file: Path, environment: Mapping[str, str], served: bool = True) -> Settings:
    """The settings of a workspace: its file, what `partwise serve` has told, the environment. Raises BadSetting."""
    told = _served(file.parent / SERVED, environment) if served else {}
    return _override(_override(_from_file(file), told), environment)


def _served(file: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Not every user can read it, as in a container; where the ledger is given by a variable, nobody has to."""
    import json

    try:
        found: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
        return found
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as why:
        if isinstance(why, PermissionError) and environment.get("PARTWISE_LEDGER"):
            return {}
        raise BadSetting(
            f"{file} cannot be read: {why}. `partwise serve` writes it again; other users name the ledger by "
            "PARTWISE_LEDGER."
        ) from None


def _from_file(file: Path) -> Settings:
    raw = _parse(file)
    found: dict[str, Any] = {}
    for key, value in raw.items():
        if key in _GROUPS:
            found[key] = _group(file, key, value)
        elif key == "batch":
            found[key] = _batch(file, value)
        elif key == "state_budget" and isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            found[key] = str(value)
        elif key in _TEXTS:
            found[key] = _text(f"{file.name}: {key}", value, key)
        elif key in _NUMBERS:
            found[key] = _number(f"{file.name}: {key}", value)
        else:
            raise BadSetting(
                f"{file}: there is no setting {key!r}{_meant(str(key), (*_TEXTS, *_NUMBERS, 'batch', *_GROUPS))}"
            )
    return _checked(Settings(**found), str(file))


def _parse(file: Path) -> dict[str, Any]:
    import yaml

    try:
        raw = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as why:
        raise BadSetting(f"{file} cannot be read: {why.strerror or why}") from None
    except UnicodeDecodeError:
        raise BadSetting(f"{file} is not UTF-8 text; save it as UTF-8") from None
    except (yaml.YAMLError, ValueError) as why:
        mark = getattr(why, "problem_mark", None)
        where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else str(file)
        raise BadSetting(f"{where}: not valid YAML: {getattr(why, 'problem', None) or why}") from None
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise BadSetting(f"{file}: expected settings such as `warehouse: warehouse`, found {_shown(raw)}")
    return raw


def _batch(file: Path, value: object) -> Batch:
    if not isinstance(value, dict | None):
        raise BadSetting(f"{file}: batch is {_shown(value)}; expected a map, for example {_EXAMPLES['batch']}")
    given = value or {}
    if unknown := [key for key in given if key not in _BATCH]:
        raise BadSetting(f"{file}: there is no setting batch.{unknown[0]}{_meant(str(unknown[0]), _BATCH)}")
    return Batch(**{key: _number(f"{file.name}: batch.{key}", number) for key, number in given.items()})


def _group(file: Path, name: str, value: object) -> Spark | Airflow | Store:
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise BadSetting(f"{file}: {name} is {_shown(value)}; expected a map, for example {_EXAMPLES[name]}")
    found: dict[str, Any] = {}
    for key, inner in value.items():
        if name == "store" and key not in _GROUPS[name] and looks_like_a_key(str(key)):
            raise BadSetting(
                f"{file}: store.{key}: keys are not kept in this file; give them by AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or by a profile (AWS_PROFILE)"
            )
        if key not in _GROUPS[name]:
            raise BadSetting(f"{file}: there is no setting {name}.{key}{_meant(str(key), _GROUPS[name])}")
        if key == "conf":
            if not isinstance(inner, dict):
                raise BadSetting(f"{file}: spark.conf is {_shown(inner)}; expected a map, as in {_EXAMPLES['conf']}")
            found[key] = {str(k): _plain(v) for k, v in inner.items()}
        else:
            # `keep: 0` is a number in YAML, and the only one that makes sense here.
            inner = "0" if (key, inner) == ("keep", 0) else inner
            found[key] = _text(f"{file}: {name}.{key}", inner, key)
    return _KINDS[name](**found)


def _override(settings: Settings, environment: Mapping[str, str]) -> Settings:
    given = {k.removeprefix("PARTWISE_").lower(): v for k, v in environment.items() if k.startswith("PARTWISE_") and v}
    texts: dict[str, Any] = {name: given[name] for name in _TEXTS if name in given}
    texts |= {name: _number(f"PARTWISE_{name.upper()}", given[name]) for name in _NUMBERS if name in given}
    batch = {
        key: _number(f"PARTWISE_BATCH_{key.upper()}", given[f"batch_{key}"])
        for key in _BATCH
        if f"batch_{key}" in given
    }
    settings = replace(settings, **texts, batch=replace(settings.batch, **batch))
    for name, keys in _GROUPS.items():
        found = {key: given[f"{name}_{key}"] for key in keys if f"{name}_{key}" in given and key != "conf"}
        settings = replace(settings, **{name: replace(getattr(settings, name), **_instead(found))})
    if "spark_conf" in given:
        conf = {**settings.spark.conf, **_conf(given["spark_conf"])}
        settings = replace(settings, spark=replace(settings.spark, conf=conf))
    return _checked(settings, "PARTWISE_...")


def _instead(found: dict[str, str]) -> dict[str, str | None]:
    """Of Spark's master and remote, the one that is given takes the place of the other one in the file."""
    others = {"master": "remote", "remote": "master"}
    return {others[key]: None for key in found if key in others} | found


def _conf(text: str) -> dict[str, str]:
    """`key=value` pairs, separated by white space or commas."""
    pairs = [pair.partition("=") for pair in text.replace(",", " ").split()]
    if bad := [key for key, equals, _ in pairs if not equals]:
        raise BadSetting(f"PARTWISE_SPARK_CONF: {bad[0]!r} is not key=value")
    return {key: value for key, _, value in pairs}


def _checked(settings: Settings, where: str) -> Settings:
    if settings.spark.master and settings.spark.remote:
        raise BadSetting(f"{where}: spark.master and spark.remote exclude each other; keep one of them")
    if settings.spark.engine not in (None, "connect", "submit"):
        raise BadSetting(f"{where}: spark.engine is {settings.spark.engine!r}; write connect or submit")
    for name in ("warehouse", "landing"):
        if wrong := wrong_url(getattr(settings, name), tables=name == "warehouse"):
            raise BadSetting(f"{where}: {name} is {getattr(settings, name)!r}; {wrong}")
    if settings.store.endpoint and (wrong := wrong_endpoint(settings.store.endpoint)):
        raise BadSetting(f"{where}: store.endpoint is {settings.store.endpoint!r}; {wrong}")
    if is_remote(settings.definitions):
        raise BadSetting(f"{where}: definitions is {settings.definitions!r}; definitions are kept in a folder")
    try:
        keep_seconds(settings.spark.keep or "0")
    except BadTime as why:
        raise BadSetting(f"{where}: spark.keep: {why}; or 0 for no driver in the background") from None
    try:
        size_in_bytes(settings.state_budget)
    except ValueError as why:
        raise BadSetting(f"{where}: state_budget: {why}; or 0 to keep nothing") from None
    try:
        ZoneInfo(settings.timezone)
    except (ValueError, OSError, KeyError):
        raise BadSetting(
            f"{where}: {settings.timezone!r} is not a time zone; write for example UTC or Europe/Berlin"
        ) from None
    try:
        long_enough = settings.history_seconds >= _SHORTEST_HISTORY
    except BadTime as why:
        raise BadSetting(f"{where}: history: {why}") from None
    if not long_enough:
        raise BadSetting(f"{where}: history is {settings.history}; it must be at least 1 hour, so that reads can end")
    return settings


def size_in_bytes(text: str) -> int:
    """`2 GB`, `500 MB`, or a number of bytes. Raises ValueError."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or (match[2] or "B").upper() not in _UNITS:
        raise ValueError(f"{text!r} is not a size; write for example 2 GB or 500 MB")
    return int(float(match[1]) * 1000 ** _UNITS.index((match[2] or "B").upper()))


def keep_seconds(text: str) -> float:
    """How long a driver in the background is kept. Raises BadTime."""
    return 0.0 if text.strip() == "0" else float(seconds(text))


def _text(where: str, value: object, key: str) -> str:
    if not isinstance(value, str) or not value.strip():
        example = f", for example {_EXAMPLES[key]}" if key in _EXAMPLES else ""
        raise BadSetting(f"{where} is {_shown(value)}; expected text{example}")
    return value.strip()


def _number(where: str, value: object) -> int:
    text = str(value).replace("_", "").strip()
    if isinstance(value, bool) or not text.isdecimal() or int(text) < 1:
        raise BadSetting(f"{where} is {str(value)[:40]!r}; expected a whole number from 1, for example 1000")
    return int(text)


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(value: object) -> str:
    kinds = {dict: "a map", list: "a list", bool: "true or false", int: "a number", float: "a number"}
    return "empty" if value in (None, "") else kinds.get(type(value), f"{str(value)[:40]!r}")


def _meant(word: str, known: tuple[str, ...]) -> str:
    return f"; {did_you_mean(word, known, 'there are ' + ', '.join(known))}"
